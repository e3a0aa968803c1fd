"""Define XNLI and the multilingual question datasets: languages, numbers of questions, files and scoring rules.

The file names that prepare_spans.py accepts are in data-bin-scripts/spans/sets.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.lib.finetuning.sentences import xnli

ENGLISH, XNLI, XNLI_LANGUAGES = xnli.ENGLISH, xnli.XNLI, xnli.LANGUAGES
DEPTH = 4  # number of levels of folders that are searched for published files
ALL_LANGUAGES = ("xnli.", "tydiqa-")  # files that have all languages, or full language names, begin with these
CHANCE = round(100 / 3, 2)  # accuracy in percent of a random choice among XNLI's three classes


@dataclass(frozen=True)
class QuestionSet:
    """Describe a dataset of questions in several languages.

    Attributes:
        name: Name of the dataset in the options of prepare_spans.py (--set) and fetch.py.
        questions: Number of questions in the published files, by language.
        by_language: Whether the official script has its own scoring rules for each language; otherwise, all
            languages use the rules of SQuAD 1.1.
        archive: The archive with all languages; empty if each language has its own file.
        files: Patterns of the file names.
    """

    name: str
    questions: Mapping[str, int]
    by_language: bool
    archive: str
    files: tuple[str, ...]

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.questions)

    def rules(self, language: str) -> str:
        """Return the name that fairseq_posenc.metrics.squad gives to the scoring rules of a language."""
        return f"mlqa-{language}" if self.by_language else "squad-v1.1"

    def fetched(self, languages: tuple[str, ...]) -> list[str]:
        """Return the names of the files that fetch.py downloads."""
        return [self.archive] if self.archive else [f"{self.name}/{self.name}.{code}.json" for code in languages]

    def files_in(self, folder: Path) -> list[Path]:
        """Return the user's files that exist; the stage that reads the files reports missing files."""
        below = ["*/" * depth for depth in range(DEPTH)]
        return sorted({path for name in self.files for above in below for path in folder.glob(f"{above}{name}")})


SETS = {
    "XQuAD": QuestionSet(
        "xquad",
        dict.fromkeys("en ar de el es hi ru th tr vi zh".split(), 1190),
        by_language=False,
        archive="",
        files=("xquad.*.json*",),
    ),
    "MLQA": QuestionSet(
        "mlqa",
        {"en": 11_590, "ar": 5_335, "de": 4_517, "es": 5_253, "hi": 4_918, "vi": 5_495, "zh": 5_137},
        by_language=True,
        archive="mlqa/MLQA_V1.zip",
        files=("test-context-*-question-*.json*",),
    ),
    "TyDiQA": QuestionSet(
        "tydiqa",
        {"en": 440, "ar": 921, "bn": 113, "fi": 782, "id": 565, "ko": 276, "ru": 812, "sw": 499, "te": 669},
        by_language=False,
        archive="tydiqa/tydiqa-goldp-v1.1-dev.tgz",
        files=("tydiqa*dev*.json*",),
    ),
}
TASKS = (XNLI, *SETS)


def task_named(word: str) -> str:
    """Return the name of a task with the right capitalisation. An unknown name is returned unchanged."""
    return {name.lower(): name for name in TASKS}.get(word.lower(), word)


def without_files(languages: Sequence[str], files: Sequence[Path]) -> list[str]:
    """Return the languages without a file.

    A file name such as `dev-de.tsv` or `xquad.de.part1.json.gz` contains the language of the file.
    """
    names = [path.name for path in files]
    if any(name.startswith(ALL_LANGUAGES) for name in names):
        return []
    return [code for code in languages if not any(f"{sign}{code}." in name for sign in ".-" for name in names)]


def languages_of(task: str) -> tuple[str, ...]:
    return XNLI_LANGUAGES if task == XNLI else SETS[task].languages
