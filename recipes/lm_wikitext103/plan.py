"""What the recipe runs: every command, in order. Plain fairseq, but for `--pos-enc` and the task with memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.lib import launch
from recipes.lib.encodings import Encoding
from recipes.lib.flags import PLUGIN, QUIET, WHOLE
from recipes.lib.package import tables
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .settings import BUILTIN, Settings

HERE = Path(__file__).parent
PREPARE = "data-bin-scripts/prepare_words.py"
ARCHIVE = "wikitext-103/wikitext-103-v1"  # where fetch.py unpacks it, and its name in fetch.py's list
SPLITS = ("train", "valid", "test")
KEPT = 2  # checkpoints besides the last and the best
CONTRADICTION = (
    "Dropout: the paper states 0.00 for WikiText-103, and the setup of Transformer-XL, whose is 0.1; presets wt103 and "
    "wt103-dropout0 have one each."
)


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    return Planner(settings, output, shown).plan()


def module(name: str) -> list[str]:
    return ["python", "-m", f"recipes.lm_wikitext103.{name}"]


@dataclass(frozen=True)
class Planner:
    settings: Settings
    output: Path
    shown: str  # the output folder as the commands name it, relative to the repository

    def plan(self) -> Plan:
        chains = [self.chain(encoding) for encoding in self.settings.encodings]
        compare = self.compare(tuple(stage for chain in chains for stage in chain[1:]))
        return Plan([[[self.check(), *self.text]], chains, [[compare]]], tuple(self.notes()))

    def notes(self) -> list[str]:
        settings = self.settings
        told = launch.notes(settings, self.effective_batch())
        without = [encoding.label for encoding in settings.encodings if not encoding.remembers]
        if without and (settings.mem_train or any(settings.mem_eval)):
            told.append(
                f"No memory: {', '.join(without)} (no positions for earlier segments): trained and evaluated with 0."
            )
        if settings.corpus == BUILTIN:
            told.append("The built-in corpus shows that the machinery works, not what an encoding is worth.")
        if settings.arch.endswith("_wt103"):
            told.append(CONTRADICTION)
        return told

    def effective_batch(self) -> str:
        how, freq = self.settings, launch.update_freq(self.settings)
        batch = how.number("batch-size", 1)
        return (
            f"An update: nodes {how.nodes} x processes {how.processes} x batch-size {batch} = {how.streams} streams, "
            f"{freq} x {how.length} tokens of each = {how.streams * freq * how.length:,} tokens"
        )

    # --- the text

    def check(self) -> Stage:
        """Models, their flags and lengths: what would fail hours later."""
        command = [*module("check"), "--output", f"{self.shown}/checked.json"]
        for encoding in self.settings.encodings:
            command += ["--pos-enc", encoding.label]
        longest = max(self.settings.protocol(memory)[0] + memory for memory in self.settings.mem_eval)
        command += ["--trained", str(self.settings.length + self.settings.mem_train), "--longest", str(longest)]
        outputs, inputs = (self.output / "checked.json",), (HERE / "check.py",)
        return Stage("check", (*command, "--", *PLUGIN, *self.model_flags()), outputs, inputs=inputs)

    @cached_property
    def text(self) -> list[Stage]:
        """The stages that lead to binary data; none where it is there."""
        if self.settings.prepared:
            return []
        before, folder = self.source()
        prepare = self.prepare(before, folder)
        return [*before, prepare, self.binarise(prepare)]

    def source(self) -> tuple[list[Stage], str]:
        """What brings the text, and the folder that it is in."""
        settings = self.settings
        if settings.own:
            return [], str(Path(settings.corpus).resolve())
        if settings.corpus == BUILTIN:
            folder = f"{self.shown}/builtin"
            command = (*module("builtin"), "--output", folder, "--seed", str(settings.seed))
            inputs = (HERE / "builtin.py", ROOT / "recipes" / "lib" / "invented" / "sentences.py")
            return [Stage("builtin", command, (self.output / "builtin",), inputs=inputs)], folder
        # No outputs: what it fetches belongs to all runs, and it checks for itself what is there.
        command = ("python", "data-bin-scripts/fetch.py", f"{ARCHIVE}.zip", "--output", settings.raw)
        return [Stage("fetch", command, ())], f"{settings.raw}/{ARCHIVE}"

    def prepare(self, before: list[Stage], folder: str) -> Stage:
        settings = self.settings
        command = ["python", PREPARE, "--text", folder, "--output", f"{self.shown}/text"]
        command += ["--types", str(settings.types)] if settings.types else []
        names = [f"{name}{packed}" for split in SPLITS for name in NAMES[split] for packed in ("", ".gz")]
        own = [path for name in names if settings.own and (path := Path(folder) / name).is_file()]
        identity = tuple(word for word in command if not settings.own or word != folder)  # the text counts, not where
        inputs = (ROOT / PREPARE, *own)
        return Stage("prepare", tuple(command), (self.output / "text",), tuple(before), inputs, identity=identity)

    def binarise(self, prepare: Stage) -> Stage:
        command = ["fairseq-preprocess", "--only-source"]
        for split in SPLITS:
            command += [f"--{split}pref", f"{self.shown}/text/{split}.txt"]
        # Without it, invented words fill the dictionary up to a multiple of 8.
        command += ["--destdir", f"{self.shown}/data-bin", "--padding-factor", "1"]
        identity = tuple(command)
        command += ["--workers", str(self.settings.workers)]
        return Stage("binarise", tuple(command), (self.output / "data-bin",), (prepare,), identity=identity)

    @property
    def data(self) -> str:
        return str(Path(self.settings.corpus).resolve()) if self.settings.prepared else f"{self.shown}/data-bin"

    @property
    def data_inputs(self) -> tuple[Path, ...]:
        """Of data that no stage made: its dictionary and the lengths of its lines stand for it."""
        if not self.settings.prepared:
            return ()
        return (Path(self.data) / "dict.txt", *(Path(self.data) / f"{split}.idx" for split in SPLITS))

    # --- one encoding

    def chain(self, encoding: Encoding) -> list[Stage]:
        train = self.train(encoding)
        return [train, *(self.evaluate(encoding, memory, train) for memory in self.settings.memories_of(encoding))]

    def model_flags(self) -> list[str]:
        settings = self.settings
        flags = ["--task", "posenc_lm_memory", "--arch", settings.arch, "--tokens-per-sample", str(settings.length)]
        return [*flags, *as_arguments(settings.train)]

    def train(self, encoding: Encoding) -> Stage:
        settings = self.settings
        command = [self.data, *WHOLE, *QUIET, "--log-interval", "20"]  # the user's come later, and win
        command += [*PLUGIN, *self.model_flags(), *encoding.flags()]
        command += ["--mem-length", str(settings.memory_of(encoding)), "--seed", str(settings.seed)]
        command += ["--save-dir", f"{self.shown}/checkpoints/{encoding.slug}"]
        kept = ["--no-epoch-checkpoints", "--keep-interval-updates", str(KEPT)]
        # Where streams are cut depends on how many there are; what a place is called does not.
        told = ["DATA", *command[1:]] if settings.prepared else command
        return Stage(
            f"train:{encoding.slug}",
            launch.train_command([*command, *kept], settings),
            (self.output / "checkpoints" / encoding.slug,),
            tuple(self.text[-1:]),
            self.data_inputs,
            resumes=True,
            identity=(*launch.identity(told, settings), "streams", str(settings.streams)),
        )

    def evaluate(self, encoding: Encoding, memory: int, train: Stage) -> Stage:
        settings = self.settings
        segment, clamp, same_length = settings.protocol(memory)
        scores = f"scores/{encoding.slug}.{memory}.json"
        command = [*module("evaluate"), "--checkpoint", f"{self.shown}/checkpoints/{encoding.slug}/checkpoint_best.pt"]
        command += ["--data", self.data, "--split", settings.split, "--streams", str(settings.eval_batch)]
        command += ["--memory", str(memory), "--segment", str(segment)]
        command += ["--same-length"] if same_length else []
        command += ["--clamp", str(clamp)] if clamp and encoding.takes("clamp") else []
        command += ["--output", f"{self.shown}/{scores}"]
        return Stage(
            f"evaluate:{encoding.slug}.{memory}",
            launch.on_one_device(command, settings),
            (self.output / scores,),
            (train,),
            (HERE / "evaluate.py", *self.data_inputs),
            identity=tuple("DATA" if settings.prepared and word == self.data else word for word in command),
        )

    # --- all of them

    def compare(self, after: tuple[Stage, ...]) -> Stage:
        command = [*module("compare"), "--output", self.shown]
        for encoding in self.settings.encodings:
            memories = ",".join(map(str, self.settings.memories_of(encoding)))
            command += ["--pos-enc", encoding.label, "--memories", memories]
        outputs = (self.output / "comparison.json", self.output / "curves.png")
        return Stage("compare", tuple(command), outputs, after, (HERE / "compare.py", *tables()))


NAMES = {split: (f"wiki.{split}.tokens", f"{split}.txt") for split in SPLITS}
