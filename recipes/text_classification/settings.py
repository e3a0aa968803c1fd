"""The settings of the text classification recipe; the numbers, with their sources, are in conf/."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from recipes.lib import launch
from recipes.lib.encodings import Encoding, parse_all
from recipes.lib.package import nearest
from recipes.lib.recipe import about
from recipes.lib.values import Flags, Refused

CONF = Path(__file__).parent / "conf"
BUILTIN, PUBLISHED = "builtin", "published"
#: published tasks, as --task and as the LFHC/GCDF paper's tables name them
TASKS = {"imdb": "IMDB", "sst2": "SST-2", "snli": "SNLI", "qnli": "QNLI", "qqp": "QQP", "mnli": "MNLI", "rte": "RTE"}
PAIRS = ("snli", "qnli", "qqp", "mnli", "rte")
#: key of the tables [updates], [warmup] and [interval] for tasks that they do not name
OTHERS = "others"

# What the plan writes into the commands itself.
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
            f"Task: {', '.join(TASKS)}, {BUILTIN} (small, invented), or a FOLDER with train, dev and test files "
            "(.tsv, .csv or .jsonl, plain or .gz)."
        )
    )
    data: str = field(default="", metadata=about("Folder with the published files of --task; unset: download them."))
    raw: str = field(default="data/raw", metadata=about("Folder for downloads."))
    text: str = field(default="text", metadata=about("Column of the text in a FOLDER."))
    pair: str = field(default="", metadata=about("Column of the second text in a FOLDER, for pairs."))
    label: str = field(default="label", metadata=about("Column of the label in a FOLDER."))
    tokenizer: Literal["nltk", "spaces"] = field(
        default="nltk", metadata=about("How text is split into words; spaces is for text that is tokenised already.")
    )
    glove: str = field(
        default="", metadata=about("File of word vectors in GloVe's format, or published (2.2 GB); unset: none.")
    )
    more_than: int = launch.at_least(0, "Keep words that occur more than this number of times in training.", default=3)
    longest: int = launch.at_least(8, "Longest item in tokens; longer texts are cut.", default=512)
    bad: Literal["refuse", "skip"] = field(
        default="refuse", metadata=about("What to do with rows without text or label: stop, or leave them out.")
    )
    limit: int = launch.at_least(0, "Number of training rows to use (0: all).", default=0)
    segments: Literal["input", "none"] = field(
        default="input", metadata=about("Whether pairs get segment vectors at the input.")
    )
    arch: str = field(default="posenc_classifier", metadata=about("A posenc_classifier architecture."))
    pos_enc: list[str] = field(metadata=about("Position encodings to compare: NAME or NAME[OPTION=VALUE,...]."))
    seeds: list[int] = field(metadata=about("Random seeds; each encoding is trained with each of them."))
    batch: int = launch.at_least(1, "Rows per update.")
    updates: dict[str, int] = field(metadata=about("Number of updates, by task."))
    warmup: dict[str, int] = field(metadata=about("Updates with a rising learning rate, by task."))
    interval: dict[str, int] = field(metadata=about("Updates between two validations, by task."))
    train: Flags = field(metadata=about("A flag of fairseq-train."))

    batch_flag = "batch-size"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encodings = parse_all(self.pos_enc)
        launch.refuse_decided(self.train, DECIDED)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise Refused("--seeds: different whole numbers are needed, such as 1,2,3")
        if self.batch % self.batches:
            raise Refused(f"--batch {self.batch} cannot be shared by --batches {self.batches}")
        if not self.published and self.task != BUILTIN and not Path(self.task).is_dir():
            known = [*TASKS, BUILTIN]
            raise Refused(f"--task {self.task}: neither a folder nor a task{nearest(self.task, known)}")
        for table in (self.updates, self.warmup, self.interval):
            if unknown := [name for name in table if name not in (*TASKS, OTHERS)]:
                raise Refused(f"[updates], [warmup], [interval]: no task '{unknown[0]}'{nearest(unknown[0], TASKS)}")

    def refuse_missing(self) -> None:
        for option, path in (("data", self.data), ("glove", "" if self.glove == PUBLISHED else self.glove)):
            if path and not Path(path).exists():
                raise Refused(f"--{option} {path}: no such file or folder")

    def unused(self) -> dict[str, str]:
        own = "the task has its own columns"
        columns = {} if self.own else dict.fromkeys(("text", "pair", "label"), own)
        segments = {} if self.is_pair else {"segments": "single texts have no segments"}
        data = {} if self.published else {"data": "only published tasks have files there"}
        downloads = self.glove == PUBLISHED or (self.published and not self.data)
        return {**columns, **segments, **data, **({} if downloads else {"raw": "nothing is downloaded"})}

    @property
    def published(self) -> bool:
        """Return whether the task is a published one."""
        return self.task in TASKS

    @property
    def own(self) -> bool:
        """Return whether the task is a folder of the user's."""
        return not self.published and self.task != BUILTIN

    @property
    def name(self) -> str:
        """Return the task as the report calls it."""
        return TASKS.get(self.task, Path(self.task).resolve().name if self.own else self.task)

    @property
    def is_pair(self) -> bool:
        """Return whether rows are pairs of texts."""
        return self.task in PAIRS or bool(self.own and self.pair)

    def files(self) -> list[Path]:
        """Return the user's files, whose content counts."""
        return sorted(path for path in Path(self.task).iterdir() if path.is_file()) if self.own else []

    @property
    def scored(self) -> list[str]:
        """Return the splits that are scored; MNLI has two."""
        return ["test", "test-mismatched"] if self.task == "mnli" else ["test"]

    @property
    def metrics(self) -> list[str]:
        """Return the scores whose mean is the task's: QQP has accuracy and F1."""
        return ["accuracy", "f1"] if self.task == "qqp" else ["accuracy"]

    def of_task(self, table: dict[str, int]) -> int:
        """Return the task's number in one of the tables."""
        key = self.task if self.task in table else OTHERS
        if key not in table:
            raise Refused(f"the preset has no numbers for --task {self.task}: give --updates.{OTHERS} N and its kin")
        return table[key]

    def flags(self, encoding: Encoding) -> list[str]:
        """Return --pos-enc and --pos-enc-args; pairs get segment vectors."""
        flags = encoding.flags()
        if self.is_pair and self.segments == "input" and "segments-input" not in encoding.names:
            flags[1] += "+segments-input"
        return flags
