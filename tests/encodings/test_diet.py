"""Test the rows, the rank and the half precision of DIET-REL and DIET-ABS."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding, lengths, logits_of
from torch import Tensor

from fairseq_posenc.encodings import Composition
from fairseq_posenc.positions import Positions


@lengths
def test_rows_of_diet_abs_are_positions(queries: int, keys: int) -> None:
    """With P_Q[i] = (i, 10) and P_K[j] = (1, j) the bias is i + 10 j, also with padding on the left."""
    pos = build_encoding("diet-abs")
    diet, rows = pos.members["diet-abs"], torch.arange(8.0)
    diet.query.copy_(torch.stack([rows, torch.full_like(rows, 10.0)], -1))
    diet.key.copy_(torch.stack([torch.ones_like(rows), rows], -1))
    expected = torch.tensor([[i + 10.0 * j for j in range(keys)] for i in range(keys - queries, keys)]).double()
    assert torch.equal(bias_of(pos, Positions(queries, keys, CPU))[0, 0], expected)
    padding = torch.zeros(2, keys + 2, dtype=torch.bool)
    padding[1, :2] = True
    actual = bias_of(pos, Positions(queries + 2, keys + 2, CPU, padding=padding))
    assert torch.equal(actual[1, 0, 2:, 2:], expected)
    assert actual[0, 0, -1, -1] == 11 * (keys + 1)


def rank_of_logits(pos: Composition, x: Tensor, w_q: Tensor, w_k: Tensor) -> int:
    """Return the rank of one head's logits, with positions at the input or in the logits."""
    where = Positions(x.shape[1], x.shape[1], CPU)
    x = pos.embed(x, where)
    return int(torch.linalg.matrix_rank(logits_of(pos, (x @ w_q)[:, None], (x @ w_k)[:, None], where)[0, 0]))


@pytest.mark.parametrize(("rank", "n", "expected"), [(16, 40, 24), (16, 20, 20), (8, 40, 16), (1, 40, 9)])
def test_the_rank_of_the_logits_is_that_of_content_plus_positions(rank: int, n: int, expected: int) -> None:
    """The rank is min(n, D + d_p) with D = 8; with vectors at the input it stays D (Chen et al. 2021, DIET)."""
    random = torch.Generator().manual_seed(0)
    x, w_q, w_k = (torch.randn(*s, generator=random).double() for s in ((1, n, 64), (64, 8), (64, 8)))
    ranks = []
    for spec, args in (("diet-abs", f"rank={rank}"), ("learned", "")):
        pos = build_encoding(spec, args, heads=8, head_dim=8, n=n)
        for parameter in pos.parameters():
            parameter.normal_(generator=random)
        ranks.append(rank_of_logits(pos, x, w_q, w_k))
    assert ranks == [expected, 8]


@pytest.mark.parametrize("spec", ["diet-rel", "diet-abs"])
def test_half_precision_biases_are_added_in_float32(spec: str) -> None:
    """Sums of several biases are therefore not rounded."""
    assert bias_of(build_encoding(spec, dtype=torch.bfloat16), Positions(3, 3, CPU)).dtype == torch.float32


def test_what_is_kept_under_autocast_is_not_rounded() -> None:
    pos = build_encoding("diet-abs", head_dim=8, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = pos.per_layer(Positions(5, 5, CPU))[0]["diet-abs"]["bias"]
    diet = pos.members["diet-abs"]
    torch.testing.assert_close(under, diet.query[:, :, :5] @ diet.key[:, :, :5].mT)
