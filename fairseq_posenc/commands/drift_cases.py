"""List what `drift` and `gpu-check` measure: every encoding, in encoders and decoders, with its alternative forms."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..core.options import written
from ..encodings import StackShape, get, names, spec_of
from ..stack import Stack
from .listing import on_meta
from .rounding import drawn, measured

#: Options that choose between readings of one method, that is, between ways to understand its paper.
READINGS = ("form", "reset")
LAYERS, HEADS, HEAD_DIM, LENGTH, SHORTEST, SEED = 2, 2, 64, 512, 8, 1


@dataclasses.dataclass(frozen=True)
class Case:
    """Describe one case to measure: an encoding with its options, in an encoder or in a decoder."""

    encoding: str
    options: Mapping[str, Any]
    causal: bool
    length: int = LENGTH

    def __str__(self) -> str:
        return f"{self.encoding} {self.written} {self.stack}".replace("  ", " ")

    @property
    def written(self) -> str:
        """Return the options in the form of --pos-enc-args."""
        return ",".join(f"{name}={value}" for name, value in self.options.items())

    @property
    def stack(self) -> str:
        """Return `decoder` for a causal stack of layers, otherwise `encoder`."""
        return "decoder" if self.causal else "encoder"

    @property
    def shape(self) -> StackShape:
        """Return the shape of the layers. Encoders have a [CLS], because some encodings treat it separately."""
        return StackShape(
            LAYERS, HEADS, HEADS * HEAD_DIM, self.length, causal=self.causal, length_flag="--length",
            has_cls=not self.causal,
        )  # fmt: skip

    def works(self) -> bool:
        """Return whether the encoding accepts these options in this encoder or decoder."""
        return on_meta(self.encoding, dict(self.options), self.shape) is not None

    def built(self) -> Stack:
        """Build the layers with their initial weights."""
        return Stack(self.encoding, dict(self.options), self.shape, ffn=1)  # the FFN is never used

    def rows(self, device: torch.device, seed: int) -> list[dict[str, Any]]:
        """Measure the case, and return one row for each precision."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            stack = drawn(self.built(), seed).to(device)
        facts = {"encoding": self.encoding, "options": self.written, "stack": self.stack, "length": self.length}
        setting = {"seed": seed, "device": name_of(device), "torch": torch.__version__}
        return [{**facts, **row, **setting} for row in measured(stack, seed)]


def cases(encodings: Sequence[str], length: int = LENGTH) -> list[Case]:
    """Return the cases of each encoding, in encoders and in decoders if it works there.

    An encoding has a case for its default options. If it has the option `form` or `reset`, it also has a case for each
    other value with which it works.

    An encoding that cannot be used alone is measured together with the one that it needs.

    Raises:
        ValueError: An encoding is unknown, or works at this length neither in encoders nor in decoders.
    """
    all_cases: list[Case] = []
    for name in encodings:
        for member in name.split("+"):
            get(member)
        spec = spec_of(name) if name in names() else name
        own_cases = [case for causal in (False, True) for case in _readings(Case(spec, {}, causal, length))]
        if not own_cases:
            raise ValueError(
                f"--length {length}: the encoding {name} does not work at this length. Choose another length."
            )
        all_cases += own_cases
    return all_cases


def _readings(default: Case) -> list[Case]:
    """Return the default case, and a case for each other value of `form` and `reset` that works.

    Return an empty list if the encoding does not work with its default options.
    """
    if not default.works():
        return []
    fields = dataclasses.fields(get(default.encoding.split("+")[-1]).Options)
    readings = [choice for field in fields if field.name in READINGS for choice in _alternatives(field)]
    others = [choice for field in fields if field.name not in READINGS for choice in _alternatives(field)]
    accepted = [_accepted(default, reading, others) for reading in readings]
    return [default, *(case for case in accepted if case is not None)]


def _alternatives(field: dataclasses.Field[Any]) -> list[dict[str, Any]]:
    """Return the choices of an option except its default, or the option's example if it has no choices."""
    choices, example = field.metadata["choices"], field.metadata["example"]
    values = [choice for choice in choices if choice != field.default] if choices else [example]
    return [{written(field): value} for value in values if value is not None]


def _accepted(default: Case, reading: dict[str, Any], others: list[dict[str, Any]]) -> Case | None:
    """Return the first case that works with the choice `reading` and at most two of `others`; None if no case works.

    For example, `form=original` of `rope` also needs `scaling=yarn` and a factor.
    """
    for more in itertools.chain.from_iterable(itertools.combinations(others, count) for count in range(3)):
        options = dict(itertools.chain(reading.items(), *(other.items() for other in more)))
        case = dataclasses.replace(default, options=options)
        if case.works():
            return case
    return None


def name_of(device: torch.device) -> str:
    """Return the name of a GPU or, for a CPU, the name of its vector instructions."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({torch.backends.cpu.get_cpu_capability()})"  # the capability decides how half precision is multiplied
