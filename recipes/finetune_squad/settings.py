"""Define the settings of the SQuAD recipe; conf/ has their values and sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from recipes.lib import launch
from recipes.lib.departures import of_flags, of_settings
from recipes.lib.finetuning.questions.settings import (
    DECIDED_OF_QUESTIONS,
    QuestionSettings,
    english,
    file_names,
    refuse_same,
)
from recipes.lib.finetuning.settings import BUILTIN
from recipes.lib.recipe import about
from recipes.lib.settings import read_preset
from recipes.lib.values import Flags, Refused

from . import published

CONF = Path(__file__).parent / "conf"
SQUAD = "squad"
#: Settings that are compared with the preset of a paper, apart from the flags of fairseq-train. --max-length is not one
#: of them, because it chooses the paper's row.
PROTOCOL = ("epochs", "warmup", "stride", "separators", "longest_question", "longest_answer", "null_threshold")


@dataclass(kw_only=True)
class Settings(QuestionSettings):
    version: Literal["1.1", "2.0"] = field(metadata=about("Version of SQuAD; in 2.0 a question may have no answer."))
    data: str = field(
        default=SQUAD,
        metadata=about(
            f"Source of the questions: {SQUAD} downloads SQuAD, {BUILTIN} generates a small invented data set, and a "
            "path names your own folder or file. A folder must contain train-v1.1.json and dev-v1.1.json, or "
            "train.json and dev.json. If the path names a single file, 80 % of its articles are used for training "
            "and 20 % for development. Files can be plain or .gz."
        ),
    )
    train_file: str = field(
        default="",
        metadata=about("File with the training questions, plain or .gz. --train-file and --dev-file replace --data."),
    )
    dev_file: str = field(
        default="", metadata=about("File with the development questions, which are answered and scored, plain or .gz.")
    )
    bad: Literal["refuse", "skip", "repair"] = field(
        metadata=about(
            "What to do with unusable questions: refuse stops and lists them, skip leaves them out, and repair "
            "corrects them."
        )
    )
    tokenizer_path: str = field(
        default="auto",
        metadata=about(
            "Tokenizer of the models: the path of a file or folder, or one of the names words, chars and spaces "
            "(auto: use the tokenizer next to dict.txt)."
        ),
    )
    max_length: int = launch.at_least(8, "Maximum length of a window in subword pieces, including the question.")
    separators: Literal[1, 2] = field(
        default=2, metadata=about("Number of </s> between question and context: 1 for BERT, 2 for RoBERTa.")
    )
    segments: Literal["none", "input", "head"] = field(
        default="none",
        metadata=about(
            "Segment encoding to add to the model: none, input (vectors at the input) or head (biases per head)."
        ),
    )
    null_threshold: float = field(
        default=0.0,
        metadata=about("For SQuAD 2.0: give the empty answer if it scores more than this number above the best span."),
    )
    epochs: int = launch.at_least(1, "Number of epochs.")
    warmup: float = field(
        default=0.0, metadata=about("Fraction of the updates during which the learning rate rises (warm-up).")
    )
    paper: Literal["none", "m1-m4", "m1-m4-large", "m4m-small", "m4m-small-slower", "m4m", "m4m-large"] = field(
        default="none", metadata=about("Paper whose scores the report shows next to the scores of the run.")
    )
    train: Flags = field(metadata=about("Flag of fairseq-train, for example --train.lr 0.001."))

    decided: ClassVar[Mapping[str, str]] = {
        **DECIDED_OF_QUESTIONS,
        "max-positions": "--max-length, the maximum length of a window",
    }
    tokenizer_names = ("auto", "words", "chars", "spaces")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.warmup < 1:
            raise Refused(f"--warmup {self.warmup}: the fraction of updates must be at least 0 and below 1.")
        self.check_windows("--max-length", self.max_length, self.separators)
        if self.number("batch-size", 0) < 1:
            raise Refused("--train.batch-size is missing. Give the number of windows per batch, for example 32.")
        if self.null_threshold and self.version != "2.0":
            raise Refused("--null-threshold is only for --version 2.0. Leave this option out.")
        self._check_data()

    def _check_data(self) -> None:
        if bool(self.train_file) != bool(self.dev_file):
            raise Refused("--train-file and --dev-file must be given together. Give both options or neither.")
        refuse_same(self.train_file, self.dev_file)
        if self.train_file and self.data not in (SQUAD, BUILTIN):
            raise Refused(f"--data {self.data} and --train-file both name questions. Leave out one of these options.")
        if self.invented and self.version != "1.1":
            problem = f"does not work with --version {self.version}, because all built-in questions have answers"
            raise Refused(f"--data {BUILTIN} {problem}. Use --version 1.1.")
        if self.data not in (SQUAD, BUILTIN) and not Path(self.data).exists():
            raise Refused(f"--data {self.data}: the file does not exist. Name a file, a folder, {SQUAD} or {BUILTIN}.")

    def unused(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        if self.question_files or self.invented:
            reasons["raw"] = "nothing is fetched"
        if self.train_file:
            reasons["data"] = "--train-file and --dev-file replace it"
        if self.version == "1.1":
            reasons["null_threshold"] = "all questions of version 1.1 have answers"
        if self.paper != "none" and not published.has_figures(self.paper, self.version, self.max_length):
            reasons["paper"] = (
                f"the paper {self.paper} reports no scores for version {self.version} and windows of {self.max_length} "
                "pieces"
            )
        return reasons

    def departures(self) -> list[str]:
        """Return the differences between these settings and the preset of their paper.

        If the paper does not state a value, the preset has the value of the authors' code.
        """
        if self.paper not in published.PAPERS:
            return []
        preset = read_preset(CONF / f"{self.paper}.toml")
        default = {name: getattr(type(self), name, None) for name in PROTOCOL}
        texts = of_settings({name: preset.get(name.replace("_", "-"), default[name]) for name in PROTOCOL}, self)
        texts += of_flags(preset["train"], self.train)
        preset_batch = preset["batches"] * preset["train"]["batch-size"]
        return texts + ([f"{self.batch} windows per update, not {preset_batch}"] if self.batch != preset_batch else [])

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
            problem = f"the folder has no {names}, plain or .gz"
            raise Refused(f"--data {self.data}: {problem}. Name the files with --train-file and --dev-file.")
        return file
