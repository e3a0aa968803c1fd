"""Test that M3 (Huang et al. 2020, equations 14 and 15) needs no tensor of all products."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, build_encoding, drawn, drawn_wide, largest_tensor, logits_of
from torch import Tensor

from fairseq_posenc.ops import toeplitz, trilinear
from fairseq_posenc.positions import Positions


@pytest.mark.parametrize("args", ["", "clip=3"])
@pytest.mark.parametrize("own", [False, True], ids=["columns", "own positions"])
def test_m3_never_holds_all_products(args: str, own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without compiled loops, neither the forward nor the backward holds all products."""
    monkeypatch.setattr(trilinear, "usable", lambda *work: False)
    length, dim = 48, 32
    chunk = 2 * 2 * length * dim
    pos = drawn_wide(build_encoding("m3", args, heads=2, head_dim=dim, n=length))
    monkeypatch.setattr(toeplitz, "CHUNK", chunk)
    q, k = drawn(length, length, head_dim=dim)
    ids = torch.arange(length - 1, -1, -1) if own else None
    kept: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes() // x.element_size()
        return x

    with largest_tensor() as seen:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            actual = logits_of(pos, q, k, Positions(length, length, CPU, ids=ids))
        actual.sum().backward()
    logits = 2 * 2 * length * (2 * length - 1)
    assert seen.size <= max(chunk, logits)
    assert sum(kept.values()) <= 2 * logits + 10 * q.numel()
