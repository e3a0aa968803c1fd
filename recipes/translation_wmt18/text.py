"""Prepare raw parallel text for fairseq, in stages that both directions of a pair share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.lib import places
from recipes.lib.planning import LIB, SCRIPTS, flags, module
from recipes.lib.recipe import ROOT
from recipes.lib.stages import Stage

from .layout import Direction, Place
from .settings import BUILTIN, SPLITS, WMT18, Settings

SHARED = LIB / "translation"
TEXT = (LIB / "lines.py", SHARED / "parallel.py")
BUILTIN_SIZES = {"train": 1000, "valid": 50, "test": 50}
#: Files besides data-bin-scripts/parallel/ that determine the prepared text.
SHARED_SCRIPTS = ("prepare_parallel.py", "sources.tsv", "corpora/lines.py", "corpora/compressed.py")
PREPARE_WMT18 = "data-bin-scripts/prepare_wmt18.sh"


@dataclass(frozen=True)
class Text:
    """Define the stages that prepare the text of a pair of languages; `direction` is the pair's first direction."""

    settings: Settings
    direction: Direction
    place: Place

    @cached_property
    def stages(self) -> list[Stage]:
        """Return the stages that prepare the text; the last one writes data-bin."""
        corpus = self.corpus()
        subwords = self.subwords(corpus[-1])
        return [*corpus, subwords, self.binarise(subwords)]

    def notes(self) -> list[str]:
        """Return notes about the text for the user."""
        if self.settings.corpus == WMT18 and not (ROOT / PREPARE_WMT18).exists():
            problem = f"The stages of --corpus {WMT18} cannot run, because {PREPARE_WMT18} does not exist"
            return [f"{problem}. To run the recipe, give --corpus DIR."]
        if self.settings.corpus == BUILTIN:
            return [
                f"In the built-in corpus, {self.direction.source} is English and {self.direction.target} is an "
                "invented language. This corpus only tests the recipe. The scores on this corpus do not show the "
                "quality of encodings."
            ]
        return []

    @property
    def languages(self) -> tuple[str, str]:
        return (self.direction.source, self.direction.target)

    def corpus(self) -> list[Stage]:
        """Return the stages that write the checked text into the folder raw."""
        settings = self.settings
        before: list[Stage] = []
        inputs = [*TEXT]
        if settings.corpus == BUILTIN:
            before, folder = [self.builtin()], self.place.named("builtin")
        elif settings.corpus == WMT18:
            before, folder = [self.wmt18()], self.place.named("wmt18")
        else:
            folder = str(Path(settings.corpus).resolve())
            inputs += sorted(self.files(Path(folder)))
        command = module("lib.translation.parallel") + flags(folder=folder, output=self.place.named("raw"))
        command += [*self.direction.flags(), *flags(**{f"{split}_set": name for split, name in settings.sets.items()})]
        command += flags(bad_lines=settings.bad_lines, limit=settings.limit)
        command += flags(longest_words=settings.train_longest_words or None)
        identity = [word for word in command if word != folder]  # the name of the folder does not change the text
        return [*before, self.place.runs("corpus", command, ["raw"], before[-1:], inputs, identity=identity)]

    def files(self, folder: Path) -> list[Path]:
        """Return the existing files of the user's folder; the stage that reads the files reports missing ones."""
        paths = [
            folder / f"{name}.{language}{end}"
            for name in self.settings.sets.values()
            for language in self.languages
            for end in ("", ".gz")
        ]
        return [path for path in paths if path.exists()]

    def builtin(self) -> Stage:
        command = module("lib.invented.sentences")
        command += flags(output=self.place.named("builtin"), seed=self.settings.seed, names=self.languages)
        command += flags(**BUILTIN_SIZES)
        return self.place.runs("builtin", command, ["builtin"], inputs=[LIB / "invented" / "sentences.py"])

    @property
    def newstest(self) -> str:
        """Return the absolute path of the --newstest folder, because commands run in another working directory."""
        place = self.settings.newstest
        return place if place in ("", "sacrebleu") else str(Path(place).resolve())

    @property
    def raw(self) -> str:
        """Return the path of the --raw folder: the default is relative to the repository, other paths are absolute."""
        return places.raw(self.settings.raw)

    def wmt18(self) -> Stage:
        """Return the stage that fetches missing files of WMT18, checks all files and prepares the text; it can be
        resumed.
        """
        other = next(name for name in self.languages if name != "en")
        command = ["bash", PREPARE_WMT18, *flags(pair=f"en-{other}", newstest=self.newstest)]
        command += flags(output=self.place.named("wmt18"))
        free = flags(raw=self.raw, workers=self.settings.workers)  # folder of the archives, number of processes
        shared = [SCRIPTS / name for name in SHARED_SCRIPTS]
        inputs = [ROOT / PREPARE_WMT18, *shared, *sorted((SCRIPTS / "parallel").glob("*.py"))]
        command, identity = command + free, command
        return self.place.runs("prepare", command, ["wmt18"], inputs=inputs, identity=identity, resumes=True)

    def subwords(self, corpus: Stage) -> Stage:
        settings, named = self.settings, self.place.named
        command = module("lib.translation.subwords") + flags(raw=named("raw"), output=named("subwords"))
        command += flags(languages=self.languages, kind=settings.subwords, separate=settings.separate)
        command += flags(model_type=settings.model_type if settings.subwords == "sentencepiece" else None)
        # Omit the default, so that stages that ran before the option existed keep their identity.
        command += flags(character_coverage=None if settings.character_coverage == 1 else settings.character_coverage)
        command += flags(vocabulary=settings.vocabulary, longest=settings.longest)
        shorter = settings.longest_training != settings.longest
        command += flags(longest_training=settings.longest_training if shorter else None, bad_lines=settings.bad_lines)
        command, identity = command + flags(workers=settings.workers), command
        inputs = [*TEXT, SHARED / "subwords.py"]
        return self.place.runs("subwords", command, ["subwords"], [corpus], inputs, identity=identity)

    def binarise(self, subwords: Stage) -> Stage:
        command = ["fairseq-preprocess", *self.direction.flags()]
        command += flags(joined_dictionary=not self.settings.separate)
        command += flags(**{f"{split}pref": self.place.named("subwords", split) for split in SPLITS})
        command += flags(destdir=self.place.named("data-bin"))
        command, identity = command + flags(workers=self.settings.workers), command
        return self.place.runs("binarise", command, ["data-bin"], [subwords], identity=identity)
