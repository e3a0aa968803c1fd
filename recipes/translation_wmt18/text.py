"""From raw parallel text to what fairseq reads: the stages that both directions of a pair share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.lib import places
from recipes.lib.recipe import ROOT
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .layout import Direction, Place
from .settings import BUILTIN, SPLITS, WMT18, Settings

LIB = ROOT / "recipes" / "lib"
SHARED = LIB / "translation"
TEXT = (LIB / "lines.py", SHARED / "parallel.py")
BUILTIN_SIZES = {"train": 1000, "valid": 50, "test": 50}
#: what decides the text besides data-bin-scripts/parallel/
SHARED_SCRIPTS = ("prepare_parallel.py", "sources.tsv", "corpora/lines.py", "corpora/compressed.py")
PREPARE_WMT18 = "data-bin-scripts/prepare_wmt18.sh"


def module(name: str) -> list[str]:
    return ["python", "-m", f"recipes.{name}"]


@dataclass(frozen=True)
class Text:
    """Of one pair of languages, in the direction that was asked for first."""

    settings: Settings
    direction: Direction
    place: Place

    @cached_property
    def stages(self) -> list[Stage]:
        """The last one leaves data-bin."""
        corpus = self.corpus()
        subwords = self.subwords(corpus[-1])
        return [*corpus, subwords, self.binarise(subwords)]

    def notes(self) -> list[str]:
        """What a user should know of it."""
        if self.settings.corpus == WMT18 and not (ROOT / PREPARE_WMT18).exists():
            return [f"--corpus {WMT18} can be looked at only: {PREPARE_WMT18} is not there yet; give a FOLDER"]
        if self.settings.corpus == BUILTIN:
            return [
                f"The built-in corpus: English, as {self.direction.source}, into an invented language, as "
                f"{self.direction.target}. It shows that the machinery works, not what an encoding is worth."
            ]
        return []

    @property
    def languages(self) -> tuple[str, str]:
        return (self.direction.source, self.direction.target)

    def corpus(self) -> list[Stage]:
        """The stages that lead to raw/{train,valid,test}.{source,target}."""
        settings = self.settings
        before: tuple[Stage, ...] = ()
        inputs: tuple[Path, ...] = TEXT
        if settings.corpus == BUILTIN:
            before, folder = (self.builtin(),), self.place.named("builtin")
        elif settings.corpus == WMT18:
            before, folder = (self.wmt18(),), self.place.named("wmt18")
        else:
            folder = str(Path(settings.corpus).resolve())
            inputs += tuple(sorted(self.files(Path(folder))))
        command = [*module("lib.translation.parallel"), "--folder", folder, "--output", self.place.named("raw")]
        command += self.direction.flags()
        for split, name in settings.sets.items():
            command += [f"--{split}-set", name]
        command += ["--bad-lines", settings.bad_lines, "--limit", str(settings.limit)]
        longest = settings.train_longest_words
        command += ["--longest-words", str(longest)] if longest else []
        # The text counts, not where it lies.
        identity = tuple(word for word in command if word != folder)
        outputs = (self.place.path("raw"),)
        name = self.place.stage("corpus")
        return [*before, Stage(name, tuple(command), outputs, before[-1:], inputs, identity=identity)]

    def files(self, folder: Path) -> list[Path]:
        """Those of the user's folder that are there; what is missing is told by the stage."""
        wanted = [
            folder / f"{name}.{language}{end}"
            for name in self.settings.sets.values()
            for language in self.languages
            for end in ("", ".gz")
        ]
        return [path for path in wanted if path.exists()]

    def builtin(self) -> Stage:
        command = [*module("lib.invented.sentences"), "--output", self.place.named("builtin")]
        command += ["--seed", str(self.settings.seed), "--names", *self.languages, *as_arguments({**BUILTIN_SIZES})]
        inputs = (LIB / "invented" / "sentences.py",)
        return Stage(self.place.stage("builtin"), tuple(command), (self.place.path("builtin"),), inputs=inputs)

    @property
    def newstest(self) -> str:
        """A folder is relative to where the user stands, whose commands run elsewhere."""
        named = self.settings.newstest
        return named if named in ("", "sacrebleu") else str(Path(named).resolve())

    @property
    def raw(self) -> str:
        """As `newstest`; the default is a folder of the repository."""
        return places.raw(self.settings.raw)

    def wmt18(self) -> Stage:
        """It fetches what is missing, goes on after a kill, and checks for itself what is there."""
        settings = self.settings
        other = next(name for name in self.languages if name != "en")
        command = ["bash", PREPARE_WMT18, "--pair", f"en-{other}"]
        command += ["--newstest", self.newstest] if self.newstest else []
        command += ["--output", self.place.named("wmt18")]
        identity = tuple(command)  # neither where the archives lie nor the number of processes
        command += ["--raw", self.raw, "--workers", str(settings.workers)]
        scripts = ROOT / "data-bin-scripts"
        shared = (scripts / name for name in SHARED_SCRIPTS)
        inputs = (ROOT / PREPARE_WMT18, *shared, *sorted((scripts / "parallel").glob("*.py")))
        outputs = (self.place.path("wmt18"),)
        name = self.place.stage("prepare")
        return Stage(name, tuple(command), outputs, inputs=inputs, resumes=True, identity=identity)

    def subwords(self, corpus: Stage) -> Stage:
        settings, named = self.settings, self.place.named
        command = [*module("lib.translation.subwords"), "--raw", named("raw"), "--output", named("subwords")]
        command += ["--languages", *self.languages, "--kind", settings.subwords]
        command += ["--separate"] if settings.separate else []
        command += ["--model-type", settings.model_type] if settings.subwords == "sentencepiece" else []
        if settings.character_coverage != 1:  # unless asked for, trained models stay what they are
            command += ["--character-coverage", str(settings.character_coverage)]
        command += ["--vocabulary", str(settings.vocabulary), "--longest", str(settings.longest)]
        if settings.longest_training != settings.longest:
            command += ["--longest-training", str(settings.longest_training)]
        command += ["--bad-lines", settings.bad_lines]
        identity = tuple(command)  # the number of processes changes nothing
        command += ["--workers", str(settings.workers)]
        outputs = (self.place.path("subwords"),)
        inputs = (*TEXT, SHARED / "subwords.py")
        return Stage(self.place.stage("subwords"), tuple(command), outputs, (corpus,), inputs, identity=identity)

    def binarise(self, subwords: Stage) -> Stage:
        command = ["fairseq-preprocess", *self.direction.flags()]
        command += [] if self.settings.separate else ["--joined-dictionary"]
        for split in SPLITS:
            command += [f"--{split}pref", self.place.named("subwords", split)]
        command += ["--destdir", self.place.named("data-bin")]
        identity = tuple(command)
        command += ["--workers", str(self.settings.workers)]
        outputs = (self.place.path("data-bin"),)
        return Stage(self.place.stage("binarise"), tuple(command), outputs, (subwords,), identity=identity)
