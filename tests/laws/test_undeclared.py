"""Test law 13: a use that an encoding does not declare raises an error, if possible when the model is built.

Positions that do not fit the stack raise an error, too. See test_memory.py for memory and test_length.py for lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from fairseq_posenc.encodings import Composition, StackShape, names
from fairseq_posenc.encodings.none import NoEncoding
from fairseq_posenc.positions import Positions

from .broken import declaring
from .cases import Case, defaults, directions, in_turn, without_options
from .compare import assert_refused
from .scene import BOS, EOS, Scene, batch_of, padded

#: An encoding that works in encoders, but declares nothing else.
NOTHING = declaring(NoEncoding, causal=False, memory=False, documents=False, any_positions=False, extrapolates=False)


def check_built_direction(case: Case) -> None:
    """Check that a stack in a direction in which the encoding does not work cannot be built."""
    stack = "a decoder" if case.causal else "an encoder"
    assert_refused(lambda: case.encoding(case.shape()), case.spec, f"does not work in {stack}")


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


#: For each capability that positions can need, a change of positions of 6 tokens that needs it.
NEEDS: dict[str, dict[str, Any]] = {
    "memory": {"query_length": 4, "memory": 2},
    "documents": {"documents": torch.tensor([[0, 0, 0, 1, 1, 1]])},
    "any_positions": {"ids": torch.arange(6)},
}


def check_own_layers(case: Case, capability: str) -> None:
    """Check that without a `Stack`, positions that need an undeclared capability are neither made nor used."""
    stack = Scene().stack(case)
    made = {name: value for name, value in NEEDS[capability].items() if name != "query_length"}
    assert_refused(lambda: own_positions(stack.pos, padded([6], 6)[:, : 6 - made.get("memory", 0)], **made), case.spec)
    positions = own_positions(stack.pos, padded([6], 6))
    tensors, x = stack.pos.per_layer(positions)[0], torch.zeros(1, 6, stack.shape.dim, dtype=torch.float64)
    changed = replace(positions, **NEEDS[capability])
    x, memory = x[:, changed.memory :], x[:, : changed.memory] if changed.memory else None
    assert_refused(lambda: stack.layers[0].self_attn(x, changed, tensors, memory=memory), case.spec)


def check_own_length(case: Case) -> None:
    """Check that without a `Stack`, no positions beyond the limit of an encoding are made."""
    encoding = case.encoding(case.shape())
    assert encoding.limit is not None
    tokens = padded([encoding.limit + 1], encoding.limit + 1)
    assert_refused(lambda: own_positions(encoding, tokens), case.spec, str(encoding.limit))


def own_positions(encoding: Composition, tokens: torch.Tensor, **given: Any) -> Positions:
    """Make positions with an encoding, as layers of one's own do."""
    segments = torch.zeros(1, tokens.shape[1] + given.get("memory", 0), dtype=torch.long)
    read = segments if encoding.needs_segments else None
    return encoding.positions(tokens, pad=None, boundaries=(BOS, EOS), segments=read, **given)


UNDECLARED = [(case, name) for case in defaults() for name in NEEDS if not getattr(case.capabilities, name)]


@pytest.mark.parametrize(("case", "capability"), UNDECLARED, ids=str)
def test_layers_of_ones_own_cannot_use_what_is_not_declared(case: Case, capability: str) -> None:
    check_own_layers(case, capability)


@pytest.mark.parametrize("case", defaults(lambda case: case.encoding(case.shape()).limit is not None), ids=str)
def test_layers_of_ones_own_cannot_exceed_the_limit(case: Case) -> None:
    check_own_length(case)


@pytest.mark.parametrize("name", names())
def test_every_encoding_serves_some_stack_and_refuses_the_other(name: str) -> None:
    served = directions(name)
    assert served, f"{name} can be built for neither encoders nor decoders"
    for causal in {False, True} - set(served):
        check_built_direction(Case(name, {}, causal))


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
