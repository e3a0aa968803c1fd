"""What the demo runs: every command, in order. Plain fairseq, but for `--pos-enc`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recipes.lib.encodings import Encoding, parse_all
from recipes.lib.flags import ALONE, PLUGIN, QUIET, WHOLE
from recipes.lib.recipe import Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .settings import Settings

HERE = Path(__file__).parent
SHARED = HERE.parent / "lib" / "translation"
SOURCE, TARGET = "en", "inv"  # English, and the invented language
LANGUAGES = ("--source-lang", SOURCE, "--target-lang", TARGET)


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    """`shown` is the output folder as the commands name it, relative to the repository."""
    return Planner(settings, output, shown).plan()


@dataclass(frozen=True)
class Planner:
    settings: Settings
    output: Path
    shown: str

    @property
    def encodings(self) -> list[Encoding]:
        return parse_all(self.settings.encodings)

    def plan(self) -> Plan:
        prepare = [corpus := self.corpus()]
        prepare += [subwords := self.subwords(corpus)]
        prepare += [binary := self.binarise(subwords)]
        chains = {one.label: self.chain(one, binary) for one in self.encodings}
        trained = tuple(chain[0] for chain in chains.values())
        measure = self.measure(trained)
        scored = tuple(chain[-1] for chain in chains.values())
        finish = [measure, self.report(measure, scored, trained)]
        return Plan([[prepare], list(chains.values()), [finish]])

    def corpus(self) -> Stage:
        command = ["python", "-m", "recipes.lib.invented.sentences", "--output", f"{self.shown}/raw"]
        command += ["--seed", str(self.settings.seed), *as_arguments({**self.settings.corpus})]
        inputs = (SHARED.parent / "invented" / "sentences.py",)
        return Stage("corpus", tuple(command), (self.output / "raw",), inputs=inputs)

    def subwords(self, corpus: Stage) -> Stage:
        command = [*_shared("subwords"), "--raw", f"{self.shown}/raw", "--output", f"{self.shown}/subwords"]
        command += ["--languages", SOURCE, TARGET, "--model-type", "bpe", *as_arguments({**self.settings.subwords})]
        outputs = (self.output / "subwords",)
        return Stage("subwords", tuple(command), outputs, (corpus,), inputs=(SHARED / "subwords.py",))

    def binarise(self, subwords: Stage) -> Stage:
        command = ["fairseq-preprocess", *LANGUAGES, "--joined-dictionary", "--workers", "1"]
        for split in ("train", "valid", "test"):
            command += [f"--{split}pref", f"{self.shown}/subwords/{split}"]
        command += ["--destdir", f"{self.shown}/data-bin"]
        return Stage("binarise", tuple(command), (self.output / "data-bin",), (subwords,))

    def chain(self, encoding: Encoding, binary: Stage) -> list[Stage]:
        train = self.train(encoding, binary)
        generate = self.generate(encoding.slug, train)
        return [train, generate, self.score(encoding.slug, generate)]

    def train(self, encoding: Encoding, binary: Stage) -> Stage:
        name = encoding.slug
        command = ["fairseq-train", f"{self.shown}/data-bin", *PLUGIN, *LANGUAGES]
        command += ["--arch", "posenc_transformer_tiny", *encoding.flags(), *as_arguments(self.settings.train)]
        command += ["--seed", str(self.settings.seed), "--cpu", *WHOLE, *QUIET, "--log-interval", "20"]
        command += ["--no-epoch-checkpoints", "--save-dir", f"{self.shown}/checkpoints/{name}"]
        outputs = (self.output / "checkpoints" / name,)
        return Stage(f"train:{name}", tuple(command), outputs, (binary,), resumes=True)

    def generate(self, name: str, train: Stage) -> Stage:
        command = ["fairseq-generate", f"{self.shown}/data-bin", *PLUGIN, *LANGUAGES]
        command += ["--path", f"{self.shown}/checkpoints/{name}/checkpoint_last.pt", "--gen-subset", "test"]
        command += ["--bpe", "sentencepiece", "--sentencepiece-model", f"{self.shown}/subwords/model.model"]
        command += [*as_arguments(self.settings.generate), "--cpu", *ALONE, *WHOLE, *QUIET]
        command += ["--results-path", f"{self.shown}/generated/{name}"]
        return Stage(f"generate:{name}", tuple(command), (self.output / "generated" / name,), (train,))

    def score(self, name: str, generate: Stage) -> Stage:
        command = [*_shared("score"), "--generated", f"{self.shown}/generated/{name}/generate-test.txt"]
        # The raw references: fairseq would score against references that went through the subwords.
        command += ["--reference", f"{self.shown}/raw/test.{TARGET}", "--output", f"{self.shown}/scores/{name}"]
        outputs = (self.output / "scores" / name,)
        return Stage(f"score:{name}", tuple(command), outputs, (generate,), inputs=(SHARED / "score.py",))

    def measure(self, trained: tuple[Stage, ...]) -> Stage:
        command = [*_shared("measure"), "--cpu", "--output", f"{self.shown}/measured.json"]
        for one in self.encodings:
            command += ["--checkpoint", f"{one.label}:{self.shown}/checkpoints/{one.slug}/checkpoint_last.pt"]
        outputs = (self.output / "measured.json",)
        return Stage("measure", tuple(command), outputs, trained, inputs=(SHARED / "measure.py",))

    def report(self, measure: Stage, scored: tuple[Stage, ...], trained: tuple[Stage, ...]) -> Stage:
        command = [*_module("report"), "--output", self.shown, "--seed", str(self.settings.seed)]
        command += ["--encodings", *self.settings.encodings]
        outputs = tuple(self.output / f"results.{kind}" for kind in ("json", "md"))
        inputs = (HERE / "report.py", HERE / "template.md", SHARED / "figure.py")
        outputs = (*outputs, self.output / "bleu.png")
        return Stage("report", tuple(command), outputs, (measure, *scored, *trained), inputs)


def _module(name: str) -> list[str]:
    return ["python", "-m", f"recipes.demo.{name}"]


def _shared(name: str) -> list[str]:
    return ["python", "-m", f"recipes.lib.translation.{name}"]
