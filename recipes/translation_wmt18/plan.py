"""What the recipe runs: every command, in order. Plain fairseq, but for `--pos-enc`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.lib import launch
from recipes.lib.encodings import Encoding
from recipes.lib.flags import ALONE, PLUGIN, QUIET, WHOLE
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .settings import BUILTIN, SPLITS, WMT18, Settings

LIB = ROOT / "recipes" / "lib"
SHARED = LIB / "translation"
TEXT = (LIB / "lines.py", LIB / "folders.py", SHARED / "parallel.py")
BUILTIN_SIZES = {"train": 1000, "valid": 50, "test": 50}
LEAST_KEPT = 10  # checkpoints
PREPARE_WMT18 = "data-bin-scripts/prepare_wmt18.sh"


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    return Planner(settings, output, shown).plan()


def module(name: str) -> list[str]:
    return ["python", "-m", f"recipes.{name}"]


@dataclass(frozen=True)
class Planner:
    settings: Settings
    output: Path
    shown: str  # the output folder as the commands name it, relative to the repository

    def plan(self) -> Plan:
        prepare = [self.check(), *self.corpus]
        prepare += [subwords := self.subwords(self.corpus[-1])]
        prepare += [binary := self.binarise(subwords)]
        chains = [self.chain(encoding, binary) for encoding in self.settings.encodings]
        averaged = tuple(chain[1] for chain in chains)
        measure = self.measure(averaged)
        finish = [measure, self.compare(measure, tuple(chain[-1] for chain in chains))]
        return Plan([[prepare], chains, [finish]], tuple(self.notes()))

    def notes(self) -> list[str]:
        settings = self.settings
        most = settings.number("max-tokens", 0)
        told = launch.notes(settings, launch.effective_batch(settings, most) if most else "")
        if settings.corpus == WMT18 and not (ROOT / PREPARE_WMT18).exists():
            told.append(f"--corpus {WMT18} can be looked at only: {PREPARE_WMT18} is not there yet; give a FOLDER")
        if settings.corpus == BUILTIN:
            told.append(
                f"The built-in corpus: English, as {settings.source_lang}, into an invented language, as "
                f"{settings.target_lang}. It shows that the machinery works, not what an encoding is worth."
            )
        return told

    # --- the text

    def check(self) -> Stage:
        """Models, the options of decoding and the tokenizer of BLEU: what would fail hours later."""
        command = [*module("lib.check_models"), "--output", f"{self.shown}/checked.json"]
        command += ["--target-lang", self.settings.target_lang]
        for encoding in self.settings.encodings:
            command += ["--pos-enc", encoding.label]
        command += ["--generate", shlex.join(as_arguments(self.settings.generate)), "--", *self.model_flags()]
        inputs = (ROOT / "recipes" / "lib" / "check_models.py",)
        return Stage("check", tuple(command), (self.output / "checked.json",), inputs=inputs)

    @cached_property
    def corpus(self) -> list[Stage]:
        """The stages that lead to raw/{train,valid,test}.{source,target}."""
        settings = self.settings
        before: tuple[Stage, ...] = ()
        inputs: tuple[Path, ...] = TEXT
        names = {"train": settings.train_set, "valid": settings.valid_set, "test": settings.test_set}
        folder = settings.corpus
        if settings.corpus == BUILTIN:
            before, folder, names = (self.builtin(),), f"{self.shown}/builtin", dict(zip(SPLITS, SPLITS, strict=True))
        elif settings.corpus == WMT18:
            before, folder = self.wmt18(), f"{self.shown}/wmt18"
        else:
            folder = str(Path(settings.corpus).resolve())
            inputs += tuple(sorted(self.files(Path(folder), names)))
        command = [*module("lib.translation.parallel"), "--folder", folder, "--output", f"{self.shown}/raw"]
        command += ["--source-lang", settings.source_lang, "--target-lang", settings.target_lang]
        for split, name in names.items():
            command += [f"--{split}-set", name]
        command += ["--bad-lines", settings.bad_lines, "--limit", str(settings.limit)]
        # The text counts, not where it lies.
        identity = tuple(word for word in command if word != folder)
        corpus = Stage("corpus", tuple(command), (self.output / "raw",), before[-1:], inputs, identity=identity)
        return [*before, corpus]

    def files(self, folder: Path, names: dict[str, str]) -> list[Path]:
        """Those of the user's folder that are there; what is missing is told by the stage."""
        languages = (self.settings.source_lang, self.settings.target_lang)
        wanted = [
            folder / f"{name}.{language}{end}"
            for name in names.values()
            for language in languages
            for end in ("", ".gz")
        ]
        return [path for path in wanted if path.exists()]

    def builtin(self) -> Stage:
        command = [*module("demo.corpus"), "--output", f"{self.shown}/builtin", "--seed", str(self.settings.seed)]
        command += ["--names", self.settings.source_lang, self.settings.target_lang, *as_arguments({**BUILTIN_SIZES})]
        inputs = (ROOT / "recipes" / "demo" / "corpus.py",)
        return Stage("builtin", tuple(command), (self.output / "builtin",), inputs=inputs)

    def wmt18(self) -> tuple[Stage, ...]:
        other = next(name for name in (self.settings.source_lang, self.settings.target_lang) if name != "en")
        fetch = ("python", "data-bin-scripts/fetch.py", WMT18)
        prepare = ("bash", PREPARE_WMT18, "--pair", f"en-{other}", "--output", f"{self.shown}/wmt18")
        # No outputs: what it fetches belongs to all runs, and it checks for itself what is there.
        fetched = Stage("fetch", fetch, (), inputs=(ROOT / PREPARE_WMT18,))
        return fetched, Stage("prepare", prepare, (self.output / "wmt18",), (fetched,), (ROOT / PREPARE_WMT18,))

    def subwords(self, corpus: Stage) -> Stage:
        settings = self.settings
        command = [
            *module("lib.translation.subwords"),
            "--raw",
            f"{self.shown}/raw",
            "--output",
            f"{self.shown}/subwords",
        ]
        command += ["--languages", settings.source_lang, settings.target_lang, "--kind", settings.subwords]
        command += ["--model-type", settings.model_type] if settings.subwords == "sentencepiece" else []
        command += ["--vocabulary", str(settings.vocabulary), "--longest", str(settings.longest)]
        command += ["--bad-lines", settings.bad_lines]
        identity = tuple(command)  # the number of processes changes nothing
        command += ["--workers", str(settings.workers)]
        outputs = (self.output / "subwords",)
        inputs = (*TEXT, SHARED / "subwords.py")
        return Stage("subwords", tuple(command), outputs, (corpus,), inputs, identity=identity)

    @property
    def languages(self) -> tuple[str, ...]:
        return ("--source-lang", self.settings.source_lang, "--target-lang", self.settings.target_lang)

    def binarise(self, subwords: Stage) -> Stage:
        command = ["fairseq-preprocess", *self.languages, "--joined-dictionary"]
        for split in SPLITS:
            command += [f"--{split}pref", f"{self.shown}/subwords/{split}"]
        command += ["--destdir", f"{self.shown}/data-bin"]
        identity = tuple(command)
        command += ["--workers", str(self.settings.workers)]
        return Stage("binarise", tuple(command), (self.output / "data-bin",), (subwords,), identity=identity)

    # --- one encoding

    def chain(self, encoding: Encoding, binary: Stage) -> list[Stage]:
        train = self.train(encoding, binary)
        average = self.average(encoding, train)
        generate = self.generate(encoding, average)
        return [train, average, generate, self.score(encoding, generate)]

    def model_flags(self) -> list[str]:
        return [*PLUGIN, *self.languages, "--arch", self.settings.arch, *as_arguments(self.settings.train)]

    def train(self, encoding: Encoding, binary: Stage) -> Stage:
        settings = self.settings
        command = [f"{self.shown}/data-bin", *WHOLE, *QUIET, "--log-interval", "20"]  # the user's come later, and win
        command += [*self.model_flags(), *encoding.flags(), "--seed", str(settings.seed)]
        command += ["--save-dir", f"{self.shown}/checkpoints/{encoding.slug}"]
        return Stage(
            f"train:{encoding.slug}",
            launch.train_command([*command, *self.kept()], settings),
            (self.output / "checkpoints" / encoding.slug,),
            (binary,),
            resumes=True,
            identity=launch.identity(command, settings),  # how many checkpoints are kept is none of it
        )

    @property
    def by_update(self) -> bool:
        return "save-interval-updates" in self.settings.train

    def kept(self) -> list[str]:
        """As many checkpoints as are averaged, and a few more: who wants another mean need not train again."""
        number = max(self.settings.average, LEAST_KEPT)
        if self.by_update:
            return ["--no-epoch-checkpoints", "--keep-interval-updates", str(number)]
        return ["--keep-last-epochs", str(number)]

    def average(self, encoding: Encoding, train: Stage) -> Stage:
        command = ["python", "-m", "fairseq_posenc", "average", "--inputs", f"{self.shown}/checkpoints/{encoding.slug}"]
        command += [f"--num-{'update' if self.by_update else 'epoch'}-checkpoints", str(self.settings.average)]
        command += ["--output", self.averaged(encoding)]
        return Stage(
            f"average:{encoding.slug}", tuple(command), (self.output / "averaged" / f"{encoding.slug}.pt",), (train,)
        )

    def averaged(self, encoding: Encoding) -> str:
        return f"{self.shown}/averaged/{encoding.slug}.pt"

    def decoding(self, encoding: Encoding) -> list[str]:
        """The arguments that fairseq-generate and fairseq-interactive share."""
        command = [f"{self.shown}/data-bin", *PLUGIN, *self.languages, "--path", self.averaged(encoding)]
        if self.settings.subwords == "sentencepiece":
            command += ["--bpe", "sentencepiece", "--sentencepiece-model", f"{self.shown}/subwords/model.model"]
        else:
            command += ["--tokenizer", "moses", "--bpe", "fastbpe", "--bpe-codes", f"{self.shown}/subwords/codes"]
        return [*command, *as_arguments(self.settings.generate)]

    def generate(self, encoding: Encoding, average: Stage) -> Stage:
        command = ["fairseq-generate", *WHOLE, *QUIET, *ALONE, *self.decoding(encoding), "--gen-subset", "test"]
        command += ["--results-path", f"{self.shown}/generated/{encoding.slug}"]
        outputs = (self.output / "generated" / encoding.slug,)
        on_device = launch.on_one_device(command, self.settings)
        return Stage(f"generate:{encoding.slug}", on_device, outputs, (average,), identity=tuple(command))

    def interactive(self, encoding: Encoding) -> str:
        """The command that translates raw text, one sentence a line."""
        command = ["fairseq-interactive", *ALONE, *self.decoding(encoding), "--buffer-size", "64"]
        if "max-tokens" not in self.settings.generate:
            command += ["--max-tokens", "4000"]
        cpu = ["--cpu"] if self.settings.device == "cpu" else []
        return f"{shlex.join([*command, *cpu])} < FILE | grep ^D- | cut -f 3"

    def score(self, encoding: Encoding, generate: Stage) -> Stage:
        target = self.settings.target_lang
        name = f"{encoding.slug}.{target}"
        command = [
            *module("lib.translation.score"),
            "--generated",
            f"{self.shown}/generated/{encoding.slug}/generate-test.txt",
        ]
        # The raw references: fairseq would score against references that went through the subwords.
        command += ["--reference", f"{self.shown}/raw/test.{target}", "--language", target]
        command += [
            "--translation",
            f"{self.shown}/translations/{name}",
            "--output",
            f"{self.shown}/scores/{encoding.slug}.json",
        ]
        outputs = (self.output / "translations" / name, self.output / "scores" / f"{encoding.slug}.json")
        return Stage(
            f"score:{encoding.slug}", tuple(command), outputs, (generate,), (SHARED / "score.py", LIB / "lines.py")
        )

    # --- all of them

    def measure(self, averaged: tuple[Stage, ...]) -> Stage:
        command = [*module("lib.translation.measure"), "--output", f"{self.shown}/measured.json"]
        command += ["--beam", str(self.settings.generate.get("beam", 5))]
        for encoding in self.settings.encodings:
            command += ["--checkpoint", f"{encoding.label}:{self.averaged(encoding)}"]
        identity = (*command, "--precision", self.settings.precision)
        return Stage(
            "measure",
            launch.on_one_device(command, self.settings),
            (self.output / "measured.json",),
            averaged,
            (SHARED / "measure.py",),
            identity=identity,
        )

    def compare(self, measure: Stage, scored: tuple[Stage, ...]) -> Stage:
        target = self.settings.target_lang
        command = [*module("lib.translation.compare"), "--output", self.shown, "--language", target]
        for encoding in self.settings.encodings:
            command += ["--pos-enc", encoding.label]
        outputs = (self.output / "comparison.json", self.output / "bleu.png")
        inputs = (SHARED / "compare.py", SHARED / "figure.py", LIB / "lines.py")
        return Stage("compare", tuple(command), outputs, (measure, *scored), inputs)
