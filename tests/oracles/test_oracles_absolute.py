"""Compare absolute positions with fairseq's own implementation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from oracle_ways import oracle
from torch import Tensor, nn

from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.positions import Positions

PAD, LENGTH = 1, 12
FIRST = PAD + 1  # fairseq's first position
SAMPLES = {
    "no pads": [[4] * LENGTH, [5] * LENGTH],
    "right": [[4] * LENGTH, [5] * 8 + [PAD] * 4],
    "left": [[4] * LENGTH, [PAD] * 4 + [5] * 8],
}
all_samples = pytest.mark.parametrize("tokens", [torch.tensor(rows) for rows in SAMPLES.values()], ids=list(SAMPLES))
Pair = Callable[..., tuple[nn.Module, Composition]]


def encoding(spec: str, args: str, dim: int) -> Composition:
    return build(spec, args, StackShape(1, 1, dim, LENGTH, causal=True)).double().eval().requires_grad_(False)


def ours(pos: Composition, tokens: Tensor, dim: int, cached: int = 0) -> Tensor:
    """Return what is added to an input of zeros at the columns that are not padding."""
    positions = Positions.of_tokens(tokens, pad=PAD, causal=True, cached=cached)
    x = torch.zeros(len(tokens), tokens.shape[1] - cached, dim, dtype=torch.float64)
    return pos.embed(x, positions)[tokens[:, cached:] != PAD]


def sinusoidal(dim: int, args: str = "") -> tuple[nn.Module, Composition]:
    module = oracle("fairseq.modules.sinusoidal_positional_embedding")
    peer = module.SinusoidalPositionalEmbedding(dim, PAD, init_size=64)
    assert peer.weights.shape == (64, dim)
    return peer.double(), encoding("sinusoidal", args or f"freq=t2t,offset={FIRST}", dim)


def learned(dim: int, first: int = FIRST) -> tuple[nn.Module, Composition]:
    """Return fairseq's table, which has padding_idx + 1 additional rows before the first position."""
    module = oracle("fairseq.modules.learned_positional_embedding")
    torch.manual_seed(0)
    peer = module.LearnedPositionalEmbedding(LENGTH + FIRST, dim, PAD).double().requires_grad_(False)
    assert peer.max_positions == LENGTH
    pos = encoding("learned", "", dim)
    pos.members["learned"].weight.copy_(peer.weight[first : first + LENGTH])
    return peer, pos


# fairseq's angles are float32: position 13 times a rounded frequency is off by about 1e-6
PAIRS = [(sinusoidal, 16, 1e-6), (sinusoidal, 15, 1e-6), (learned, 16, 0.0)]
all_pairs = pytest.mark.parametrize(("pair", "dim", "tolerance"), PAIRS, ids=lambda x: getattr(x, "__name__", str(x)))


@all_pairs
@all_samples
def test_whole_samples(tokens: Tensor, pair: Pair, dim: int, tolerance: float) -> None:
    peer, pos = pair(dim)
    theirs = peer(tokens)[tokens != PAD]
    torch.testing.assert_close(ours(pos, tokens, dim), theirs, rtol=0, atol=tolerance)


@all_pairs
def test_step_by_step(pair: Pair, dim: int, tolerance: float) -> None:
    peer, pos = pair(dim)
    for length in range(1, LENGTH + 1):
        tokens = torch.full((2, length), 4)
        theirs = peer(tokens, incremental_state={}).expand(2, 1, -1)[:, 0]
        found = ours(pos, tokens, dim, cached=length - 1)
        torch.testing.assert_close(found, theirs, rtol=0, atol=tolerance)


MISTAKES: list[tuple[Pair, str | int]] = [
    *((sinusoidal, args) for args in ("freq=t2t,offset=1", "freq=t2t,offset=3", "freq=t2t", "offset=2")),
    *((learned, first) for first in (FIRST - 1, FIRST - 2)),
]


@pytest.mark.parametrize(("pair", "mistake"), MISTAKES)
def test_mistakes_show(pair: Pair, mistake: str | int) -> None:
    peer, pos = pair(16, mistake)
    tokens = torch.tensor(SAMPLES["left"])
    assert (ours(pos, tokens, 16) - peer(tokens)[tokens != PAD]).abs().max() > 1e-2
