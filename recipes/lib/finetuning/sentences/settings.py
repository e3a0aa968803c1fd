"""Define the settings of the recipes that classify sentences with a paper's protocol.

The hyperparameters of the protocols are in recipes/lib/finetuning/protocols/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from recipes.lib import launch
from recipes.lib.departures import of_flags, of_settings
from recipes.lib.package import nearest
from recipes.lib.recipe import about
from recipes.lib.settings import read_preset
from recipes.lib.values import Flags, Refused

from ..settings import BUILTIN, DECIDED, FineTuning
from ..trials import Grid, Variant
from .tasks import TASKS
from .xnli import XNLI

PROTOCOLS = Path(__file__).parents[1] / "protocols"
UNSET_TEXT = "(unset: as in the protocol)"
ZERO_TEXT = "(0 or unset: as in the protocol)"
#: Values that mean 'unset' for settings that a protocol can fill in. Settings not listed here are unset if they are 0.
UNSET: dict[str, Any] = {"lr": [], "epochs": [], "seeds": [], "segments": [], "keep": "", "warmup": -1.0}
ENDS = ("tsv", "tsv.gz", "txt", "txt.gz")  # suffixes of files with rows


def protocol(name: str) -> tuple[dict[str, Any], Flags]:
    """Return the settings of a paper's protocol and its flags of fairseq-train."""
    settings = read_preset(PROTOCOLS / f"{name}.toml")
    return settings, settings.pop("train")


@dataclass(kw_only=True)
class SentenceSettings(FineTuning):
    """Hold the settings that a protocol can set, and the settings that choose the data."""

    task: list[str]
    protocol: str
    bad: Literal["refuse", "skip"] = field(
        default="refuse",
        metadata=about("What to do with unusable rows: refuse stops and lists them, skip leaves them out."),
    )
    train_rows: int = launch.at_least(
        0, "For --data DIR without a training file: number of development rows to train on instead.", default=0
    )
    lr: list[float] = field(
        default_factory=list, metadata=about(f"Learning rates to try; the best one is reported {UNSET_TEXT}.")
    )
    epochs: list[int] = field(
        default_factory=list, metadata=about(f"Numbers of epochs to try; the best one is reported {UNSET_TEXT}.")
    )
    seeds: list[int] = field(
        default_factory=list,
        metadata=about(
            "Train each model once with each of these random seeds, such as 1,2,3, and report the median and the mean "
            "(unset: the seeds of the protocol; if it has none, --seed)."
        ),
    )
    keep: Literal["", "last", "best"] = field(
        default="", metadata=about(f"Checkpoint to score: the last or the best {UNSET_TEXT}.")
    )
    batch: int = launch.at_least(1, f"Number of rows per update {ZERO_TEXT}.", default=0)
    warmup: float = field(
        default=-1.0, metadata=about(f"Fraction of the updates in which the learning rate rises {UNSET_TEXT}.")
    )
    longest: int = launch.at_least(
        8, f"Maximum length of an input in subword pieces; longer inputs are cut {ZERO_TEXT}.", default=0
    )
    separators: int = field(
        default=0, metadata=about(f"Number of </s> between sentences of a pair: 1 for BERT, 2 for RoBERTa {ZERO_TEXT}.")
    )
    segments: list[str] = field(
        default_factory=list,
        metadata=about(
            "Segment encodings to compare on sentence pairs: none, input (added to the input), or head (biases per "
            f"head) {UNSET_TEXT}."
        ),
    )

    decided: ClassVar[Mapping[str, str]] = {
        **DECIDED,
        "lr": "--lr",
        "pos-enc-args": "--checkpoint",
        **dict.fromkeys(("max-tokens", "max-sentences", "batch-size"), "--batch"),
        **dict.fromkeys(("num-classes", "regression-target", "metrics", "classification-head-name"), "--task"),
        **dict.fromkeys(
            ("best-checkpoint-metric", "maximize-best-checkpoint-metric"), "--task; its first metric decides"
        ),
        **dict.fromkeys(("init-token", "separator-token"), "--separators"),
        **dict.fromkeys(("train-subset", "valid-subset"), "--data"),
        "max-positions": "--checkpoint",
        "criterion": "the recipe uses posenc_sentence_prediction",
    }
    #: The allowed tasks, the script that fetches and prepares them, and the value of --data that asks for fetched data.
    known: ClassVar[tuple[str, ...]]
    script: ClassVar[str]
    fetched: ClassVar[str]

    def __post_init__(self) -> None:
        self._take_protocol()
        super().__post_init__()
        if self.keep == "best" and self.train.get("disable-validation"):
            raise Refused("--train.disable-validation: --keep best needs validation. Leave out one of these options.")
        _refuse_unknown("task", self.task, self.known)
        _refuse_unknown("segments", self.segments, ("none", "input", "head"))
        if self.separators not in (1, 2):
            raise Refused(f"--separators {self.separators}: the value must be 1 or 2.")
        if self.train_rows and not self.own:
            raise Refused("--train-rows is only for --data DIR without a training file. Leave this option out.")
        if not 0 <= self.warmup < 1:
            raise Refused(f"--warmup {self.warmup}: the fraction of updates must be at least 0 and below 1.")
        for name in ("lr", "epochs"):  # compared as they are printed in the names of training runs
            if min(getattr(self, name)) <= 0:
                raise Refused(f"--{name}: every value must be greater than 0.")
            _refuse_twice(name, [f"{number:g}" for number in getattr(self, name)])
        if self.batch % self.batches:
            raise Refused(f"--batch {self.batch} must be a multiple of --batches {self.batches}.")
        if self.own and not Path(self.data).is_dir():
            raise Refused(f"--data {self.data}: the folder does not exist. Give a folder, {self.fetched} or {BUILTIN}.")

    def _take_protocol(self) -> None:
        """Take unset settings and flags from the protocol."""
        known = [path.stem for path in PROTOCOLS.glob("*.toml")]
        if self.protocol not in known:
            raise Refused(f"--protocol: there is no protocol '{self.protocol}'{nearest(self.protocol, known)}")
        values, flags = protocol(self.protocol)
        for name, value in values.items():
            if getattr(self, name) == UNSET.get(name, 0):
                setattr(self, name, value)
        self.train = {**flags, **self.train}

    def departures(self) -> list[str]:
        """Describe the differences between the run and the protocol.

        --segments is not compared, because it only selects rows of the paper's table.
        """
        values, flags = protocol(self.protocol)
        del values["segments"]
        seeds = self.departure_of_seeds(values.pop("seeds", []))
        return of_settings(values, self) + of_flags(flags, self.train, intervals=self.keep == "best") + seeds

    def departure_of_seeds(self, seeds: list[int]) -> list[str]:
        """Describe how the number of seeds differs from the protocol's number; the values of seeds do not matter."""
        ours, theirs = len(self.training_seeds.seeds), max(1, len(seeds))
        return [f"{ours} {'seed' if ours == 1 else 'seeds'}, not {theirs}"] if ours != theirs else []

    def refuse_missing(self) -> None:
        super().refuse_missing()
        for task in self.task if self.own else []:
            if not self.files(task):
                raise Refused(f"--data {self.data}: there are no files of {task} in this folder, plain or .gz.")

    def files(self, task: str) -> list[Path]:
        """Return the user's files of a task; the list is empty if there are none."""
        return files_of_task(Path(self.data), task)

    def unused(self) -> dict[str, str]:
        return {"raw": "nothing is fetched"} if self.data != self.fetched else {}

    @property
    def builtin_encodings(self) -> tuple[str, ...]:
        return ("learned",)

    @property
    def own(self) -> bool:
        """Return whether --data names a folder of the user."""
        return self.data not in (BUILTIN, self.fetched)

    @property
    def chosen(self) -> list[str]:
        """Return the options of `script` that choose which files it prepares; without options it prepares all files."""
        return []

    @property
    def grid(self) -> Grid:
        return Grid(self.lr, self.epochs, [*self.training_seeds.seeds])

    def variants(self) -> list[Variant]:
        """Return all combinations of task, segment encoding and model; single sentences have no segment encoding."""
        row = "/".join(self.segments)
        kinds = [(task, kind) for task in self.task for kind in (self.segments if TASKS[task].pair else [""])]
        return [Variant(task, model, kind or "none", kind or row) for task, kind in kinds for model in self.models]


def _refuse_unknown(option: str, values: list[str], known: tuple[str, ...]) -> None:
    if not values:
        raise Refused(f"--{option} is empty. Choose at least one of {', '.join(known)}.")
    for name in values:
        if name not in known:
            raise Refused(f"--{option}: unknown value '{name}'{nearest(name, known)}")
    _refuse_twice(option, values)


def _refuse_twice(option: str, values: list[str]) -> None:
    if len(set(values)) < len(values):
        raise Refused(f"--{option} {','.join(values)}: a value occurs twice. Remove it.")


def files_that_count(folder: Path, task: str) -> list[Path]:
    """Return all of the user's files that data-bin-scripts/glue/ may read for a task."""
    files = files_of_task(folder, task)
    if task == "MNLI":  # the diagnostic set, next to the folders of the tasks
        files += [path for name in ("AX", "diagnostic") for path in sorted(folder.parent.glob(f"{name}.tsv*"))]
    if task == XNLI:  # the training file of MNLI, which XNLI shares
        files += [path for place in _places(folder, task) for path in sorted(place.glob("MNLI/train.tsv*"))]
    return files


def files_of_task(folder: Path, task: str) -> list[Path]:
    """Return the files in a task's subfolders and in `folder` itself, where files of other tasks may be, too."""
    return [path for place in _places(folder, task) for end in ENDS for path in sorted(place.glob(f"*.{end}"))]


def _places(folder: Path, task: str) -> list[Path]:
    return [*(folder / name for name in (task, *TASKS[task].folders)), folder]
