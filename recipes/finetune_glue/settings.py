"""The settings of the GLUE recipe; the numbers, with their sources, are in conf/ and conf/protocols/."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from recipes.lib import finetuning, launch
from recipes.lib.departures import of_flags, of_settings
from recipes.lib.encodings import parse_all
from recipes.lib.finetuning import Model
from recipes.lib.package import nearest
from recipes.lib.places import RAW
from recipes.lib.recipe import about, of_files
from recipes.lib.settings import read_toml
from recipes.lib.values import Flags, Refused

from . import rows
from .tasks import GLUE, TASKS

CONF = Path(__file__).parent / "conf"
BUILTIN = "builtin"
OF_PROTOCOL = "unset: the protocol's"
OR_0 = f"0 or {OF_PROTOCOL}"
#: settings that a protocol has, with what stands for 'unset'
PROTOCOL: dict[str, Any] = {
    "lr": [],
    "epochs": [],
    "segments": [],
    "batch": 0,
    "runs": 0,
    "longest": 0,
    "separators": 0,
    "keep": "",
    "warmup": -1.0,
}

# What the plan writes into the commands itself.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "lr", "segments")},
    **dict.fromkeys(("pos-enc", "pos-enc-args", "pretrained", "finetune-from-model", "arch"), "--checkpoint"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("max-epoch", "max-update", "total-num-update"), "--epochs"),
    **dict.fromkeys(("max-tokens", "max-sentences", "batch-size"), "--batch"),
    **dict.fromkeys(("num-classes", "regression-target", "metrics", "classification-head-name"), "--task"),
    **dict.fromkeys(("best-checkpoint-metric", "maximize-best-checkpoint-metric"), "the first score of the --task"),
    **dict.fromkeys(("init-token", "separator-token"), "--separators"),
    **dict.fromkeys(("no-epoch-checkpoints", "keep-interval-updates"), "the best and the last checkpoint being kept"),
    **dict.fromkeys(("train-subset", "valid-subset"), "--data"),
    "warmup-updates": "--warmup, a part of the updates",
    "max-positions": "--checkpoint",
    "criterion": "posenc_sentence_prediction",
}


@dataclass(frozen=True)
class Variant:
    """A pretrained model on a task. segments: of pairs. row: those of the paper's row, where it has a figure for single
    sentences too."""

    task: str
    model: Model
    segments: str
    row: str = "none"

    @property
    def label(self) -> str:
        told = {"none": "", "input": ", segments at the input", "head": ", segments per head"}
        return self.model.label + told[self.segments]

    @property
    def slug(self) -> str:
        """Its name in paths and stages."""
        return f"{self.task}.{self.model.slug}" + ("" if self.segments == "none" else f".{self.segments}")


@dataclass(frozen=True)
class Trial:
    """One training of a variant."""

    variant: Variant
    lr: float
    epochs: int
    seed: int

    @property
    def slug(self) -> str:
        return f"{self.variant.slug}.lr{self.lr:g}.e{self.epochs}.s{self.seed}"


@dataclass(kw_only=True)
class Settings(launch.Training):
    task: list[str] = field(metadata=about(f"{', '.join(GLUE)}; several are compared side by side"))
    checkpoint: list[str] = field(
        default_factory=list,
        metadata=about(
            "pretrained models: checkpoints, runs of recipes/pretrain_mlm with all their encodings, folders of "
            f"import-hf or of Hugging Face's; {BUILTIN}: one is made in a minute"
        ),
    )
    pos_enc: list[str] = field(
        default_factory=list, metadata=about("those that the models have to have, in this order; unset: as they are")
    )
    pretraining: str = field(default="", metadata=of_files("the command that makes the models of a preset"))
    protocol: str = field(
        metadata=about("m1-m4, m4m or diet, from conf/protocols: what the papers do; diet-xtreme, of XTREME's")
    )
    data: str = field(
        metadata=about(
            "glue (the published archives), your FOLDER with TASK/train.tsv and so on, plain or .gz, or "
            f"{BUILTIN} (small, invented)"
        )
    )
    raw: str = field(default=RAW, metadata=about("where fetch.py puts corpora"))
    tokenizer_path: str = field(default="", metadata=about("of the models, where it does not lie beside dict.txt"))
    bad: Literal["refuse", "skip"] = field(default="refuse", metadata=about("rows that cannot be used as they are"))
    limit: int = field(default=0, metadata=about("the first rows of training (0: all)"))
    train_rows: int = field(
        default=0, metadata=about("of a FOLDER without a training file: the first rows of its development set")
    )
    lr: list[float] = field(default_factory=list, metadata=about(f"the best of them counts; {OF_PROTOCOL}"))
    epochs: list[int] = field(default_factory=list, metadata=about(f"the best of them counts; {OF_PROTOCOL}"))
    runs: int = field(default=0, metadata=about(f"seeds of each, whose median counts; {OR_0}"))
    keep: Literal["", "last", "best"] = field(default="", metadata=about(f"the checkpoint that counts; {OF_PROTOCOL}"))
    batch: int = field(default=0, metadata=about(f"rows of an update; {OR_0}"))
    warmup: float = field(default=-1.0, metadata=about(f"part of the updates; {OF_PROTOCOL}"))
    longest: int = field(default=0, metadata=about(f"pieces of an item, the rest is cut off; {OR_0}"))
    separators: int = field(default=0, metadata=about(f"</s> in a pair: 1 as BERT, 2 as RoBERTa; {OR_0}"))
    segments: list[str] = field(
        default_factory=list,
        metadata=about(f"of pairs: none, input, head (a bias of each), several are compared; {OF_PROTOCOL}"),
    )
    train: Flags = field(default_factory=dict, metadata=about("a flag of fairseq-train"))

    batch_flag = "batch-size"
    #: the tasks, what fetches and prepares them, and what that is called as --data
    known: ClassVar[tuple[str, ...]] = GLUE
    script: ClassVar[str] = "data-bin-scripts/prepare_glue.sh"
    fetched: ClassVar[str] = "glue"

    def __post_init__(self) -> None:
        super().__post_init__()
        launch.refuse_decided(self.train, DECIDED)
        self._take_protocol()
        if self.keep == "best" and self.train.get("disable-validation"):
            raise Refused("--train.disable-validation: --keep best is chosen by validations; take --keep last")
        _known("task", self.task, self.known)
        _known("segments", self.segments, ("none", "input", "head"))
        if self.separators not in (1, 2):
            raise Refused(f"--separators is {self.separators}: 1 or 2 is wanted")
        if self.train_rows and not self.own:
            raise Refused("--train-rows is for a FOLDER of your own without a training file: leave it out")
        least = {"limit": 0, "train_rows": 0, "threads": 0, "runs": 1, "batch": 1, "longest": 8}
        for name, number in least.items():
            if getattr(self, name) < number:
                raise Refused(f"--{name} is {getattr(self, name)}: {number} or more is wanted")
        if not 0 <= self.warmup < 1:
            raise Refused(f"--warmup is {self.warmup}: 0 to 1, a part of the updates, is wanted")
        if min(self.lr) <= 0 or min(self.epochs) < 1:
            raise Refused("--lr and --epochs: numbers above 0 are wanted")
        for name in ("lr", "epochs"):  # as they stand in the names of trainings
            _once(name, [f"{one:g}" for one in getattr(self, name)])
        if self.batch % self.batches:
            raise Refused(f"--batch {self.batch} cannot be shared by --batches {self.batches}")
        if self.own and not Path(self.data).is_dir():
            raise Refused(f"--data {self.data}: no such folder; there are: {self.fetched}, {BUILTIN}")
        self.models = self._models()

    def _take_protocol(self) -> None:
        """What is unset, as the protocol has it."""
        known = {path.stem: path for path in (CONF / "protocols").glob("*.toml")}
        if self.protocol not in known:
            raise Refused(f"--protocol: no '{self.protocol}'{nearest(self.protocol, known)}")
        found = read_toml(known[self.protocol])
        for name, unset in PROTOCOL.items():
            if getattr(self, name) == unset:
                setattr(self, name, found[name])
        self.train = {**found["train"], **self.train}

    def departures(self) -> list[str]:
        """In what they depart from the protocol, in a few words each; segments choose the paper's row."""
        theirs = read_toml(CONF / "protocols" / f"{self.protocol}.toml")
        wanted = {name: theirs[name] for name in PROTOCOL if name != "segments"}
        return of_settings(wanted, self) + of_flags(theirs["train"], self.train, intervals=self.keep == "best")

    def _models(self) -> list[Model]:
        if not self.checkpoint:
            made = f"; {self.pretraining} makes them" if self.pretraining else ""
            raise Refused(f"--checkpoint is wanted: the pretrained models{made}")
        if BUILTIN in self.checkpoint:
            if len(self.checkpoint) > 1 or self.pos_enc:
                raise Refused(f"--checkpoint {BUILTIN} stands alone")
            return []
        found = finetuning.models(self.checkpoint)
        return finetuning.of_encodings(found, parse_all(self.pos_enc), self.pretraining) if self.pos_enc else found

    def refuse_missing(self) -> None:
        finetuning.refuse_missing(self.models, self.tokenizer_path)
        for task in self.task if self.own else []:
            if not self.files(task):
                raise Refused(f"--data {self.data} has no files of {task}, plain or .gz, in it or below")

    def files(self, task: str) -> list[Path]:
        """The user's; empty where there is none at all."""
        return rows.of_task(Path(self.data), task)

    def unused(self) -> dict[str, str]:
        return {"raw": "nothing is fetched"} if self.data != self.fetched else {}

    @property
    def own(self) -> bool:
        return self.data not in (BUILTIN, self.fetched)

    @property
    def chosen(self) -> list[str]:
        """Which of the files are prepared, as the script is told; all of GLUE's."""
        return []

    def variants(self, found: list[Model]) -> list[Variant]:
        """Each model on each task; a single sentence has no segments."""
        row = self.segments[0] if len(self.segments) == 1 else "none"
        kinds = [(task, kind) for task in self.task for kind in (self.segments if TASKS[task].pair else [""])]
        return [Variant(task, model, kind or "none", kind or row) for task, kind in kinds for model in found]

    def trials(self, variant: Variant) -> list[Trial]:
        """Its learning rates, epochs and seeds."""
        return [
            Trial(variant, lr, epochs, self.seed + run)
            for lr in self.lr
            for epochs in self.epochs
            for run in range(self.runs)
        ]


def _known(option: str, given: list[str], known: Any) -> None:
    if not given:
        raise Refused(f"--{option} is empty: name at least one of {', '.join(known)}")
    for name in given:
        if name not in known:
            raise Refused(f"--{option}: no '{name}'{nearest(name, known)}")
    _once(option, given)


def _once(option: str, given: list[str]) -> None:
    if len(set(given)) < len(given):
        raise Refused(f"--{option} names one twice")
