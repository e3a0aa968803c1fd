"""Test the content product, and for which sizes it is a product of elements."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.ops import content


@pytest.mark.parametrize(
    ("queries", "keys", "dim", "dtype", "few"),
    [
        (1, 19, 21, torch.float32, True),  # 399 numbers
        (1, 20, 20, torch.float32, False),
        (1, 32, 64, torch.float32, False),
        (1, 4, 4, torch.float64, True),
        (1, 4, 4, torch.bfloat16, False),
        (2, 4, 4, torch.float32, False),
    ],
)
def test_a_row_and_few_numbers_are_multiplied_element_by_element(
    queries: int, keys: int, dim: int, dtype: torch.dtype, few: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, length, dim, generator=generator).to(dtype) for length in (queries, keys))
    assert content._few(q, k) is few
    tolerance = 0.1 if dtype == torch.bfloat16 else 1e-5
    products = torch.einsum("bhid,bhjd->bhij", q.double(), k.double())
    torch.testing.assert_close(content.dot_products(q, k).double(), products, rtol=tolerance, atol=tolerance)
    weights = torch.randn(2, 3, queries, keys, generator=generator).to(dtype)
    sums = torch.einsum("bhij,bhjd->bhid", weights.double(), k.double())
    torch.testing.assert_close(content.of_values(weights, k).double(), sums, rtol=tolerance, atol=tolerance)
