"""Test names that numpy 2 has removed: first that fairseq fails, then the fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("fairseq")

from fairseq.data import TokenBlockDataset, data_utils
from fairseq.data import language_pair_dataset as pairs
from fairseq.data import token_block_dataset as blocks

from .data import pair_dataset

numpy2_only = pytest.mark.skipif(hasattr(np, "compat"), reason="this numpy still has the old names")


def eos_blocks() -> list[list[int]]:
    lines = [torch.tensor([5, 6, 2]), torch.tensor([7, 2])]
    return [item.tolist() for item in TokenBlockDataset(lines, [3, 2], None, pad=1, eos=2, break_mode="eos")]


def bucket_sizes() -> list[int]:
    dataset = pair_dataset(40, num_buckets=4)
    return sorted({len(dataset[i]["source"]) for i in range(40)})


@numpy2_only
@pytest.mark.parametrize(
    ("use", "module", "error"),
    [
        (eos_blocks, blocks, AttributeError),
        (bucket_sizes, pairs, AttributeError),
        (bucket_sizes, data_utils, TypeError),
    ],
)
def test_numpy_2_breaks_fairseq(
    use: Callable[[], Any], module: Any, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "np", np)
    with pytest.raises(error):
        use()


def test_break_mode_eos() -> None:
    assert eos_blocks() == [[5, 6, 2], [7, 2]]


def test_length_buckets() -> None:
    shown = np.percentile([4, 4, 5, 9], [0, 50, 100], method="lower")
    assert data_utils.np.percentile([4, 4, 5, 9], [0, 50, 100], interpolation="lower").tolist() == shown.tolist()
    assert 2 <= len(bucket_sizes()) <= 4
