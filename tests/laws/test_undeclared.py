"""Test law 13: a use that an encoding does not declare raises an error, if possible when the model is built.

Positions that do not fit the stack raise an error, too. See test_length.py for lengths.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from fairseq_posenc.encodings import StackShape, names

from .cases import Case, claims, defaults, directions, in_turn, uses_own, without_options
from .compare import assert_refused
from .scene import Scene, batch_of, positions_of

#: For each part of positions that must agree with the stack, a function that returns another value for a case.
CONTRADICTIONS: dict[str, Callable[[Case], Any]] = {
    "causal": lambda case: not case.causal,
    "cls_column": lambda case: None if case.shape().has_cls else torch.zeros(1, dtype=torch.long),
    "segments": lambda case: None if case.encoding(case.shape()).needs_segments else torch.zeros(2, 6).long(),
}


def check_contradiction(case: Case, name: str) -> None:
    """Check that a stack refuses its own positions after this part was changed, even if its encoding could use them."""
    stack = Scene().stack(case)
    _, x, positions = batch_of(stack)
    assert stack(x, positions)[0].isfinite().all()
    changed = replace(positions, **{name: CONTRADICTIONS[name](case)})
    assert_refused(lambda: stack(x, changed), name)


#: For each capability that positions can need, a change of positions of 6 tokens that needs it, and words of the error.
NEEDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "memory": ({"query_length": 4, "memory": 2}, ["does not allow segment memory"]),
    "documents": ({"documents": torch.tensor([[0, 0, 0, 1, 1, 1]])}, ["documents that share a sequence, because"]),
    "any_positions": ({"ids": torch.arange(6)}, ["positions of your own", "because"]),
}
#: Where such positions are refused: by the function that makes them, by a stack, and by a layer outside of a stack.
PLACES = ["made", "a stack", "a layer"]


def needed(case: Case) -> list[str]:
    """Return the needs that an encoding does not declare. One without positions cannot use those of the caller."""
    return [
        need
        for need in NEEDS
        if not getattr(case.capabilities, need) or (need == "any_positions" and not uses_own(case))
    ]


def check_undeclared(case: Case, need: str, place: str) -> None:
    """Check that positions which need an undeclared capability are refused."""
    stack, (change, words) = Scene().stack(case), NEEDS[need]
    tokens, x, positions = batch_of(stack, [6])
    tensors, changed = stack.pos.per_layer(positions)[0], replace(positions, **change)
    given = {name: value for name, value in change.items() if name != "query_length"}
    states, x = x[:, : changed.memory], x[:, changed.memory :]
    layer, memory = stack.layers[0].self_attn, states if changed.memory else None
    calls: dict[str, Callable[[], Any]] = {
        "made": lambda: positions_of(tokens[:, changed.memory :], stack, **given),
        "a stack": lambda: stack(x, changed, memory=memory if memory is None else [memory] * len(stack.layers)),
        "a layer": lambda: layer(x, changed, tensors, memory=memory),
    }
    assert_refused(calls[place], case.spec, *words)


@pytest.mark.parametrize("case", in_turn(needed, claims))
def test_what_is_not_declared_is_refused(case: Case) -> None:
    for need, place in itertools.product(needed(case), PLACES):
        check_undeclared(case, need, place)


@pytest.mark.parametrize("case", defaults(lambda case: not uses_own(case)), ids=str)
def test_positions_that_are_drawn_are_refused_where_none_can_be_given(case: Case) -> None:
    (member,) = case.encoding(case.shape()).members.values()
    reason = "no positions" if member.capabilities.any_positions else member.only_columns
    assert_refused(lambda: case.encoding(replace(case.shape(), drawn=8)), case.spec, reason)


@pytest.mark.parametrize("name", names())
def test_every_encoding_serves_some_stack_and_refuses_the_other(name: str) -> None:
    served = directions(name)
    assert served, f"{name} can be built for neither encoders nor decoders"
    for causal in {False, True} - set(served):
        other = Case(name, {}, causal)
        words = f"does not work in {'a decoder' if causal else 'an encoder'}"
        assert_refused(lambda other=other: other.encoding(other.shape()), name, words)


@pytest.mark.parametrize("case", in_turn(now=without_options))
def test_positions_that_contradict_the_stack_are_refused(case: Case) -> None:
    for name in CONTRADICTIONS:
        check_contradiction(case, name)


def test_a_layer_that_the_stack_has_not_is_refused() -> None:
    encoding = Case("none").encoding(Case("none").shape(layers=2))
    for index in (0, 3):
        assert_refused(lambda index=index: encoding.layer(index), str(index), "2")


def test_heads_must_divide_the_width() -> None:
    assert_refused(lambda: StackShape(layers=1, heads=3, dim=8, max_length=4), "3", "8")


def test_sentence_positions_need_sentence_boundaries() -> None:
    case = Case("sentence-restart")
    stack = Scene().stack(case)
    _, x, positions = batch_of(stack, [4])
    without = replace(positions, restart_ids=None)
    assert_refused(lambda: stack(x, without), "sentence-restart", "boundaries")
