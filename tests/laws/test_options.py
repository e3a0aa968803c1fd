"""Test law 11: an option changes something or is refused, and errors about unknown names list the known names.

Every numeric option has a range; outputs within it are finite, and other values are refused.
"""

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
from fairseq_posenc.core.options import N
from fairseq_posenc.encodings import build, get, names

from .cases import Case, alternatives, defaults, directions, every, tables
from .compare import assert_finite, differ, refusal
from .scene import attend_all, batch_of, drawn

#: Length at which options are compared, and the longest sequence at which values within the ranges are tried.
LENGTH, LONGEST = 24, 12


def what_it_is(case: Case) -> tuple[Any, ...]:
    """Return the declarations of an encoding and its initial parameters."""
    torch.manual_seed(0)
    built = case.encoding(case.shape(max_length=LENGTH))
    start = [(name, tuple(p.shape), p.flatten().tolist()) for name, p in built.named_parameters()]
    scales = [built.layer(index).scale for index in range(1, built.stack.layers + 1)]
    return built.capabilities, built.limit, scales, start


def output_of(case: Case, length: int, dtype: torch.dtype = torch.float64, layers: int = 2) -> torch.Tensor:
    """Return the output of each layer with drawn parameters, [L, B, T, d]."""
    stack = drawn(case.stack(case.shape(layers=layers, max_length=length))).to(dtype)
    with torch.no_grad():
        return attend_all(stack, *batch_of(stack, [length, length])[1:])


def check_options(case: Case) -> None:
    """Check that every other value of an option changes declarations, initial parameters or outputs, or is refused.

    `none` may also find nothing to switch off, in the one direction and not in the other: one setting then serves
    the encoder and the decoder of a translation model.
    """
    fields = dataclasses.fields((case.cls or get(case.name)).Options)
    for name, value in [(field.name, value) for field in fields for value in alternatives(field)]:
        effect = outcome(case, name, value)
        if effect == "nothing" and value == "none":
            effect = outcome(dataclasses.replace(case, causal=not case.causal), name, value)
        assert effect != "nothing", f"{name}={value} changes nothing"


def outcome(case: Case, name: str, value: Any) -> str:
    """Return what the option does: it changes something, it changes nothing, or it is refused."""
    changed = dataclasses.replace(case, args={name: value})
    try:
        declared = what_it_is(changed)
    except ValueError:
        return "refused"
    if declared != what_it_is(case) or differ(output_of(changed, LENGTH), output_of(case, LENGTH)):
        return "changes"
    return "nothing"


@pytest.mark.parametrize("case", defaults(), ids=str)
def test_every_option_changes_something_or_is_refused(case: Case) -> None:
    check_options(case)


def try_to_build(name: str, args: Any) -> str:
    """Return the message of the error about these options, in the first direction in which the encoding works."""
    return refusal(lambda: build(name, args, Case(name, {}, directions(name)[0]).shape()))


@pytest.mark.parametrize("name", names())
def test_an_unknown_option_is_refused_and_the_known_are_named(name: str) -> None:
    message = try_to_build(name, "no-such-option=1")
    for word in ("no_such_option", name, *opts.names(get(name).Options)):
        assert word in message


def kinds(name: str, field: dataclasses.Field[Any]) -> set[Any]:
    """Return the types that an option may have."""
    hint = typing.get_type_hints(get(name).Options)[field.name]
    return {hint, *typing.get_args(hint)}


def senseless(name: str, field: dataclasses.Field[Any]) -> list[Any]:
    """Return values that an option cannot have. A YAML file may contain whole numbers of any size."""
    if not kinds(name, field) & {int, float}:
        return ["gibberish"]
    low, high = field.metadata["between"]
    beyond = [low - 1, *([] if high == N else [high + 1 if high < 1e9 else 2 * high])]
    huge = ["1e300", "-1e300", 10**400, -(10**400), "9" * 5000, 1e300]
    return ["gibberish", "nan", "inf", -1, *beyond, *huge, *(["1.5", True] if int in kinds(name, field) else [])]


@pytest.mark.parametrize("name", names())
def test_a_senseless_value_is_refused_and_the_known_are_named(name: str) -> None:
    for field in dataclasses.fields(get(name).Options):
        for value in senseless(name, field):
            message = try_to_build(name, {field.name: value})
            for word in (name, opts.written(field), *(field.metadata["choices"] or ())):
                assert word in message, f"{field.name}={value}: {message}"
            ranges = (f"must be from {opts.written_range(field)}", "number from 1 to n", "must not be negative")
            reasons = (*ranges, "must be a ", "must be true", "must be numbers", "must be one of")
            assert any(reason in message for reason in reasons), f"{field.name}={value}: {message}"


@pytest.mark.parametrize(("spec", "args", "same"), [*tables("options")["same"], ("shaw", None, {})])
def test_what_means_the_same_builds_the_same(spec: str, args: str, same: Any) -> None:
    shape = Case(spec).shape()
    assert str(build(spec, args, shape)) == str(build(spec, same, shape))
    assert "clip=3" in str(build("shaw", "clip=3", shape))


def test_in_a_composition_an_option_finds_its_owner() -> None:
    shape = Case("shaw").shape()
    both = build("learned+shaw", "clip=3,learned.init-std=0.5,shaw.init-std=0.1", shape)
    assert both.members["shaw"].options.clip == 3
    assert [member.options.init_std for member in both.members.values()] == [0.5, 0.1]
    assert build("sentence-restart+shaw", "sentence-restart.init=zeros", shape).members["shaw"].options.init == "normal"


# -- ranges of numbers -------------------------------------------------------------------------------------


#: Every option, and those that are numbers, with their encodings.
FIELDS = [(name, field) for name in names() for field in dataclasses.fields(get(name).Options)]
NUMERIC = [(name, field) for name, field in FIELDS if kinds(name, field) & {int, float}]


def value_at(field: dataclasses.Field[Any], part: float) -> float:
    """Return the value at this part of the range, on a logarithmic scale: the range may have many orders."""
    low, high = field.metadata["between"]
    is_whole = isinstance(low, int) and isinstance(high, int | str)
    high = LONGEST if high == N else high
    start = low or 1e-9 * high
    value = low if part == 0 else min(high, start * math.exp(part * math.log(high / start)))
    return round(value) if is_whole else value


def check_value(name: str, field: dataclasses.Field[Any], part: float) -> None:
    """Check that all outputs in float32 are finite with a value, or that the encoding refuses it for a reason.

    The option is set together with the options that it needs.
    """
    cases = every(lambda case: case.name == name)
    case = next((case for case in cases if field.name in case.args), cases[0])
    key = f"{name}.{field.name}" if "+" in case.spec and field.name not in case.args else field.name
    case = dataclasses.replace(case, args={**case.args, key: value_at(field, part)})
    try:
        outputs = output_of(case, LONGEST, torch.float32, layers=1)
    except ValueError as error:
        if opts.written(field) not in str(error):
            raise
        return
    assert_finite(outputs, str(case))


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
    check_value(name, field, part)
