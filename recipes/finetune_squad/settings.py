"""Settings of the SQuAD recipe; conf/ has the values and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from recipes.lib import launch
from recipes.lib.finetuning.questions.settings import (
    DECIDED_OF_QUESTIONS,
    QuestionSettings,
    english,
    file_names,
    refuse_same,
)
from recipes.lib.finetuning.settings import BUILTIN
from recipes.lib.recipe import about
from recipes.lib.values import Flags, Refused

from . import published

CONF = Path(__file__).parent / "conf"
SQUAD = "squad"


@dataclass(kw_only=True)
class Settings(QuestionSettings):
    version: Literal["1.1", "2.0"] = field(metadata=about("Version of SQuAD; in 2.0 a question may have no answer."))
    data: str = field(
        default=SQUAD,
        metadata=about(
            f"Questions: {SQUAD} (downloaded), {BUILTIN} (small, invented), a FOLDER with "
            "train-v1.1.json and dev-v1.1.json or train.json and dev.json, or a single FILE, which is"
            " split by article, 8:2; plain or .gz."
        ),
    )
    train_file: str = field(
        default="", metadata=about("Training questions instead of --data, together with --dev-file; plain or .gz.")
    )
    dev_file: str = field(default="", metadata=about("Questions to answer and to score; plain or .gz."))
    bad: Literal["refuse", "skip", "repair"] = field(
        metadata=about("What to do with unusable questions: stop with a list, leave them out, or repair them.")
    )
    tokenizer_path: str = field(
        default="auto",
        metadata=about("Tokenizer of the models, if it is not next to their dict.txt; or words or chars."),
    )
    max_length: int = launch.at_least(8, "Maximum number of pieces of a window, including the question.")
    separators: Literal[1, 2] = field(
        default=2, metadata=about("Number of </s> between question and context: 1 for BERT, 2 for RoBERTa.")
    )
    segments: Literal["none", "input", "head"] = field(
        default="none",
        metadata=about("New segments of question and context: vectors at the input, or biases per head."),
    )
    null_threshold: float = field(
        default=0.0,
        metadata=about(
            "For version 2.0: a question whose odds of having no answer exceed this threshold gets no answer."
        ),
    )
    epochs: int = launch.at_least(1, "Number of epochs.")
    warmup: float = field(default=0.0, metadata=about("Fraction of the updates in which the learning rate rises."))
    paper: Literal["none", "m1-m4", "m1-m4-large", "m4m-small", "m4m", "m4m-large"] = field(
        default="none", metadata=about("Paper whose numbers are shown next to ours.")
    )
    train: Flags = field(metadata=about("A flag of fairseq-train."))

    decided = DECIDED_OF_QUESTIONS
    tokenizer_names = ("auto", "words", "chars", "spaces")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.warmup < 1:
            raise Refused(f"--warmup is {self.warmup}: a part of the updates, 0 or more and less than 1, is wanted")
        self.check_windows("--max-length", self.max_length, self.separators)
        if self.number("batch-size", 0) < 1:
            raise Refused("--train.batch-size N, in windows, is wanted")
        if self.null_threshold and self.version != "2.0":
            raise Refused("--null-threshold is of --version 2.0: leave it out")
        self._check_data()

    def _check_data(self) -> None:
        if bool(self.train_file) != bool(self.dev_file):
            raise Refused("--train-file and --dev-file go together")
        refuse_same(self.train_file, self.dev_file)
        if self.train_file and self.data not in (SQUAD, BUILTIN):
            raise Refused(f"--data {self.data} and --train-file: give one of them")
        if self.invented and self.version != "1.1":
            raise Refused(f"--data {BUILTIN}: its questions have answers, as --version 1.1 has")
        if self.data not in (SQUAD, BUILTIN) and not Path(self.data).exists():
            raise Refused(f"--data {self.data}: no such file or folder; there are: {SQUAD}, {BUILTIN}")

    def unused(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        if self.question_files or self.invented:
            reasons["raw"] = "nothing is fetched"
        if self.train_file:
            reasons["data"] = "--train-file and --dev-file take its place"
        if self.version == "1.1":
            reasons["null_threshold"] = "all questions of version 1.1 have answers"
        if self.paper != "none" and not published.has_figures(self.paper, self.version, self.max_length):
            reasons["paper"] = f"{self.paper} has no figure for version {self.version} and windows of {self.max_length}"
        return reasons

    @property
    def batch(self) -> int:
        """Return the number of windows in an update."""
        return self.number("batch-size", 0) * self.batches

    @property
    def invented(self) -> bool:
        return self.data == BUILTIN and not self.train_file

    @property
    def question_files(self) -> Mapping[str, str]:
        if self.train_file:
            return {"train": self.train_file, "eval": self.dev_file}
        if self.data in (SQUAD, BUILTIN):
            return {}
        if Path(self.data).is_file():
            return {"text": self.data}
        return {"train": self._named("train"), "eval": self._named("dev")}

    def _named(self, split: str) -> str:
        file = english([Path(self.data)], split, self.version)
        if file is None:
            names = " or ".join(file_names(split, self.version))
            raise Refused(f"--data {self.data} has no {names}, plain or .gz; or name --train-file, --dev-file")
        return file
