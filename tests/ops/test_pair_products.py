"""Test into which parts the pairs are divided, so that no temporary tensor becomes too large."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.ops import pair_products


@pytest.mark.parametrize(
    ("pairs", "device", "parts"),
    [
        ((2, 3, 64, 64), "cpu", [((0, 2048 // 3), (0, 3))]),  # 2^23 / 64^2 = 2048 matrices fit
        ((3, 2, 1024, 2048), "cpu", [((b, b + 2), (0, 2)) for b in (0, 2)]),  # 4 matrices fit
        ((2, 4, 2048, 2048), "cpu", [((b, b + 1), (h, h + 2)) for b in (0, 1) for h in (0, 2)]),  # 2 matrices fit
        ((1, 2, 4096, 4096), "cpu", [((0, 1), (h, h + 1)) for h in (0, 1)]),  # a matrix is too large, but not divided
        ((2, 4, 2048, 2048), "cuda", [((0, 4), (0, 4))]),  # 16 matrices fit
        ((1, 2, 8192, 8192), "cuda", [((0, 1), (h, h + 1)) for h in (0, 1)]),
    ],
)
def test_chunks_hold_as_many_matrices_as_fit(pairs: tuple[int, ...], device: str, parts: list[object]) -> None:
    chunks = pair_products.chunks(pairs, torch.device(device))
    assert [((b.start, b.stop), (h.start, h.stop)) for b, h in chunks] == parts
