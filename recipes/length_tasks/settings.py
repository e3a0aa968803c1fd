"""Define the settings of the length tasks; conf/ has the values and their sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import ClassVar

from recipes.lib import launch
from recipes.lib.encodings import Encoding, Stacks, parse
from recipes.lib.recipe import about
from recipes.lib.seeds import Seeds
from recipes.lib.values import Flags, Refused

from .tasks.registry import TASKS, task
from .tasks.task import Task

CONF = Path(__file__).parent / "conf"
ENCODER = parse("sinusoidal")  # used in the encoder if an encoding works in decoders only
RANDOM = "-random"  # end of the name of a model whose positions are drawn at random in training

# Flags that the plan writes itself, with the option to use instead, or the value.
DECIDED = {
    **launch.DECIDED,
    "seed": "--seeds",
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    "pos-enc-random": "--pos-enc NAME-random",
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("train-subset", "valid-subset"), "--tasks"),
    **dict.fromkeys(
        ("tokens-per-sample", "max-positions", "max-source-positions", "max-target-positions"),
        "the examples determine the lengths",
    ),
    "arch": "--decoder.arch, --encoder.arch or --encoder-decoder.arch",
    "task": "posenc_answers",
    "criterion": "cross_entropy",
}


@dataclass(frozen=True)
class Model:
    """Name a model to train.

    Args:
        encoding: Position encoding.
        random: Whether the positions are drawn at random in training.
        once: Whether the model is trained with the first random seed only.
    """

    encoding: Encoding
    random: bool = False
    once: bool = False

    @property
    def label(self) -> str:
        """Return the name in tables and figures, such as `rope-random`."""
        return self.encoding.label + RANDOM * self.random

    @property
    def slug(self) -> str:
        """Return the name in paths and stages."""
        return self.encoding.slug + RANDOM * self.random

    def stacks(self, name: str) -> Encoding | Stacks:
        """Return the encoding or, for an encoder-decoder, the encodings with which the model learns a task.

        Raises:
            Refused: The encoding does not work in the model of this task.
        """
        kind = task(name).kind
        if kind == "encoder-decoder" and self.encoding.stacks == {"decoder"}:
            return Stacks(ENCODER, self.encoding)
        if missing := sorted(set(kind.split("-")) - self.encoding.stacks):
            option = "--once" if self.once else "--pos-enc"
            problem = f"this encoding does not work in the {missing[0]} of a model, which the task {name} needs"
            raise Refused(f"{option} {self.label}: {problem}. Leave out the encoding or the task.")
        return self.encoding


def models(labels: list[str], *, once: bool = False) -> list[Model]:
    """Return the models that labels such as `rope` and `rope-random` name.

    Raises:
        Refused: A label names no encoding.
    """
    unique, flag = dict.fromkeys(label.replace(" ", "") for label in labels), "--once" if once else "--pos-enc"
    return [Model(parse(label.removesuffix(RANDOM), flag), label.endswith(RANDOM), once) for label in unique]


@dataclass(kw_only=True)
class Settings(launch.Training):
    tasks: list[str] = field(metadata=about(f"Tasks to learn: {', '.join(TASKS)}."))
    pos_enc: list[str] = field(
        metadata=about(
            "Position encodings to compare: NAME or NAME[OPTION=VALUE,...]; with -random at the end, the positions are "
            "drawn at random in training (Ruoss et al. 2023)."
        )
    )
    once: list[str] = field(
        default_factory=list,
        metadata=about(
            "Additional encodings to train with the first seed only; encodings in --pos-enc are trained with all seeds."
        ),
    )
    random_range: int = launch.at_least(1, "Random positions are drawn from 0 to N-1.", default=512)
    longest: dict[str, int] = field(
        default_factory=dict,
        metadata=about("Maximum length of a training example of the task KEY (default: set by the task)."),
    )
    tested: list[str] = field(
        metadata=about(
            "Lengths of the test examples, as multiples of the maximum length in training, such as 1/2,1,3/2,2."
        )
    )
    rows: dict[str, int] = field(
        metadata=about(
            "Number of examples in the split KEY: train, valid, within or beyond (for within and beyond: number per "
            "tested length)."
        )
    )
    decoder: Flags = field(
        metadata=about(
            "Flag of fairseq-train for decoders, such as --decoder.arch NAME. It replaces the flag of --train."
        )
    )
    encoder: Flags = field(
        metadata=about("Flag of fairseq-train for encoders, which tag each token. It replaces the flag of --train.")
    )
    encoder_decoder: Flags = field(
        metadata=about(
            "Flag of fairseq-train for models with an encoder and a decoder. It replaces the flag of --train."
        )
    )

    batch_option = "--train.batch-size and --encoder-decoder.batch-size"
    further_keys: ClassVar[Mapping[str, Iterable[str]]] = {"longest": TASKS}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tasks:
            raise Refused(f"--tasks is empty. Name at least one of {', '.join(TASKS)}.")
        self.tasks = list(dict.fromkeys(self.tasks))
        if not self.pos_enc:
            raise Refused("--pos-enc is empty. Name at least one encoding.")
        always = models(self.pos_enc)
        self.models = [*always, *(model for model in models(self.once, once=True) if model.label not in self.pos_enc)]
        launch.refuse_decided(self.train, DECIDED)
        for table in ("decoder", "encoder", "encoder_decoder"):
            decided = {name: advice for name, advice in DECIDED.items() if name != "arch"}
            launch.refuse_decided(getattr(self, table), decided, table.replace("_", "-"))
        for name in self.tasks:
            if task(name).longest is None and name in self.longest:
                problem = "the published split decides the lengths of this task"
                raise Refused(f"--longest.{name}: {problem}. Leave this option out.")
        for name, model in product(self.tasks, self.models):
            model.stacks(name)
        multiples = [_multiple(text) for text in self.tested]
        if not any(multiple <= 1 for multiple in multiples) or not any(multiple > 1 for multiple in multiples):
            problem = "multiples up to 1 are for the test set `within`, and greater multiples are for `beyond`"
            advice = "Give at least one multiple up to 1 and at least one above 1, such as 1,2"
            raise Refused(f"--tested {','.join(self.tested)}: {problem}. {advice}.")
        for table, numbers in (("longest", self.longest), ("rows", self.rows)):
            for key, number in numbers.items():
                if number < 1:
                    raise Refused(f"--{table}.{key} {number}: the value must be at least 1.")

    def unused(self) -> dict[str, str]:
        kinds = {task(name).kind for name in self.tasks}
        tables = {kind.replace("-", "_"): f"no task has the kind {kind}" for kind in ("decoder", "encoder")}
        tables["encoder_decoder"] = "no task has an encoder and a decoder"
        unused = {name: reason for name, reason in tables.items() if name.replace("_", "-") not in kinds}
        if all(task(name).longest is None for name in self.tasks):
            unused |= dict.fromkeys(("tested", "rows"), "the chosen tasks use published splits")
        if not any(model.random for model in self.models):
            unused["random_range"] = f"no encoding ends in {RANDOM}"
        return unused | self._replaced_everywhere()

    def _replaced_everywhere(self) -> dict[str, str]:
        """Return the flags of `train` that the models of all tasks replace, and the reason for each of them."""
        kinds = dict.fromkeys(task(name).kind for name in self.tasks)
        return {
            f"train.{flag}": f"all chosen tasks use {' or '.join(f'--{kind}.{flag}' for kind in kinds)} instead"
            for flag in self.train
            if all(flag in self._model_flags(kind) for kind in kinds)
        }

    def seeds_of(self, model: Model) -> Seeds:
        """Return the random seeds with which a model is trained."""
        seeds = self.training_seeds
        return Seeds(seeds.seeds[:1], seeds.own) if model.once else seeds

    def longest_of(self, name: str) -> int:
        """Return the maximum length in training for a task, or 0 for a task with a published split."""
        return self.longest.get(name, task(name).longest or 0)

    def tested_of(self, name: str) -> list[int]:
        """Return the lengths of the test sets of a task, in order."""
        return sorted({max(1, int(_multiple(text) * self.longest_of(name))) for text in self.tested})

    def flags_of(self, of: Task) -> Flags:
        """Return the flags of fairseq-train for a task: those of its kind of model, then the others of `train`."""
        flags = self._model_flags(of.kind)
        return {**flags, **{name: value for name, value in self.train.items() if name not in flags}}

    def replacements(self) -> list[str]:
        """Return a note for each flag of `train` that the models of some tasks replace with another value."""
        lines = []
        for kind in dict.fromkeys(task(name).kind for name in self.tasks):
            names = ", ".join(name for name in self.tasks if task(name).kind == kind)
            for flag, value in self._model_flags(kind).items():
                if self.train.get(flag, value) != value:
                    lines.append(f"{names}: --{kind}.{flag} {value} replaces --train.{flag} {self.train[flag]}.")
        return lines

    def _model_flags(self, kind: str) -> Flags:
        flags: Flags = getattr(self, kind.replace("-", "_"))
        return flags


def _multiple(text: str) -> Fraction:
    try:
        multiple = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise Refused(f"--tested: '{text}' is not a number. Give multiples such as 1/2,1,3/2,2.") from None
    if multiple <= 0:
        raise Refused(f"--tested {text}: a multiple must be greater than 0.")
    return multiple
