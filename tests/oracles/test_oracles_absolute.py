"""Absolute positions against stock fairseq's own (METHODS.md 2.2, 2.3; section 10, oracle 13)."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import oracle
from torch import Tensor

from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.positions import Positions

PAD, LENGTH = 1, 12
FIRST = PAD + 1  # fairseq's first position
SAMPLES = {
    "no pads": [[4] * LENGTH, [5] * LENGTH],
    "right": [[4] * LENGTH, [5] * 8 + [PAD] * 4],
    "left": [[4] * LENGTH, [PAD] * 4 + [5] * 8],
}
both_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])
all_samples = pytest.mark.parametrize("tokens", [torch.tensor(rows) for rows in SAMPLES.values()], ids=list(SAMPLES))
widths = pytest.mark.parametrize("dim", [16, 15], ids=["even width", "odd width"])


def encoding(spec: str, args: str, dim: int, dtype: torch.dtype) -> Composition:
    return build(spec, args, StackShape(1, 1, dim, LENGTH, causal=True)).to(dtype).eval().requires_grad_(False)


def ours(pos: Composition, tokens: Tensor, dim: int, dtype: torch.dtype, cached: int = 0) -> Tensor:
    """What is added to an input of zeros, at the columns that are no pads."""
    positions = Positions.of_tokens(tokens, pad=PAD, causal=True, cached=cached)
    x = torch.zeros(len(tokens), tokens.shape[1] - cached, dim, dtype=dtype)
    return pos.embed(x, positions)[tokens[:, cached:] != PAD]


def sinusoids(dim: int, dtype: torch.dtype) -> torch.nn.Module:
    module = oracle("fairseq.modules.sinusoidal_positional_embedding")
    peer = module.SinusoidalPositionalEmbedding(dim, PAD, init_size=64)
    assert peer.weights.shape == (64, dim)
    return peer.to(dtype)


# fairseq's angles are float32: position 13 times a rounded frequency is off by about 1e-6
@both_dtypes
@widths
@all_samples
def test_sinusoidal_t2t_is_fairseqs(tokens: Tensor, dim: int, dtype: torch.dtype) -> None:
    pos = encoding("sinusoidal", f"freq=t2t,offset={FIRST}", dim, dtype)
    theirs = sinusoids(dim, dtype)(tokens)[tokens != PAD]
    torch.testing.assert_close(ours(pos, tokens, dim, dtype), theirs, rtol=0, atol=1e-6)


@both_dtypes
@widths
def test_sinusoidal_step_by_step(dim: int, dtype: torch.dtype) -> None:
    peer, pos = sinusoids(dim, dtype), encoding("sinusoidal", f"freq=t2t,offset={FIRST}", dim, dtype)
    for length in range(1, LENGTH + 1):
        tokens = torch.full((2, length), 4)
        theirs = peer(tokens, incremental_state={})[:, 0]
        torch.testing.assert_close(ours(pos, tokens, dim, dtype, cached=length - 1), theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("args", ["freq=t2t,offset=1", "freq=t2t,offset=3", "freq=t2t", "offset=2"])
def test_sinusoidal_mistakes_show(args: str) -> None:
    tokens = torch.tensor(SAMPLES["right"])
    theirs = sinusoids(16, torch.float64)(tokens)[tokens != PAD]
    found = ours(encoding("sinusoidal", args, 16, torch.float64), tokens, 16, torch.float64)
    assert (found - theirs).abs().max() > 1e-2


def learned(dtype: torch.dtype) -> tuple[torch.nn.Module, Composition]:
    """fairseq's table has padding_idx + 1 rows before the first position: ours has not."""
    module = oracle("fairseq.modules.learned_positional_embedding")
    torch.manual_seed(0)
    peer = module.LearnedPositionalEmbedding(LENGTH + FIRST, 16, PAD).to(dtype).requires_grad_(False)
    assert peer.max_positions == LENGTH
    pos = encoding("learned", "", 16, dtype)
    pos.members["learned"].weight.copy_(peer.weight[FIRST:])
    return peer, pos


@both_dtypes
@all_samples
def test_learned_is_fairseqs_without_the_extra_rows(tokens: Tensor, dtype: torch.dtype) -> None:
    peer, pos = learned(dtype)
    assert torch.equal(ours(pos, tokens, 16, dtype), peer(tokens)[tokens != PAD])


@both_dtypes
def test_learned_step_by_step(dtype: torch.dtype) -> None:
    peer, pos = learned(dtype)
    for length in range(1, LENGTH + 1):
        tokens = torch.full((2, length), 4)
        theirs = peer(tokens, incremental_state={}).expand(2, 1, -1)[:, 0]
        assert torch.equal(ours(pos, tokens, 16, dtype, cached=length - 1), theirs)


@pytest.mark.parametrize("dropped", [FIRST - 1, FIRST - 2])
def test_learned_mistakes_show(dropped: int) -> None:
    peer, pos = learned(torch.float64)
    pos.members["learned"].weight.copy_(peer.weight[dropped : dropped + LENGTH])
    tokens = torch.tensor(SAMPLES["left"])
    assert (ours(pos, tokens, 16, torch.float64) - peer(tokens)[tokens != PAD]).abs().max() > 1e-2
