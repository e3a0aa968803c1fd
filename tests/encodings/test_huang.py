"""Test that M3 (Huang et al. 2020, equations 14 and 15) does not depend on how many products it computes at once."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, build_encoding, drawn, drawn_wide, largest_tensor, logits_of
from torch import Tensor

from fairseq_posenc.core.base import Layer
from fairseq_posenc.encodings import huang
from fairseq_posenc.ops import compiled
from fairseq_posenc.positions import Positions


def outcome(args: str, positions: Positions, *, literal: bool) -> list[Tensor]:
    """Return the logits where a query may look, of M3 or of its reference, and the gradients of q, k and the table."""
    pos = drawn_wide(build_encoding("m3", args, heads=2, head_dim=4, n=16, causal=positions.causal))
    q, k = drawn(positions.query_length, positions.key_length)
    m3 = pos.members["m3"]
    actual = m3.reference(q, k, positions, Layer(1, 1)) if literal else logits_of(pos, q, k, positions)
    if positions.causal:
        actual = actual.tril(positions.offset)
    return [actual, *torch.autograd.grad(actual.sin().sum(), [q, k, m3.weight])]


@pytest.mark.parametrize("chunk", [1, 500, 1 << 30])
@pytest.mark.parametrize("args", ["", "clip=1", "clip=3", "clip=4,share=none"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (3, 9), (9, 9)])
@pytest.mark.parametrize("causal", [False, True])
def test_m3_is_the_same_in_any_chunks(
    causal: bool, shape: tuple[int, int], args: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huang, "CHUNK", chunk)
    where = Positions(*shape, CPU, causal=causal)
    for actual, expected in zip(outcome(args, where, literal=False), outcome(args, where, literal=True), strict=True):
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("args", ["", "clip=3"])
def test_m3_never_holds_all_products(args: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without compiled loops, neither the forward nor the backward holds all products."""
    monkeypatch.setattr(compiled, "usable", lambda *work: False)
    length, dim = 48, 32
    chunk = 2 * 2 * length * dim
    pos = drawn_wide(build_encoding("m3", args, heads=2, head_dim=dim, n=length))
    monkeypatch.setattr(huang, "CHUNK", chunk)
    q, k = drawn(length, length, head_dim=dim)
    kept: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes() // x.element_size()
        return x

    with largest_tensor() as seen:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            actual = logits_of(pos, q, k, Positions(length, length, CPU))
        actual.sum().backward()
    logits = 2 * 2 * length * (2 * length - 1)
    assert seen.size <= max(chunk, logits)
    assert sum(kept.values()) <= 2 * logits + 10 * q.numel()
