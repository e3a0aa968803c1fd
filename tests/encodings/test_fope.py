"""Test FoPE, the option `fourier` of RoPE (Hua et al. 2024)."""

from __future__ import annotations

import math

import pytest
import torch
from one_layer import CPU, build_encoding, drawn, drawn_wide, lengths, logits_of, vectors
from torch import Tensor

from fairseq_posenc.encodings import Composition
from fairseq_posenc.positions import Positions


def fope(args: str = "", *, head_dim: int = 4, n: int = 8, heads: int = 1) -> Composition:
    return build_encoding("rope", f"fourier=true{args}", head_dim=head_dim, n=n, heads=heads)


@lengths
def test_the_factors_by_hand(queries: int, keys: int) -> None:
    """For D = 2 and q = k = (1, 0), the logit is (4 cos i cos j + 9 sin i sin j) / sqrt(2) if 1 + a = 2 and 1 + b = 3.

    At the positions 1 and 2, cos is 0.540302 and -0.416147, and sin is 0.841471 and 0.909297.
    """
    pos = fope(head_dim=2)
    pos.members["rope"].cosine.fill_(1.0)
    pos.members["rope"].sine.fill_(2.0)
    actual = logits_of(pos, vectors([1, 0], queries), vectors([1, 0], keys), Positions(queries, keys, CPU))[0, 0]
    by_positions = {(1, 1): 5.331844, (1, 2): 4.233410, (0, 1): 1.528205, (0, 0): 2.828427}
    for (i, j), value in by_positions.items():
        if i >= keys - queries and j < keys:
            assert actual[i - (keys - queries), j].item() == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(
    ("base", "head_dim", "n", "count"),
    [(10000, 64, 512, 16), (100, 4, 63, 2), (100, 4, 62, 1), (10000, 4, 2, 1)],  # 2 pi / 0.1 = 62.83
)
def test_the_pairs_that_make_a_turn_within_n_positions(base: int, head_dim: int, n: int, count: int) -> None:
    pos = fope(f",base={base}", head_dim=head_dim, n=n)
    assert pos.members["rope"].cosine.shape == (1, 1, count, count)


def as_in_vllm(x: Tensor, cosine: Tensor, sine: Tensor, base: float) -> Tensor:
    """Return x [B, h, T, D] turned as in vLLM's `FourierRotaryEmbedding`, whose pairs are features m and m + D/2."""
    width, count = x.shape[-1], cosine.shape[-1]
    speeds = torch.tensor([base ** (-2 * m / width) for m in range(count)], dtype=x.dtype)
    angles = torch.arange(x.shape[2], dtype=x.dtype)[:, None] * speeds
    cos, sin = (
        torch.einsum("tD,hDd->htd", part, table) for part, table in ((angles.cos(), cosine), (angles.sin(), sine))
    )
    cos = torch.nn.functional.pad(cos, (0, width // 2 - count), value=1).repeat(1, 1, 2)
    sin = torch.nn.functional.pad(sin, (0, width // 2 - count), value=0).repeat(1, 1, 2)
    return x * cos + torch.cat([-x[..., width // 2 :], x[..., : width // 2]], -1) * sin


def test_fope_is_that_of_vllm() -> None:
    """VLLM's tables contain the identity."""
    pos = drawn_wide(fope(",layout=half,base=50", head_dim=8, n=20, heads=2))
    rope = pos.members["rope"]
    tables = [torch.eye(rope.cosine.shape[-1]) + table[0] for table in (rope.cosine, rope.sine)]
    q, k = drawn(10, 10, head_dim=8)
    expected = as_in_vllm(q, *tables, 50.0) @ as_in_vllm(k, *tables, 50.0).mT / math.sqrt(8)
    torch.testing.assert_close(logits_of(pos, q, k, Positions(10, 10, CPU)), expected, rtol=0, atol=1e-10)


def test_without_weights_it_is_rope_that_leaves_slow_pairs_alone() -> None:
    q, k = drawn(6, 6, head_dim=8)
    clipped = build_encoding("rope", "proportion=0.5,base=100", head_dim=8, n=20, heads=2)  # speeds 1, .32, .1, .03
    where = Positions(6, 6, CPU)
    actual = logits_of(fope(",fourier_std=0,base=100", head_dim=8, n=20, heads=2), q, k, where)
    torch.testing.assert_close(actual, logits_of(clipped, q, k, where), rtol=0, atol=1e-12)
