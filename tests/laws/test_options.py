"""Test law 11: an option changes something or is refused, and errors about unknown names list the known names."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

import pytest
import torch

from fairseq_posenc.core import options as opts
from fairseq_posenc.core.options import N, Options, option
from fairseq_posenc.core.syntax import parse_options
from fairseq_posenc.encodings import build, get, names

from .cases import Case, alternatives, defaults, directions
from .compare import assert_refused, differ, refusal
from .scene import attend_all, drawn, embedded, padded, positions_of

LENGTH = 24


@dataclasses.dataclass(frozen=True)
class OneOption:
    """Hold an option of an encoding, with a value other than its default."""

    case: Case
    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.case}-{self.name}={self.value}"


def one_option(cases: list[Case]) -> list[OneOption]:
    """Return all options of the cases with all their other values."""
    options = []
    for case in cases:
        for field in dataclasses.fields((case.cls or get(case.name)).Options):
            options += [OneOption(case, field.name, value) for value in alternatives(field)]
    return options


def what_it_is(case: Case) -> tuple[Any, ...]:
    """Return the declarations of an encoding and its initial parameters."""
    torch.manual_seed(0)
    built = case.encoding(case.shape(max_length=LENGTH))
    start = [(name, tuple(p.shape), p.flatten().tolist()) for name, p in built.named_parameters()]
    scales = [built.layer(index).scale for index in range(1, built.stack.layers + 1)]
    return built.capabilities, built.limit, scales, start


def output_of(case: Case) -> torch.Tensor:
    """Return the output of each layer with drawn parameters, [L, B, T, d]."""
    stack = drawn(case.stack(case.shape(max_length=LENGTH)))
    tokens = padded([LENGTH, LENGTH], LENGTH)
    with torch.no_grad():
        return attend_all(stack, embedded(tokens, stack.shape.dim), positions_of(tokens, stack))


def check_option(option: OneOption) -> None:
    """Check that another value changes declarations, initial parameters or outputs, or is refused.

    `none` may also find nothing to switch off, in the one direction and not in the other: one setting then serves
    the encoder and the decoder of a translation model.
    """
    effect = outcome(option)
    if effect == "nothing" and option.value == "none":
        effect = outcome(
            dataclasses.replace(option, case=dataclasses.replace(option.case, causal=not option.case.causal))
        )
        assert effect == "changes", f"{option} changes nothing, nor in the other direction"
    assert effect != "nothing", f"{option} changes nothing"


def outcome(option: OneOption) -> str:
    """Return what the option does: it changes something, it changes nothing, or it is refused."""
    changed = dataclasses.replace(option.case, args={option.name: option.value})
    try:
        declared = what_it_is(changed)
    except ValueError:
        return "refused"
    same = declared == what_it_is(option.case) and not differ(output_of(changed), output_of(option.case))
    return "nothing" if same else "changes"


@pytest.mark.parametrize("case", defaults(), ids=str)
def test_every_option_changes_something_or_is_refused(case: Case) -> None:
    for one in one_option([case]):
        check_option(one)


def try_to_build(name: str, args: Any) -> str:
    """Return the message of the error about these options, in the first direction in which the encoding works."""
    return refusal(lambda: build(name, args, Case(name, {}, directions(name)[0]).shape()))


@pytest.mark.parametrize("name", names())
def test_an_unknown_option_is_refused_and_the_known_are_named(name: str) -> None:
    message = try_to_build(name, "no-such-option=1")
    for word in ("no_such_option", name, *opts.names(get(name).Options)):
        assert word in message


def senseless(name: str, field: dataclasses.Field[Any]) -> list[Any]:
    """Return values that an option cannot have. A YAML file may contain whole numbers of any size."""
    hint = typing.get_type_hints(get(name).Options)[field.name]
    kinds = {hint, *typing.get_args(hint)}
    if not kinds & {int, float}:
        return ["gibberish"]
    low, high = field.metadata["between"]
    beyond = [low - 1, *([] if high == N else [high + 1 if high < 1e9 else 2 * high])]
    huge = ["1e300", "-1e300", 10**400, -(10**400), "9" * 5000, 1e300]
    return ["gibberish", "nan", "inf", -1, *beyond, *huge, *(["1.5", True] if int in kinds else [])]


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


@pytest.mark.parametrize("name", names())
def test_an_encoding_states_its_facts_and_what_its_options_mean(name: str) -> None:
    facts = get(name).facts
    assert all((facts.title, facts.paper, facts.equation, facts.formula, facts.count, get(name).__doc__))
    for field in dataclasses.fields(get(name).Options):
        assert field.metadata["help"]
        assert alternatives(field)
        assert field.default not in alternatives(field)


def test_an_option_may_be_called_as_a_word_of_python() -> None:
    @dataclasses.dataclass(frozen=True)
    class Keyword(Options):
        lambda_: float = option(4.0, "a height", example=2.0)

    assert opts.names(Keyword) == ["lambda", "layers", "window"]
    assert [row["name"] for row in opts.describe(Keyword)] == ["lambda"]
    for text in ("lambda=2", "lambda_=2"):
        assert str(opts.fill(Keyword, parse_options(text))) == "lambda=2.0"
    assert_refused(lambda: opts.fill(Keyword, {"lambda": "wide"}), "lambda=wide must be a number")
    assert_refused(lambda: parse_options("lambda=2,lambda_=2"), "twice")


SAME = [
    ("t5", "max-distance=64", "max_distance=64"),
    ("shaw", "share=layer_wise", "share=layer-wise"),
    ("shaw", " clip = 3, values=True ,share=none", {"clip": 3, "values": True, "share": "none"}),
    ("shaw", "clip=none", None),
    ("shaw", "", {}),
]


@pytest.mark.parametrize(("spec", "args", "same"), SAME)
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
