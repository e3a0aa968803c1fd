"""Test to which distance each row of DeBERTa belongs (He et al. 2020, equation 4; M4M on arXiv, equation 13)."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, build_encoding, logits_of, vectors

from fairseq_posenc.positions import Positions


@pytest.mark.parametrize("queries", [9, 3, 1])
@pytest.mark.parametrize(
    ("args", "rows"),
    [
        ("clip=2", [2, 2, 2, 2, 1, 0, -1, -2, -2, -2, -2]),
        ("form=original,clip=3", [2, 2, 2, 2, 1, 0, -1, -2, -3, -3, -3]),  # clip(i - j + 3, 0, 5) - 3
        ("form=original,clip=6,buckets=4", [3, 3, 3, 2, 1, 0, -1, -2, -3, -3, -3]),  # exact up to 2, then 3 up to 5
    ],
)
def test_both_terms_read_the_row_of_i_minus_j(args: str, rows: list[int], queries: int) -> None:
    """i - j is from 5 to -5. Each row of the table holds its i - j, which is read by a query and then by a key."""
    pos = build_encoding("deberta", args)
    deberta = pos.members["deberta"]
    for name, parameter in deberta.named_parameters():
        if name != "weight":
            parameter.copy_(torch.zeros(2) if name.endswith("bias") else torch.eye(2))
    half = deberta.weight.shape[-2] // 2
    held = torch.arange(-half, half + deberta.weight.shape[-2] % 2)
    held = held if "original" in args else -held  # our distances are j - i, those of the original are i - j
    deberta.weight.copy_(torch.stack([held, 0 * held], -1))
    where = Positions(queries, 9, CPU)
    for q, k in (([6**0.5, 0], [0, 1]), ([0, 1], [6**0.5, 0])):
        actual = logits_of(pos, vectors(q, queries), vectors(k, 9), where)[0, 0]
        for x, expected in zip(range(5, -6, -1), rows, strict=True):
            there = actual[where.delta == -x]
            torch.testing.assert_close(there, torch.full_like(there, expected), rtol=0, atol=1e-12)
