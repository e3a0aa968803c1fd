"""What the recipe runs: every command, in order. Plain fairseq, but for `--pos-enc` and the task that copies."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.lib import launch
from recipes.lib.flags import ALONE, PLUGIN, QUIET, WHOLE
from recipes.lib.package import tables
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from . import sources
from .settings import BUILTIN, RECORD, SCRATCH, Settings, Variant

HERE = Path(__file__).parent
SCRIPTS = ROOT / "data-bin-scripts"
PREPARE = "data-bin-scripts/prepare_questions.py"
TASK = ("--task", "posenc_question_generation")
PIECES = tuple(ROOT / "fairseq_posenc" / "data" / f"{name}.py" for name in ("question_pieces", "byte_pieces"))
SCORING = tuple(sorted((ROOT / "fairseq_posenc" / "metrics").glob("*.py")))
BUFFER = 32  # lines
ROOM = 14  # of a decoder's positions, beyond --longest-question


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    return Planner(settings, output, shown).plan()


def module(name: str) -> list[str]:
    return ["python", "-m", f"recipes.question_generation.{name}"]


def scripts(*names: str) -> tuple[Path, ...]:
    return tuple(HERE / f"{name}.py" for name in names)


@dataclass(frozen=True)
class Planner:
    settings: Settings
    output: Path
    shown: str  # the output folder as the commands name it, relative to the repository

    def plan(self) -> Plan:
        chains = [self.chain(variant) for variant in self.settings.variants]
        baselines = self.baselines()
        compare = self.compare((baselines, *(stage for chain in chains for stage in (chain[0], chain[-1]))))
        return Plan([[[self.check(), *self.text, baselines]], chains, [[compare]]], tuple(self.notes()))

    def notes(self) -> list[str]:
        settings = self.settings
        batch = settings.number("batch-size", 0)
        told = launch.notes(settings, f"An update: {batch * settings.batches:,} questions" if batch else "")
        if settings.dataset == BUILTIN:
            told.append("The built-in questions show that the machinery works, not what an encoding is worth.")
        if settings.limit and not settings.prepared:
            told.append(f"The first {settings.limit:,} questions of training, of all that there are.")
        if settings.scratch and settings.arch == "posenc_question_generation":
            told.append(f"The paper's encoder is pretrained; with --encoder {SCRATCH} its figures are not comparable.")
        return told

    # --- the questions

    def check(self) -> Stage:
        """Models and the options of decoding: what would fail hours later. An encoder that is loaded is none of it."""
        command = ["python", "-m", "recipes.lib.check_models", "--output", f"{self.shown}/checked.json"]
        for encoding in self.settings.encodings:
            command += ["--pos-enc", encoding.label]
        generate = shlex.join([*TASK, *self.generate_flags()])
        command += ["--generate", generate, "--", *PLUGIN, *self.model_flags(pretrained=False)]
        inputs = (ROOT / "recipes" / "lib" / "check_models.py",)
        return Stage("check", tuple(command), (self.output / "checked.json",), inputs=inputs)

    @cached_property
    def text(self) -> list[Stage]:
        """The stages that lead to binary data; none where it is there."""
        if self.settings.prepared:
            return []
        before, words = self.source()
        return [*before, self.prepare(before, words)]

    def source(self) -> tuple[list[Stage], list[str]]:
        """What brings the questions, and the words that name them."""
        settings = self.settings
        if settings.dataset == BUILTIN:
            folder = f"{self.shown}/builtin"
            command = ["python", "-m", "recipes.lib.invented.questions", "--output", folder]
            command += ["--seed", str(settings.seed)]
            outputs, inputs = (self.output / "builtin",), (ROOT / "recipes" / "lib" / "invented" / "questions.py",)
            return [Stage("builtin", tuple(command), outputs, inputs=inputs)], ["--text", folder]
        named = sources.named(settings)
        if settings.own:
            return [], named
        # No outputs: what it fetches belongs to all runs, and it checks for itself what is there.
        files = sources.FETCHED[settings.dataset].values()
        fetch = ("python", "data-bin-scripts/fetch.py", *files, "--output", settings.raw)
        return [Stage("fetch", fetch, ())], named

    def prepare(self, before: list[Stage], words: list[str]) -> Stage:
        settings = self.settings
        command = ["python", PREPARE, *words, "--output", f"{self.shown}/data-bin", "--bad", settings.bad]
        command += ["--longest", str(settings.longest), "--longest-question", str(settings.longest_question)]
        if not settings.of_lines:
            command += ["--context", settings.context, "--longest-answer", str(settings.longest_answer)]
        command += ["--seed", str(settings.seed)] if settings.lone else []
        command += ["--limit", str(settings.limit)] if settings.limit else []
        command += ["--limit-valid", str(settings.limit_valid)] if settings.limit_valid else []
        command += self.pieces()
        identity = self.unplaced(command)
        inputs = (ROOT / PREPARE, *sorted((SCRIPTS / "questions").glob("*.py")), *PIECES)
        inputs += (*sources.files(settings), *sources.encoder_files(settings, sources.PIECES))
        command += ["--workers", str(settings.workers)]  # whose number changes nothing
        outputs = (self.output / "data-bin",)
        return Stage("prepare", tuple(command), outputs, tuple(before), inputs, identity=identity)

    def pieces(self) -> list[str]:
        settings = self.settings
        if not settings.scratch:
            return ["--tokenizer-path", sources.encoder(settings)]
        named = [] if settings.tokenizer == "auto" else ["--tokenizer", settings.tokenizer]
        return [*named, *(["--cased"] if settings.cased else []), "--vocabulary", str(settings.vocabulary)]

    @property
    def data(self) -> str:
        return str(Path(self.settings.dataset).resolve()) if self.settings.prepared else f"{self.shown}/data-bin"

    @property
    def data_inputs(self) -> tuple[Path, ...]:
        """Of data that no stage made: its record stands for it."""
        return (Path(self.data) / RECORD,) if self.settings.prepared else ()

    def baselines(self) -> Stage:
        command = [*module("baselines"), "--data", self.data, "--split", self.settings.split]
        command += ["--output", f"{self.shown}/baselines.json"]
        outputs, inputs = (self.output / "baselines.json",), (*scripts("baselines", "score", "data"), *SCORING)
        after, identity = tuple(self.text[-1:]), self.unplaced(command)
        return Stage("baselines", tuple(command), outputs, after, (*inputs, *self.data_inputs), identity=identity)

    def unplaced(self, command: list[str]) -> tuple[str, ...]:
        return sources.unplaced(self.settings, command)

    # --- one model

    def chain(self, variant: Variant) -> list[Stage]:
        train = self.train(variant)
        generate = self.generate(variant, train)
        return [train, generate, self.score(variant, generate)]

    def model_flags(self, *, pretrained: bool = True) -> list[str]:
        settings = self.settings
        flags = [*TASK, "--arch", settings.arch, "--criterion", "question_generation"]
        flags += ["--max-target-positions", str(settings.longest_question + ROOM)]
        if settings.scratch or not pretrained:
            flags += ["--max-source-positions", str(settings.longest)]
        else:
            flags += ["--encoder-from", sources.encoder(settings)]
            flags += ["--freeze-encoder"] if settings.freeze_encoder else []
        return [*flags, *as_arguments(settings.train)]

    def train(self, variant: Variant) -> Stage:
        settings = self.settings
        command = [self.data, *WHOLE, *QUIET, "--log-interval", "20"]  # the user's come later, and win
        command += [*PLUGIN, *self.model_flags(), *variant.encoding.flags(), *([] if variant.copy else ["--no-copy"])]
        command += ["--seed", str(settings.seed), "--save-dir", f"{self.shown}/checkpoints/{variant.slug}"]
        kept = ["--no-epoch-checkpoints", "--keep-interval-updates", "1"]
        return Stage(
            f"train:{variant.slug}",
            launch.train_command([*command, *kept], settings),
            (self.output / "checkpoints" / variant.slug,),
            tuple(self.text[-1:]),
            (*self.data_inputs, *sources.encoder_files(settings)),
            resumes=True,
            identity=launch.identity(list(self.unplaced(command)), settings),
        )

    def decoding(self, variant: Variant) -> list[str]:
        """The arguments that fairseq-generate and fairseq-interactive share."""
        settings, path = self.settings, f"{self.shown}/checkpoints/{variant.slug}/checkpoint_best.pt"
        command = [self.data, *PLUGIN, *TASK, "--path", path, "--max-source-positions", str(settings.longest)]
        command += ["--max-target-positions", str(settings.longest_question + ROOM)]
        return [*command, *self.generate_flags()]

    def generate_flags(self) -> list[str]:
        """The user's come later, and win."""
        return ["--max-len-b", str(self.settings.longest_question), *as_arguments(self.settings.generate)]

    def generate(self, variant: Variant, train: Stage) -> Stage:
        command = ["fairseq-generate", *WHOLE, *QUIET, *ALONE, "--scoring", "rouge_l", *self.decoding(variant)]
        command += ["--gen-subset", self.settings.split, "--results-path", f"{self.shown}/generated/{variant.slug}"]
        outputs = (self.output / "generated" / variant.slug,)
        on_device = launch.on_one_device(command, self.settings)
        return Stage(f"generate:{variant.slug}", on_device, outputs, (train,), identity=self.unplaced(command))

    def interactive(self, variant: Variant) -> str:
        """The command that asks questions on lines of text: each is `answer </s> context`, or a sentence."""
        cpu = [] if self.settings.on_gpu else ["--cpu"]
        batch = self.settings.generate.get("batch-size", BUFFER)  # which fairseq wants no larger than the buffer
        command = ["fairseq-interactive", *ALONE, *self.decoding(variant), "--buffer-size", str(batch), *cpu]
        return f"{shlex.join(command)} < FILE | grep ^D- | cut -f 3"

    def score(self, variant: Variant, generate: Stage) -> Stage:
        split = self.settings.split
        command = [*module("score"), "--data", self.data, "--split", split]
        command += ["--generated", f"{self.shown}/generated/{variant.slug}/generate-{split}.txt"]
        command += ["--questions", f"{self.shown}/questions/{variant.slug}.txt"]
        command += ["--output", f"{self.shown}/scores/{variant.slug}.json"]
        outputs = (self.output / "questions" / f"{variant.slug}.txt", self.output / "scores" / f"{variant.slug}.json")
        inputs = (*scripts("score", "data"), *SCORING, *PIECES)
        name, identity = f"score:{variant.slug}", self.unplaced(command)
        return Stage(name, tuple(command), outputs, (generate,), inputs, identity=identity)

    # --- all of them

    def compare(self, after: tuple[Stage, ...]) -> Stage:
        settings = self.settings
        command = [*module("compare"), "--output", self.shown, "--data", self.data, "--split", settings.split]
        command += ["--copy", settings.copy]
        for encoding in settings.encodings:
            command += ["--pos-enc", encoding.label]
        outputs = tuple(self.output / name for name in ("comparison.json", "curves.png", "gallery.md"))
        inputs = (*scripts("compare", "gallery", "data"), *self.data_inputs, *tables())
        return Stage("compare", tuple(command), outputs, after, inputs, identity=self.unplaced(command))
