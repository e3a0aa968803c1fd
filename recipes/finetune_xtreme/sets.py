"""What is scored in other languages than it was trained in: XNLI, and the sets of questions, as recipes plan them.

data-bin-scripts/spans/sets.py has the files' names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.lib.finetuning.sentences import xnli

ENGLISH, XNLI, XNLI_LANGUAGES = xnli.ENGLISH, xnli.XNLI, xnli.LANGUAGES
DEPTH = 4  # of folders in which published files may lie
ALL_LANGUAGES = ("xnli.", "tydiqa-")  # of names of files that have them all, or spell them out
CHANCE = round(100 / 3, 2)  # of XNLI's three classes, in percent


@dataclass(frozen=True)
class QuestionSet:
    """A set of questions in several languages.

    Attributes:
        name: for prepare_spans.py --set and fetch.py.
        questions: how many the published files have, by language.
        by_language: whether the set's own script has rules for each language; otherwise SQuAD 1.1's hold for all.
        archive: a file with all languages; empty if each language has its own.
        files: patterns of the files with the questions of a language.
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
        """Return the rules of fairseq_posenc.metrics.squad."""
        return f"mlqa-{language}" if self.by_language else "squad-v1.1"

    def fetched(self, languages: tuple[str, ...]) -> list[str]:
        """Return what fetch.py is asked for."""
        return [self.archive] if self.archive else [f"{self.name}/{self.name}.{one}.json" for one in languages]

    def found(self, folder: Path) -> list[Path]:
        """Return the user's files; the stage that reads them names those that are missing."""
        below = ["*/" * depth for depth in range(DEPTH)]
        return sorted({path for one in self.files for above in below for path in folder.glob(f"{above}{one}")})


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
    """Return a task's name, however it is capitalised; unknown words as they are."""
    return {name.lower(): name for name in TASKS}.get(word.lower(), word)


def without_files(languages: Sequence[str], there: Sequence[Path]) -> list[str]:
    """Return the languages without a file, judged by names such as `dev-de.tsv` and `xquad.de.part1.json.gz`."""
    names = [path.name for path in there]
    if any(name.startswith(ALL_LANGUAGES) for name in names):
        return []
    return [one for one in languages if not any(f"{sign}{one}." in name for sign in ".-" for name in names)]


def languages_of(task: str) -> tuple[str, ...]:
    return XNLI_LANGUAGES if task == XNLI else SETS[task].languages
