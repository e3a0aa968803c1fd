"""What the tests of the modern encodings share."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention.paths import Projected, logits
from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")
#: BERT-base, METHODS.md section 4
BASE = {"layers": 12, "heads": 12, "dim": 768, "max_length": 512}


def made(
    spec: str,
    args: str = "",
    *,
    layers: int = 1,
    heads: int = 1,
    head_dim: int = 4,
    n: int = 8,
    causal: bool = True,
    dtype: torch.dtype = torch.float64,
) -> Composition:
    """In evaluation, parameters as they start."""
    torch.manual_seed(0)
    shape = StackShape(layers, heads, heads * head_dim, n, causal=causal, length_flag="--length")
    return build(spec, args, shape).to(dtype).eval().requires_grad_(False)


def logits_of(pos: Composition, q: Tensor, k: Tensor, positions: Positions, layer: int = 1) -> Tensor:
    """[B, h, Q, K] of raw q and k before the mask, as the attention makes them."""
    call = pos.layer(layer).at(positions, pos.per_layer(positions)[layer - 1])
    return logits(Projected(call.project_q(q), call.project_k(k), k, q, k), call)


def bias_of(pos: Composition, positions: Positions, layer: int = 1) -> Tensor:
    """What a content-free encoding adds, [1 or B, 1 or h, Q, K]."""
    bias = pos.layer(layer).at(positions, pos.per_layer(positions)[layer - 1]).additive(torch.empty(0), torch.empty(0))
    assert bias is not None
    return bias


def count_at_base(spec: str, args: str = "", *, causal: bool = True) -> int:
    """Parameters of a base model, without memory for them."""
    with torch.device("meta"):
        return sum(p.numel() for p in build(spec, args, StackShape(**BASE, causal=causal)).parameters())


def refused(spec: str, args: str, *words: str, head_dim: int = 4, causal: bool = True) -> None:
    """Building it fails with a message that holds all the words."""
    with pytest.raises(ValueError, match=spec) as error:
        made(spec, args, head_dim=head_dim, causal=causal)
    for word in words:
        assert word in str(error.value)
