"""Define all commands of the demo, in the order in which they run.

Training and translation use fairseq's own commands with `--pos-enc`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from recipes.lib import planning
from recipes.lib.encodings import Encoding, parse_all
from recipes.lib.flags import ALONE, PLUGIN, QUIET, WHOLE
from recipes.lib.planning import LIB, flags, module
from recipes.lib.recipe import Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .settings import Settings

HERE = Path(__file__).parent
SHARED = LIB / "translation"
SOURCE, TARGET = "en", "inv"  # English and the invented language
LANGUAGES = ("--source-lang", SOURCE, "--target-lang", TARGET)


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    """Return the plan; its commands contain `shown`, the path of the output folder relative to the repository."""
    return Planner(settings, output, shown).plan()


class Planner(planning.Planner[Settings]):
    @property
    def encodings(self) -> list[Encoding]:
        return parse_all(self.settings.encodings)

    def plan(self) -> Plan:
        prepare = [corpus := self.corpus()]
        prepare += [subwords := self.subwords(corpus)]
        prepare += [binary := self.binarise(subwords)]
        seeds = self.settings.training_seeds.seeds
        chains = [self.chain(encoding, seed, binary) for encoding in self.encodings for seed in seeds]
        trained = [chain[0] for chain in chains]
        measure = [self.measure(trained[:: len(seeds)])] if self.settings.measure else []
        report = self.report([*measure, *(chain[-1] for chain in chains), *trained])
        return Plan([[prepare], chains, [[*measure, report]]])

    def corpus(self) -> Stage:
        command = module("lib.invented.sentences")
        command += flags(output=f"{self.shown}/raw", seed=self.settings.seed, **self.settings.corpus)
        return self.stage("corpus", command, ["raw"], inputs=[LIB / "invented" / "sentences.py"])

    def subwords(self, corpus: Stage) -> Stage:
        command = module("lib.translation.subwords")
        command += flags(raw=f"{self.shown}/raw", output=f"{self.shown}/subwords", languages=(SOURCE, TARGET))
        command += flags(model_type="bpe", **self.settings.subwords)
        return self.stage("subwords", command, ["subwords"], [corpus], [SHARED / "subwords.py"])

    def binarise(self, subwords: Stage) -> Stage:
        command = ["fairseq-preprocess", *LANGUAGES, "--joined-dictionary", "--workers", "1"]
        command += flags(**{f"{split}pref": f"{self.shown}/subwords/{split}" for split in ("train", "valid", "test")})
        command += flags(destdir=f"{self.shown}/data-bin")
        return self.stage("binarise", command, ["data-bin"], [subwords])

    def chain(self, encoding: Encoding, seed: int, binary: Stage) -> list[Stage]:
        train = self.train(encoding, seed, binary)
        generate = self.generate(train.variant, train)
        return [train, generate, self.score(train.variant, generate)]

    def train(self, encoding: Encoding, seed: int, binary: Stage) -> Stage:
        slug = self.settings.training_seeds.slug(encoding.slug, seed)
        folder = f"checkpoints/{slug}"
        command = ["fairseq-train", f"{self.shown}/data-bin", *PLUGIN, *LANGUAGES]
        command += ["--arch", "posenc_transformer_tiny", *encoding.flags(), *as_arguments(self.settings.train)]
        command += ["--seed", str(seed), "--cpu", *WHOLE, *QUIET, "--log-interval", "20"]
        command += ["--no-epoch-checkpoints", "--save-dir", f"{self.shown}/{folder}"]
        return replace(self.stage(f"train:{slug}", command, [folder], [binary]), resumes=True)

    def generate(self, name: str, train: Stage) -> Stage:
        command = ["fairseq-generate", f"{self.shown}/data-bin", *PLUGIN, *LANGUAGES]
        command += ["--path", f"{self.shown}/checkpoints/{name}/checkpoint_last.pt", "--gen-subset", "test"]
        command += ["--bpe", "sentencepiece", "--sentencepiece-model", f"{self.shown}/subwords/model.model"]
        command += [*as_arguments(self.settings.generate), "--cpu", *ALONE, *WHOLE, *QUIET]
        command += ["--results-path", f"{self.shown}/generated/{name}"]
        return self.stage(f"generate:{name}", command, [f"generated/{name}"], [train])

    def score(self, name: str, generate: Stage) -> Stage:
        command = module("lib.translation.score")
        command += flags(generated=f"{self.shown}/generated/{name}/generate-test.txt")
        # Score against the raw references. fairseq's own references were split into subwords and joined again.
        command += flags(reference=f"{self.shown}/raw/test.{TARGET}", output=f"{self.shown}/scores/{name}")
        return self.stage(f"score:{name}", command, [f"scores/{name}"], [generate], [SHARED / "score.py"])

    def measure(self, trained: list[Stage]) -> Stage:
        """Return the stage that measures the cost of each encoding on a model that was trained with the first seed."""
        command = module("lib.translation.measure") + flags(cpu=True, output=f"{self.shown}/measured.json")
        for encoding, stage in zip(self.encodings, trained, strict=True):
            checkpoint = f"{self.shown}/checkpoints/{stage.variant}/checkpoint_last.pt"
            command += flags(checkpoint=f"{encoding.label}:{checkpoint}")
        return self.stage("measure", command, ["measured.json"], trained, [SHARED / "measure.py"])

    def report(self, after: list[Stage]) -> Stage:
        settings = self.settings
        command = module("demo.report")
        command += flags(output=self.shown, encodings=tuple(settings.encodings))
        command += [*settings.training_seeds.flags(), "--least-gap", str(settings.least_gap)]
        command += flags(unmeasured=not settings.measure)
        inputs = [HERE / "report.py", HERE / "template.md"]
        return self.stage("report", command, ["results.json", "results.md", "bleu.png"], after, inputs)
