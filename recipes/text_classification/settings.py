"""Define the settings of the text classification recipe; conf/ has the values and their sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from recipes.lib import launch, places
from recipes.lib.encodings import Encoding, parse_all
from recipes.lib.package import nearest
from recipes.lib.recipe import about
from recipes.lib.values import Flags, Refused

CONF = Path(__file__).parent / "conf"
BUILTIN, PUBLISHED = "builtin", "published"
#: Published tasks by their name in --task, with their name in the tables of the LFHC and GCDF paper.
TASKS = {"imdb": "IMDB", "sst2": "SST-2", "snli": "SNLI", "qnli": "QNLI", "qqp": "QQP", "mnli": "MNLI", "rte": "RTE"}
PAIRS = ("snli", "qnli", "qqp", "mnli", "rte")
#: Key of the tables [updates], [warmup] and [interval] for all tasks that the tables do not name.
OTHERS = "others"

# Flags that the plan writes itself, with the option to use instead, or the value.
DECIDED = {
    **launch.DECIDED,
    **dict.fromkeys(("seed",), "--seeds"),
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **dict.fromkeys(("arch",), "--arch"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("max-update", "total-num-update"), "--updates"),
    **dict.fromkeys(("warmup-updates",), "--warmup"),
    **dict.fromkeys(("validate-interval-updates", "save-interval-updates"), "--interval"),
    **dict.fromkeys(("num-classes", "init-token", "separator-token", "pooling", "metrics"), "--task"),
    **dict.fromkeys(("train-subset", "valid-subset"), "--task"),
    **dict.fromkeys(("word-vectors", "embedding-dim"), "--glove"),
    "max-positions": "--longest",
    "batch-size": "--batch",
    "task": "posenc_sentence_prediction",
    "criterion": "posenc_sentence_prediction",
}


@dataclass(kw_only=True)
class Settings(launch.Training):
    task: str = field(
        metadata=about(
            f"Task: {', '.join(TASKS)}, {BUILTIN} (a small invented task), or a folder with train, dev and test files "
            "(.tsv, .csv or .jsonl, plain or .gz)."
        )
    )
    data: str = field(default="", metadata=about("Folder with the published files of --task (default: download them)."))
    raw: str = field(default="data/raw", metadata=about("Folder for downloads."))
    text: str = field(default="text", metadata=about("For a --task DIR: name of the column with the text."))
    pair: str = field(
        default="", metadata=about("For a --task DIR with pairs: name of the column with the second text.")
    )
    label: str = field(default="label", metadata=about("For a --task DIR: name of the column with the label."))
    tokenizer: Literal["nltk", "spaces"] = field(
        default="nltk",
        metadata=about("How to split text into words: with NLTK's tokenizer, or at spaces (for tokenised text)."),
    )
    glove: str = field(
        default="", metadata=about("Word vectors in GloVe's format, or `published` to download 2.2 GB (default: none).")
    )
    more_than: int = launch.at_least(0, "Keep only words that occur more than N times in the training set.", default=3)
    longest: int = launch.at_least(8, "Maximum number of tokens per row; longer texts are cut.", default=512)
    bad: Literal["refuse", "skip"] = field(
        default="refuse",
        metadata=about("What to do with rows without text or label: refuse stops with a list, skip leaves them out."),
    )
    limit: int = launch.at_least(0, "Number of training rows to use (0: all).", default=0)
    segments: Literal["input", "none"] = field(
        default="input",
        metadata=about("Segment embeddings for pairs of texts: input adds them to the input, none leaves them out."),
    )
    arch: str = field(default="posenc_classifier", metadata=about("Architecture, such as posenc_classifier."))
    pos_enc: list[str] = field(metadata=about("Position encodings to compare: NAME or NAME[OPTION=VALUE,...]."))
    batch: int = launch.at_least(1, "Number of rows per update.")
    updates: dict[str, int] = field(metadata=about("Number of updates for the task KEY."))
    warmup: dict[str, int] = field(metadata=about("Number of warm-up updates for the task KEY."))
    interval: dict[str, int] = field(metadata=about("Number of updates between two validations for the task KEY."))
    train: Flags = field(metadata=about("Flag of fairseq-train, for example --train.lr 0.001."))

    batch_option = "--train.batch-size"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_all(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        if self.batch % self.batches:
            problem = f"the rows of an update cannot be split into {self.batches} equal batches"
            raise Refused(f"--batch {self.batch}: {problem}. Give a --batch that is a multiple of {self.batches}.")
        if not self.published and self.task != BUILTIN and not Path(self.task).is_dir():
            known = [*TASKS, BUILTIN]
            raise Refused(f"--task {self.task}: there is no such folder or task{nearest(self.task, known)}")
        for table in (self.updates, self.warmup, self.interval):
            if unknown := [name for name in table if name not in (*TASKS, OTHERS)]:
                place = "tables [updates], [warmup] and [interval]"
                raise Refused(f"{place}: there is no task '{unknown[0]}'{nearest(unknown[0], TASKS)}")

    def refuse_missing(self) -> None:
        for option, path in (("data", self.data), ("glove", "" if self.glove == PUBLISHED else self.glove)):
            places.refuse_missing(option, path)

    def unused(self) -> dict[str, str]:
        reason = "only a --task DIR uses it"
        columns = {} if self.own else dict.fromkeys(("text", "pair", "label"), reason)
        segments = {} if self.is_pair else {"segments": "the task has no pairs of texts"}
        data = {} if self.published else {"data": "only published tasks use it"}
        downloads = self.glove == PUBLISHED or (self.published and not self.data)
        return {**columns, **segments, **data, **({} if downloads else {"raw": "nothing is downloaded"})}

    @property
    def published(self) -> bool:
        """Return whether the task is a published dataset."""
        return self.task in TASKS

    @property
    def own(self) -> bool:
        """Return whether the task is a folder of the user."""
        return not self.published and self.task != BUILTIN

    @property
    def name(self) -> str:
        """Return the name of the task in the report."""
        return TASKS.get(self.task, Path(self.task).resolve().name if self.own else self.task)

    @property
    def is_pair(self) -> bool:
        """Return whether rows are pairs of texts."""
        return self.task in PAIRS or bool(self.own and self.pair)

    def files(self) -> list[Path]:
        """Return the user's files, whose content determines the result."""
        return sorted(path for path in Path(self.task).iterdir() if path.is_file()) if self.own else []

    @property
    def scored(self) -> list[str]:
        """Return the splits to score; MNLI has two test sets."""
        return ["test", "test-mismatched"] if self.task == "mnli" else ["test"]

    @property
    def metrics(self) -> list[str]:
        """Return the metrics to average: accuracy and F1 for QQP, otherwise accuracy."""
        return ["accuracy", "f1"] if self.task == "qqp" else ["accuracy"]

    def of_task(self, table: dict[str, int]) -> int:
        """Return the value that a table such as [updates] has for the task."""
        key = self.task if self.task in table else OTHERS
        if key not in table:
            options = " ".join(f"--{name}.{OTHERS} N" for name in ("updates", "warmup", "interval"))
            raise Refused(f"--task {self.task}: the preset sets no number of updates for this task. Give {options}.")
        return table[key]

    def flags(self, encoding: Encoding) -> list[str]:
        """Return --pos-enc and --pos-enc-args; for pairs of texts, they may add segment embeddings."""
        flags = encoding.flags()
        if self.is_pair and self.segments == "input" and "segments-input" not in encoding.names:
            flags[1] += "+segments-input"
        return flags
