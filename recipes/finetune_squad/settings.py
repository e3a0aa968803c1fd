"""The settings of the SQuAD recipe; the numbers, with their sources, are in conf/."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from recipes.lib import finetuning, launch, places
from recipes.lib.encodings import parse_all
from recipes.lib.finetuning import Model
from recipes.lib.places import RAW
from recipes.lib.recipe import about, of_files
from recipes.lib.values import Flags, Refused

from . import published

CONF = Path(__file__).parent / "conf"
BUILTIN, SQUAD = "builtin", "squad"
GOLD = "right answers"  # as predictions
ARCH = "posenc_roberta_pretrained"
CUTS = ("auto", "words", "chars", "spaces")  # as --tokenizer-path no files

# What the plan writes into the commands itself.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "segments", "pos-enc-args")},
    **dict.fromkeys(("pos-enc", "pretrained", "finetune-from-model", "arch"), "--checkpoint"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("max-epoch", "max-update", "total-num-update"), "--epochs"),
    **dict.fromkeys(("warmup-updates", "lr-scheduler"), "--warmup: it rises to the rate and falls to 0"),
    **dict.fromkeys(("no-epoch-checkpoints", "keep-interval-updates"), "the last checkpoint being kept"),
    "max-positions": "--checkpoint: the model's own; --max-length is that of the windows",
    "max-tokens": "--train.batch-size, in windows",
    **dict.fromkeys(("task", "criterion"), "posenc_squad"),
}


@dataclass(kw_only=True)
class Settings(launch.Training):
    version: Literal["1.1", "2.0"] = field(metadata=about("of SQuAD; in 2.0 questions may have no answer"))
    checkpoint: list[str] = field(
        default_factory=list,
        metadata=about(
            "pretrained models: checkpoints, runs of recipes/pretrain_mlm with all their encodings, folders of Hugging "
            f"Face's, of import-hf or of export-hf; {BUILTIN}: tiny ones, made here"
        ),
    )
    pos_enc: list[str] = field(
        default_factory=list, metadata=about("those that the models have to have, in this order; unset: as they are")
    )
    pretraining: str = field(default="", metadata=of_files("the command that makes the models of a preset"))
    data: str = field(
        default=SQUAD,
        metadata=about(
            f"{SQUAD} (fetched), {BUILTIN} (small, invented), a FOLDER with train-v1.1.json and dev-v1.1.json, or "
            "train.json and dev.json, or a lone FILE, split by article, 8:2; plain or .gz"
        ),
    )
    train_file: str = field(default="", metadata=about("in place of --data, with --dev-file; plain or .gz"))
    dev_file: str = field(default="", metadata=about("what is answered and scored"))
    raw: str = field(default=RAW, metadata=about("where fetch.py puts the sets"))
    limit: int = field(default=0, metadata=about("the first questions of training (0: all)"))
    limit_dev: int = field(default=0, metadata=about("the first questions of what is scored (0: all)"))
    bad: Literal["refuse", "skip", "repair"] = field(metadata=about("questions that cannot be used as they are"))
    tokenizer_path: str = field(
        default="auto", metadata=about("of the models, where it does not lie beside their dict.txt; or words, chars")
    )
    max_length: int = field(metadata=about("pieces of a window, with the question"))
    stride: int = field(metadata=about("pieces from a window to the next"))
    longest_question: int = field(default=64, metadata=about("pieces of a question; the rest is cut off, and counted"))
    separators: Literal[1, 2] = field(default=2, metadata=about("</s> between question and context: 1 is BERT's"))
    segments: Literal["none", "input", "head"] = field(
        default="none",
        metadata=about("of question and context: vectors at the input or biases of each head, made anew"),
    )
    pos_enc_args: str = field(
        default="", metadata=about("added to the models' own, as extend=interpolate,extend_to=N for longer windows")
    )
    longest_answer: int = field(default=30, metadata=about("pieces of an answer"))
    n_best: int = field(default=20, metadata=about("answers that nbest_predictions.json has of a question"))
    null_threshold: float = field(default=0.0, metadata=about("of version 2.0: odds of no answer above it say so"))
    epochs: int = field(metadata=about("of training"))
    warmup: float = field(default=0.0, metadata=about("part of the updates in which the learning rate rises"))
    paper: Literal["none", "m1-m4", "m1-m4-large", "m4m-small", "m4m", "m4m-large"] = field(
        default="none", metadata=about("whose figures stand beside")
    )
    train: Flags = field(metadata=about("a flag of fairseq-train"))

    batch_flag = "batch-size"
    keep = "last"  # the checkpoint that answers; of another recipe maybe the best
    #: what the user calls max_length, also where another recipe's settings are these
    length_option: ClassVar[str] = "--max-length"
    #: what is scored is the development set: without it there is nothing to do
    scores_dev: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        launch.refuse_decided(self.train, DECIDED)
        least = {"limit": 0, "limit_dev": 0, "max_length": 8, "stride": 1, "longest_question": 1, "longest_answer": 1}
        for name, number in {**least, "n_best": 1, "epochs": 1, "threads": 0}.items():
            if getattr(self, name) < number:
                raise Refused(f"--{name.replace('_', '-')} is {getattr(self, name)}: {number} or more is wanted")
        if not 0 <= self.warmup < 1:
            raise Refused(f"--warmup is {self.warmup}: a part of the updates, 0 or more and less than 1, is wanted")
        if self.max_length < self.longest_question + self.separators + 3:
            raise Refused(
                f"{self.length_option} {self.max_length} leaves no room for a context behind --longest-question "
                f"{self.longest_question}"
            )
        if self.number("batch-size", 0) < 1:
            raise Refused("--train.batch-size N, in windows, is wanted")
        if self.null_threshold and self.version != "2.0":
            raise Refused("--null-threshold is of --version 2.0: leave it out")
        self._check_data()
        self.models = self._models()

    def refuse_missing(self) -> None:
        own = "" if self.tokenizer_path in CUTS else self.tokenizer_path
        finetuning.refuse_missing([] if self.builtin else self.models, own)
        places.refuse_missing("train-file", self.train_file)
        places.refuse_missing("dev-file", self.dev_file)

    def unused(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.files or self.invented:
            found["raw"] = "nothing is fetched"
        if self.train_file:
            found["data"] = "--train-file and --dev-file take its place"
        if self.version == "1.1":
            found["null_threshold"] = "all questions of version 1.1 have answers"
        if self.paper != "none" and not published.has_figures(self.paper, self.version, self.max_length):
            found["paper"] = f"{self.paper} has no figure for version {self.version} and windows of {self.max_length}"
        return found

    def _check_data(self) -> None:
        if bool(self.train_file) != bool(self.dev_file) and (self.scores_dev or not self.train_file):
            raise Refused("--train-file and --dev-file go together")
        refuse_same(self.train_file, self.dev_file)
        if self.train_file and self.data not in (SQUAD, BUILTIN):
            raise Refused(f"--data {self.data} and --train-file: give one of them")
        if self.invented and self.version != "1.1":
            raise Refused(f"--data {BUILTIN}: its questions have answers, as --version 1.1 has")
        if self.data not in (SQUAD, BUILTIN) and not Path(self.data).exists():
            raise Refused(f"--data {self.data}: no such file or folder; there are: {SQUAD}, {BUILTIN}")

    def _models(self) -> list[Model]:
        if not self.checkpoint:
            raise Refused(
                "--checkpoint MODEL is wanted: what recipes/pretrain_mlm made (.../checkpoint_last.pt), or a folder of "
                f"Hugging Face's; {self.pretraining or BUILTIN} pretrains {'them' if self.pretraining else 'tiny ones'}"
            )
        if BUILTIN in self.checkpoint and (not self.builtin or self.pos_enc):
            raise Refused(f"--checkpoint {BUILTIN} stands alone: it is several models")
        if not self.builtin:
            found = finetuning.models(self.checkpoint)
            return finetuning.of_encodings(found, parse_all(self.pos_enc), self.pretraining) if self.pos_enc else found
        return [Model(label, Path("checkpoints") / label / finetuning.LAST) for label in ("learned", "shaw")]

    @property
    def tokenizer(self) -> str:
        """A path is relative to where the user stands, whose commands run elsewhere."""
        return self.tokenizer_path if self.tokenizer_path in CUTS else str(Path(self.tokenizer_path).resolve())

    @property
    def builtin(self) -> bool:
        """The models are made here."""
        return self.checkpoint == [BUILTIN]

    @property
    def invented(self) -> bool:
        """The questions are the built-in ones."""
        return self.data == BUILTIN and not self.train_file

    @property
    def files(self) -> list[str]:
        """The user's own, of training and to be answered, or a lone one; none of what is fetched or made."""
        if self.train_file:
            return [one for one in (self.train_file, self.dev_file) if one]
        if self.data in (SQUAD, BUILTIN):
            return []
        return [self.data] if Path(self.data).is_file() else [self._named("train"), self._named("dev")]

    def _named(self, split: str) -> str:
        found = english([Path(self.data)], split, self.version)
        if found is None:
            names = " or ".join(file_names(split, self.version))
            raise Refused(f"--data {self.data} has no {names}, plain or .gz; or name --train-file, --dev-file")
        return found


def refuse_same(train: str, dev: str) -> None:
    """What is trained on is not what is scored, nor what chooses.

    Raises:
        Refused: one file for both.
    """
    if train and dev and Path(train).resolve() == Path(dev).resolve():
        raise Refused(f"--train-file and --dev-file are the same file, {train}: a score would be of what was learned")


def file_names(split: str, version: str) -> tuple[str, str]:
    """As published, and as people call them."""
    return f"{split}-v{version}.json", f"{split}.json"


def english(places: Sequence[Path], split: str, version: str) -> str | None:
    """SQuAD's file of a split, plain or .gz, in the first of the folders that has one."""
    names = [f"{name}{end}" for name in file_names(split, version) for end in ("", ".gz")]
    paths = (place / name for place in places for name in names)
    return next((str(path) for path in paths if path.is_file()), None)
