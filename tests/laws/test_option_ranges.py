"""Test that every numeric option has a range, that outputs within it are finite, and that other values are refused."""

from __future__ import annotations

import dataclasses
import math
import typing
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairseq_posenc.core import options as opts
from fairseq_posenc.core.options import N, Options, option
from fairseq_posenc.encodings import get, names
from fairseq_posenc.encodings.alibi import AlibiOptions
from fairseq_posenc.stack import Stack

from .cases import Case, defaults, every
from .compare import assert_finite
from .scene import attend_all, drawn, embedded, padded, positions_of

LENGTH = 12


def is_numeric(cls: type[Options], field: dataclasses.Field[Any]) -> bool:
    hint = typing.get_type_hints(cls)[field.name]
    return bool({int, float} & {hint, *typing.get_args(hint)})


#: Every option, and those that are numbers, with their encodings.
FIELDS = [(name, field) for name in names() for field in dataclasses.fields(get(name).Options)]
NUMERIC = [(name, field) for name, field in FIELDS if is_numeric(get(name).Options, field)]


def with_value(name: str, field: dataclasses.Field[Any], value: Any) -> Case:
    """Return a case of an encoding that has this option set, together with the options that it needs."""
    cases = every(lambda case: case.name == name)
    case = next((case for case in cases if field.name in case.args), cases[0])
    key = f"{name}.{field.name}" if "+" in case.spec and field.name not in case.args else field.name
    return dataclasses.replace(case, args={**case.args, key: value})


def bounds(field: dataclasses.Field[Any]) -> tuple[float, float]:
    low, high = field.metadata["between"]
    return low, LENGTH if high == N else high


def at(field: dataclasses.Field[Any], part: float) -> float:
    """Return the value at this part of the range, on a logarithmic scale: the range may have many orders."""
    low, high = bounds(field)
    start = low or 1e-9 * high
    return low if part == 0 else min(high, start * math.exp(part * math.log(high / start)))


def check_value(case: Case, field: dataclasses.Field[Any], part: float) -> None:
    """Check that all outputs in float32 are finite with this value, or that the encoding refuses it for a reason."""
    value = at(field, part)
    is_whole = all(isinstance(bound, int | str) for bound in field.metadata["between"])
    key = next((key for key in case.args if key.endswith(f".{field.name}")), field.name)
    case = dataclasses.replace(case, args={**case.args, key: round(value) if is_whole else value})
    try:
        outputs = output_of(case)
    except ValueError as error:
        refused = str(error)
    else:
        refused = opts.written(field)
        assert_finite(outputs, str(case))
    assert opts.written(field) in refused


def output_of(case: Case) -> torch.Tensor:
    """Return the output of a layer with drawn parameters, in float32."""
    stack: Stack = drawn(case.stack(case.shape(layers=1, max_length=LENGTH))).float()
    tokens = padded([LENGTH, LENGTH - 3], LENGTH)
    with torch.no_grad():
        return attend_all(stack, embedded(tokens, stack.shape.dim).float(), positions_of(tokens, stack))


def test_every_number_declares_a_range() -> None:
    for name, field in FIELDS:
        numeric = (name, field) in NUMERIC
        assert bool(field.metadata["between"]) == bool(opts.written_range(field)) == numeric, f"{name}: {field.name}"


@pytest.mark.parametrize(("name", "field"), NUMERIC, ids=lambda part: getattr(part, "name", part))
@settings(max_examples=1)
@given(part=st.floats(0, 1))
@example(part=0.0)
@example(part=1.0)
def test_every_number_within_the_range_gives_finite_outputs(
    name: str, field: dataclasses.Field[Any], part: float
) -> None:
    check_value(with_value(name, field, field.metadata["example"]), field, part)


@dataclasses.dataclass(frozen=True)
class Wide(AlibiOptions):
    """Define an option whose range is too wide: the square of its largest value is infinite."""

    size: float = option(1.0, "a size", between=(1, 1e30), example=2.0)


def test_a_range_that_is_too_wide_is_caught() -> None:
    class Overflows(get("alibi")):  # type: ignore[misc]
        Options = Wide

        def bias(self, positions: Any, layer: Any) -> torch.Tensor:
            return super().bias(positions, layer).float() * self.options.size**2

    case = dataclasses.replace(defaults(lambda case: case.spec == "alibi")[0], spec="overflows", cls=Overflows)
    field = dataclasses.fields(Wide)[-1]
    check_value(case, field, 0.0)
    with pytest.raises(AssertionError):
        check_value(case, field, 1.0)
