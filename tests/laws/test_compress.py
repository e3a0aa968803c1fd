"""The hook `compress`, with an encoding made up here: keys without positions, and what may stand beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from fairseq_posenc.core.options import Options
from fairseq_posenc.encodings import RELATIVE, Capabilities, Composition, Layer, PositionEncoding, build
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case
from .compare import assert_close, assert_refused
from .scene import Scene, attend_all, embedded, new_caches, padded, positions_of
from .test_gradients import check_gradients
from .test_half import Expected, check_half
from .test_padding import check_batch, check_empty_rows, check_padding
from .test_reference import check_fused, check_reference
from .test_undeclared import check_built_direction

SLOTS = 3


class Slots(PositionEncoding):
    """Mixes all columns into a few slots, keys and values differently; counts columns, so no left pads."""

    def __init__(self, options: Options, stack: object) -> None:
        super().__init__(options, stack)
        self.weight = nn.Parameter(torch.randn(2, SLOTS, self.stack.max_length))

    @property
    def capabilities(self) -> Capabilities:
        return replace(RELATIVE, causal=False, memory=False, extrapolates=False, shift_invariant=False)

    @classmethod
    def count(cls, options: object, stack: object) -> int:
        return 2 * SLOTS * stack.max_length

    def check(self, positions: Positions) -> None:
        if positions.left_padded:
            raise ValueError("slots cannot serve batches with pads on the left")

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        return [{"mix": self.weight[:, :, : positions.key_length]}] * self.stack.layers

    def compress(self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor]:
        for_keys, for_values = layer.tensors["mix"].to(k_in.dtype)
        return for_keys @ k_in, for_values @ v_in

    def reference_compress(self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer) -> tuple[Tensor, ...]:
        pads = torch.zeros(k_in.shape[:2], dtype=torch.bool) if positions.padding is None else positions.padding
        pairs = zip(self.weight, (k_in, v_in), strict=True)
        return tuple(torch.stack([self._slot(row, x, pads) for row in mix], 1) for mix, x in pairs)

    def _slot(self, row: Tensor, x: Tensor, pads: Tensor) -> Tensor:
        return sum(row[t] * x[:, t] * ~pads[:, t, None] for t in range(x.shape[1]))


CASE = Case("slots", cls=Slots)


@pytest.mark.parametrize("side", ["none", "right"])
def test_it_equals_its_reference(side: str) -> None:
    check_reference(CASE, Scene(side=side))
    check_fused(CASE, Scene(side=side))


@pytest.mark.parametrize("path", ["explicit", "auto"])
def test_it_obeys_the_laws_of_padding(path: str) -> None:
    check_batch(CASE, path)
    for side in ("left", "right"):
        check_padding(CASE, side, path)
        check_empty_rows(CASE, side, path)


def test_it_obeys_the_other_laws() -> None:
    check_gradients(CASE, (0, 2))
    check_built_direction(Case("slots", causal=True, cls=Slots))
    check_half(Expected(CASE), torch.bfloat16, autocast=False, path="explicit")


def test_time_first_inputs_give_the_same() -> None:
    stack = Scene().stack(CASE)
    tokens = padded([6, 4, 5, 6], 6)
    x, positions = embedded(tokens, stack.shape.dim), positions_of(tokens, stack)
    expected = attend_all(stack, x, positions)
    for block in stack.layers:
        block.self_attn.batch_first = False
    # Stack is batch first: only the attention can turn
    turned = [
        block.self_attn(x.transpose(0, 1), positions, tensors)[0].transpose(0, 1)
        for block, tensors in zip(stack.layers, stack.pos.per_layer(positions), strict=True)
    ]
    assert_close(torch.stack(turned), expected, 1e-12, "time first")


def test_a_cache_is_refused() -> None:
    stack = Scene().stack(CASE)
    tokens = padded([6], 6)
    x, positions = embedded(tokens, stack.shape.dim), positions_of(tokens, stack)
    assert_refused(lambda: attend_all(stack, x, positions, caches=new_caches(stack)), "compressed", "cached")


def composed(*names: str) -> Composition:
    shape = Case("none").shape()
    others = [(name, build(name, None, shape).members[name]) for name in names]
    return Composition([("slots", Slots(Options(), shape)), *others], shape)


@pytest.mark.parametrize("name", ["shaw", "rope", "t5", "m2", "alibi"])
def test_nothing_that_needs_columns_stands_beside_it(name: str) -> None:
    assert_refused(lambda: composed(name), "slots", "compresses the keys", name)


def test_input_positions_may_stand_beside_it() -> None:
    encoding = composed("learned", "none")
    stack = Stack("none", None, encoding.stack).double()
    stack.pos = encoding.double()
    for index, block in enumerate(stack.layers, start=1):
        block.self_attn.use(encoding, index)
    tokens = padded([6, 4], 6)
    out = attend_all(stack, embedded(tokens, stack.shape.dim), positions_of(tokens, stack))
    assert out.isfinite().all()
