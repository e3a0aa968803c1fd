"""Test which terms M4+Reset uses in the row and the column of [CLS] (M4M on arXiv, equation 19)."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, build_encoding, drawn_wide, logits_of
from torch import Tensor

from fairseq_posenc.encodings.m4 import M4
from fairseq_posenc.positions import Positions

LENGTH = 6


def position_terms(args: str, columns: list[int]) -> tuple[list[Tensor], M4]:
    """Return sqrt(D) times what M4 adds for the queries alone and for the keys alone, and the encoding."""
    pos = drawn_wide(build_encoding("m4", args, heads=2, head_dim=4, n=16, has_cls=True)).requires_grad_(False)
    where = Positions(LENGTH, LENGTH, CPU, cls_column=torch.tensor(columns))
    ones = torch.ones(2, 2, LENGTH, 4, dtype=torch.float64)
    return [logits_of(pos, q, k, where) * 2 for q, k in ((ones, 0 * ones), (0 * ones, ones))], pos.members["m4"]


@pytest.mark.parametrize("columns", [[0, 0], [3, 3], [0, 2]], ids=str)
def test_reset_replaces_the_row_and_the_column_of_cls(columns: list[int]) -> None:
    """The row of [CLS] has theta_1, the rest of its column has theta_2, and all other pairs have w[j - i]."""
    both, m4 = position_terms("reset=vector", columns)
    weight, (first, second) = m4.weight[0, 0].sum(-1), m4.theta[0, 0].sum(-1)
    for terms in both:
        for actual, cls in zip(terms[:, 0], columns, strict=True):
            for i, j in torch.cartesian_prod(torch.arange(LENGTH), torch.arange(LENGTH)).tolist():
                expected = first if i == cls else second if j == cls else weight[j - i + 15]
                assert float(actual[i, j]) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("columns", [[0, 0], [0, 2]], ids=str)
def test_reset_by_scalars_replaces_both_terms_together(columns: list[int]) -> None:
    """The scalars replace a part of the numerator, so they are divided by sqrt(s D), unlike in TUPE."""
    both, m4 = position_terms("reset=scalar,share=none", columns)
    theta = m4.theta[0]
    for terms in both:
        for actual, cls in zip(terms, columns, strict=True):
            others = [i for i in range(LENGTH) if i != cls]
            torch.testing.assert_close(actual[:, cls], theta[:, :1].expand(-1, LENGTH), rtol=0, atol=1e-12)
            torch.testing.assert_close(actual[:, others, cls], theta[:, 1:].expand(-1, LENGTH - 1), rtol=0, atol=1e-12)
