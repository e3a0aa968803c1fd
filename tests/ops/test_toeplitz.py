"""Test products with vectors of relative distances that use no kernel, and the choice of shared vectors."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.ops import toeplitz
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("queries", "keys", "clip", "more", "entries"),
    [
        (10, 20, 3, 0, (16, 22)),  # distance 0 is entry 19, K - 1
        (10, 20, 0, 0, (19, 19)),
        (20, 20, 9, 0, (10, 28)),
        (20, 20, 10, 0, (-1, 40)),  # most distances have their own vector
        (20, 20, 10, 1, (9, 29)),
        (10, 20, 25, 30, (-1, 30)),
        (10, 20, None, 0, (-1, 30)),
    ],
)
def test_far_distances_share_a_vector_if_this_saves_products(
    queries: int, keys: int, clip: int | None, more: int, entries: tuple[int, int]
) -> None:
    assert toeplitz._flat(Positions(queries, keys, CPU), clip, more) == entries


@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize(
    ("queries", "dtype"), [(4, torch.float64), (1, torch.float64), (1, torch.bfloat16), (4, torch.bfloat16)]
)
def test_key_products_without_a_kernel(
    queries: int, dtype: torch.dtype, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch.compile takes this way for several queries."""
    monkeypatch.setattr(toeplitz, "in_one_pass", lambda positions: False)
    generator = torch.Generator().manual_seed(0)
    k = torch.randn(2, 3, 6, 8, generator=generator).to(dtype)
    table = torch.randn(tables, 5, 8, generator=generator).to(dtype)
    rows = (torch.arange(queries + 5) - 5).clamp(-2, 2) + 2
    positions = Positions(queries, 6, CPU)
    distances = torch.arange(6)[None, :] - torch.arange(6 - queries, 6)[:, None] + 5
    vectors = table.double().expand(3, -1, -1)[:, rows[distances]]
    expected = torch.einsum("bhjd,hijd->bhij", k.double(), vectors)
    actual = toeplitz.key_product(k, table, positions, rows)
    assert actual.shape == (2, 3, queries, 6)
    tolerance = 1e-12 if dtype == torch.float64 else 0.1
    torch.testing.assert_close(actual.double(), expected, rtol=tolerance, atol=tolerance)
