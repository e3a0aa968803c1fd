"""Define all commands of the recipe in order.

Training uses fairseq-train with `--pos-enc` and the task posenc_lm_memory, which keeps a memory of earlier segments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from recipes.lib import launch, planning
from recipes.lib.encodings import Encoding, labels
from recipes.lib.flags import PLUGIN
from recipes.lib.package import tables
from recipes.lib.planning import LIB, flags, module
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .settings import BUILTIN, NAMES, SPLITS, Settings

HERE = Path(__file__).parent
PREPARE = "data-bin-scripts/prepare_words.py"
ARCHIVE = "wikitext-103/wikitext-103-v1"  # name of the archive in fetch.py's list, and of the unpacked folder
KEEP = 2  # number of checkpoints to keep besides the last and the best
CONTRADICTION = (
    "The paper contradicts itself about dropout: it states 0.00, but also says that it uses the setup of "
    "Transformer-XL, which has 0.1. The preset wt103 has a dropout of 0.00, and wt103-dropout01 has 0.1."
)


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    return Planner(settings, output, shown).plan()


class Planner(planning.Planner[Settings]):
    def plan(self) -> Plan:
        seeds = self.settings.training_seeds.seeds
        chains = [self.chain(encoding, seed) for encoding in self.settings.encodings for seed in seeds]
        compare = self.compare([stage for chain in chains for stage in chain[1:]])
        return Plan([[[self.check(), *self.text]], chains, [[compare]]], tuple(self.notes()))

    def notes(self) -> list[str]:
        settings = self.settings
        lines = launch.notes(settings, self.effective_batch())
        without = labels(encoding for encoding in settings.encodings if not encoding.remembers)
        if without and (settings.mem_train or any(settings.mem_eval)):
            text = "These encodings have no positions for earlier segments and are trained and evaluated without memory"
            lines.append(f"{text}: {', '.join(without)}.")
        if settings.corpus == BUILTIN:
            lines.append(
                "The built-in corpus only tests the installation. The scores on this corpus do not show the quality "
                "of encodings."
            )
        if settings.arch.endswith("_wt103"):
            lines.append(CONTRADICTION)
        return lines

    def effective_batch(self) -> str:
        run, batch = self.settings, self.settings.number("batch-size", 1)
        streams = f"{batch} stream{'s' * (batch != 1)} (--train.batch-size)"
        numbers = " x ".join([*launch.factors(run), streams, f"{run.length} tokens"])
        return f"Tokens per update: {numbers} = {run.batches * batch * run.length:,} tokens"

    # --- text

    def check(self) -> Stage:
        """Return the stage that checks models, flags and lengths, so that errors appear before hours of training."""
        settings = self.settings
        longest = max(settings.protocol(memory)[0] + memory for memory in settings.mem_eval)
        command = module("lm_wikitext103.check") + flags(output=f"{self.shown}/checked.json")
        command += flags(pos_enc=labels(settings.encodings))
        command += flags(trained=settings.length + settings.mem_train, longest=longest)
        command += ["--", *PLUGIN, *self.model_flags()]
        return self.stage("check", command, ["checked.json"], inputs=[HERE / "check.py"])

    @cached_property
    def text(self) -> list[Stage]:
        """Return the stages that prepare binary data; the list is empty if the corpus is already binary."""
        if self.settings.prepared:
            return []
        before, folder = self.source()
        prepare = self.prepare(before, folder)
        return [*before, prepare, self.binarise(prepare)]

    def source(self) -> tuple[list[Stage], str]:
        """Return the stages that fetch or write the text, and the folder of the text."""
        settings = self.settings
        if settings.own:
            return [], str(Path(settings.corpus).resolve())
        if settings.corpus == BUILTIN:
            folder = f"{self.shown}/builtin"
            command = module("lm_wikitext103.builtin") + flags(output=folder, seed=settings.seed)
            inputs = [HERE / "builtin.py", LIB / "invented" / "sentences.py"]
            return [self.stage("builtin", command, ["builtin"], inputs=inputs)], folder
        # The stage has no outputs: all runs share the downloads, and fetch.py itself skips existing files.
        fetch = ["python", "data-bin-scripts/fetch.py", f"{ARCHIVE}.zip", "--output", settings.raw]
        return [self.stage("fetch", fetch, [])], f"{settings.raw}/{ARCHIVE}"

    def prepare(self, before: list[Stage], folder: str) -> Stage:
        settings = self.settings
        command = ["python", PREPARE, *flags(text=folder, output=f"{self.shown}/text", types=settings.types or None)]
        names = [name for split in SPLITS for name in NAMES[split]]
        own = [path for name in names if settings.own and (path := Path(folder) / name).is_file()]
        return self.stage("prepare", command, ["text"], before, [ROOT / PREPARE, *own])

    def binarise(self, prepare: Stage) -> Stage:
        command = ["fairseq-preprocess", "--only-source"]
        command += flags(**{f"{split}pref": f"{self.shown}/text/{split}.txt" for split in SPLITS})
        # Without padding_factor, fairseq pads the dictionary with invented words to a multiple of 8.
        command += flags(destdir=f"{self.shown}/data-bin", padding_factor=1)
        return self.stage("binarise", command, ["data-bin"], [prepare], free=flags(workers=self.settings.workers))

    def unplaced(self, command: Iterable[str]) -> tuple[str, ...]:
        """Return the command without the path of the user's text, because the path does not change the result."""
        if not self.settings.own:
            return tuple(command)
        folder = str(Path(self.settings.corpus).resolve())
        return tuple("DATA" if word == folder else word for word in command)

    @property
    def data(self) -> str:
        return str(Path(self.settings.corpus).resolve()) if self.settings.prepared else f"{self.shown}/data-bin"

    @property
    def data_inputs(self) -> tuple[Path, ...]:
        """Return the files that identify the user's binary data: the dictionary and the .idx file of each split."""
        if not self.settings.prepared:
            return ()
        return (Path(self.data) / "dict.txt", *(Path(self.data) / f"{split}.idx" for split in SPLITS))

    # --- one model

    def chain(self, encoding: Encoding, seed: int) -> list[Stage]:
        train, memories = self.train(encoding, seed), self.settings.memories_of(encoding)
        return [train, *(self.evaluate(encoding, memory, train) for memory in memories)]

    def model_flags(self) -> list[str]:
        settings = self.settings
        words = flags(task="posenc_lm_memory", arch=settings.arch, tokens_per_sample=settings.length)
        return [*words, *as_arguments(settings.train)]

    def train(self, encoding: Encoding, seed: int) -> Stage:
        settings = self.settings
        slug = settings.training_seeds.slug(encoding.slug, seed)
        words = [*self.model_flags(), *encoding.flags()]
        words += flags(mem_length=settings.memory_of(encoding), seed=seed)
        keep = flags(no_epoch_checkpoints=True, keep_interval_updates=KEEP)
        stage = self.training_stage(slug, self.data, words, self.text[-1:], self.data_inputs, keep=keep)
        # The number of streams determines where the text is cut.
        return replace(stage, identity=(*stage.identity, "streams", str(settings.streams)))

    def evaluate(self, encoding: Encoding, memory: int, train: Stage) -> Stage:
        settings, name = self.settings, f"{train.variant}.{memory}"
        segment, clamp, same_length = settings.protocol(memory)
        command = module("lm_wikitext103.evaluate")
        command += flags(checkpoint=f"{self.shown}/checkpoints/{train.variant}/checkpoint_best.pt", data=self.data)
        command += flags(split=settings.split, streams=settings.eval_batch, memory=memory, segment=segment)
        command += flags(same_length=same_length, clamp=clamp if clamp and encoding.takes("clamp") else None)
        command += flags(output=f"{self.shown}/scores/{name}.json")
        inputs = [HERE / "evaluate.py", *self.data_inputs]
        return self.stage(f"evaluate:{name}", command, [f"scores/{name}.json"], [train], inputs, on_device=True)

    # --- all encodings

    def compare(self, after: list[Stage]) -> Stage:
        text = self.settings.corpus if self.settings.prepared else f"{self.shown}/text"
        command = module("lm_wikitext103.compare") + flags(output=self.shown, text=text, split=self.settings.split)
        command += self.settings.training_seeds.flags()
        for encoding in self.settings.encodings:
            memories = ",".join(map(str, self.settings.memories_of(encoding)))
            command += flags(pos_enc=encoding.label, memories=memories)
        inputs = [HERE / "compare.py", *tables()]
        return self.stage("compare", command, ["comparison.json", "curves.png"], after, inputs)
