"""Law 13: what an encoding does not declare raises when asked for, when the model is built if that can be known.

Memory is in test_memory.py, length in test_length.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairseq_posenc.encodings import RELATIVE, Capabilities, StackShape, names
from fairseq_posenc.encodings.none import NoEncoding

from . import broken
from .cases import Case, directions, every
from .compare import assert_refused
from .scene import Scene, attend_all, embedded, padded, positions_of


class EncoderOnly(NoEncoding):
    """As Linformer."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(RELATIVE, causal=False)


class DecoderOnly(NoEncoding):
    """As CoPE."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(RELATIVE, bidirectional=False)


def check_built_direction(case: Case) -> None:
    """A stack in a direction that the encoding does not serve is refused when it is built."""
    assert_refused(lambda: case.encoding(case.shape()), case.spec, "decoder")


def check_other_direction(case: Case) -> None:
    """A stack that is run in the other direction works if that is declared, and raises otherwise."""
    stack = Scene().stack(case)
    tokens = padded([6, 4], 6)
    x = embedded(tokens, stack.shape.dim)
    turned = replace(positions_of(tokens, stack.shape), causal=not case.causal)
    can = stack.pos.capabilities
    if can.bidirectional if case.causal else can.causal:
        assert attend_all(stack, x, turned).isfinite().all()
    else:
        assert_refused(lambda: stack(x, turned), case.spec, "decoder")


@pytest.mark.parametrize("name", names())
def test_every_encoding_serves_some_stack_and_refuses_the_other(name: str) -> None:
    served = directions(name)
    assert served, f"{name} can be built for neither encoders nor decoders"
    for causal in {False, True} - set(served):
        check_built_direction(Case(name, {}, causal))


@pytest.mark.parametrize("case", every(), ids=str)
def test_the_other_direction_works_or_raises(case: Case) -> None:
    check_other_direction(case)


@pytest.mark.parametrize(("cls", "causal"), [(EncoderOnly, True), (DecoderOnly, False)])
def test_an_encoding_for_one_direction_is_refused_in_the_other(cls: type, causal: bool) -> None:
    check_built_direction(Case("one-way", causal=causal, cls=cls))
    check_other_direction(Case("one-way", causal=not causal, cls=cls))


def test_a_direction_that_is_not_refused_is_caught() -> None:
    with pytest.raises(AssertionError, match="not refused"):
        check_built_direction(Case("none"))
    case = Case("one-way", causal=True, cls=DecoderOnly, composition=broken.Permissive)
    with pytest.raises(AssertionError, match="not refused"):
        check_other_direction(case)


def test_a_layer_that_the_stack_has_not_is_refused() -> None:
    encoding = Case("none").encoding(Case("none").shape(layers=2))
    for index in (0, 3):
        assert_refused(lambda index=index: encoding.layer(index), str(index), "2")


def test_heads_must_divide_the_width() -> None:
    assert_refused(lambda: StackShape(layers=1, heads=3, dim=8, max_length=4), "3", "8")


def test_sentence_positions_need_sentence_boundaries() -> None:
    case = Case("sentence-restart")
    stack = Scene().stack(case)
    tokens = padded([4], 4)
    without = replace(positions_of(tokens, stack.shape), restart_ids=None)
    assert_refused(lambda: stack(embedded(tokens, stack.shape.dim), without), "sentence-restart", "boundaries")
