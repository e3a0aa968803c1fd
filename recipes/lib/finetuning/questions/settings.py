"""Define the settings of the recipes that train on SQuAD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recipes.lib import launch, places
from recipes.lib.recipe import about
from recipes.lib.values import Refused

from ..settings import DECIDED, FineTuning

DECIDED_OF_QUESTIONS = {
    **DECIDED,
    "pos-enc-args": "--pos-enc-args",
    "lr-scheduler": "--warmup, after which the learning rate falls linearly to 0",
    "max-tokens": "--train.batch-size, the number of windows in a batch",
    **dict.fromkeys(("task", "criterion"), "the recipe uses posenc_squad"),
}


@dataclass(kw_only=True)
class QuestionSettings(FineTuning):
    train_file: str = field(default="", metadata=about("File with the training questions, plain or .gz."))
    dev_file: str = field(default="", metadata=about("File with the validation questions, plain or .gz."))
    limit_dev: int = launch.at_least(0, "Number of questions to score (0: all).", default=0)
    stride: int = launch.at_least(
        1,
        "For question answering: number of subword pieces between the starts of two consecutive windows.",
        default=128,
    )
    longest_question: int = launch.at_least(
        1, "Maximum number of subword pieces of a question; longer questions are cut and counted.", default=64
    )
    pos_enc_args: str = field(
        default="",
        metadata=about(
            "For question answering: options to add to the encodings of the pretrained models. For longer windows, "
            "give "
            "extend=interpolate,extend_to=N, for example."
        ),
    )
    longest_answer: int = launch.at_least(1, "Maximum number of pieces of an answer.", default=30)
    n_best: int = launch.at_least(1, "Number of answers per question in nbest_predictions.json.", default=20)

    def refuse_missing(self) -> None:
        places.refuse_missing("train-file", self.train_file)
        places.refuse_missing("dev-file", self.dev_file)
        super().refuse_missing()

    def check_windows(self, option: str, length: int, separators: int) -> None:
        """Refuse windows that have no room for context after the longest question.

        Args:
            option: The option that sets the length of windows, for the error message.
            length: Maximum length of a window in subword pieces.
            separators: Number of </s> between question and context.
        """
        if length < self.longest_question + separators + 3:
            raise Refused(
                f"{option} {length} leaves no room for context after a question of --longest-question "
                f"{self.longest_question} pieces. Use longer windows or shorter questions."
            )

    @property
    def question_files(self) -> Mapping[str, str]:
        """Return the question files that the user names, keyed by the option of prepare_spans.py that receives them."""
        raise NotImplementedError


def refuse_same(train: str, dev: str) -> None:
    """Refuse the same file for training and development, because scores on training questions mean nothing."""
    if train and dev and Path(train).resolve() == Path(dev).resolve():
        raise Refused(f"--train-file and --dev-file are the same file, {train}. Name two different files.")


def file_names(split: str, version: str) -> tuple[str, str]:
    """Return the two accepted names of a file: the published name, and the name without the version."""
    return f"{split}-v{version}.json", f"{split}.json"


def english(folders: Sequence[Path], split: str, version: str) -> str | None:
    """Return the path of SQuAD's file for a split, plain or .gz, from the first folder that has it, or None."""
    names = [f"{name}{end}" for name in file_names(split, version) for end in ("", ".gz")]
    paths = (folder / name for folder in folders for name in names)
    return next((str(path) for path in paths if path.is_file()), None)
