"""Test that an attention layer refuses a memory or a cache that does not belong to its input."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.attention.agreement import Size, check_past, check_tokens
from fairseq_posenc.positions import Positions

POSITIONS = Positions(4, 7, torch.device("cpu"), causal=True, memory=3)


def test_a_memory_of_the_same_samples_is_accepted() -> None:
    check_past(Size(2, 4), Size(2, 3), None, POSITIONS, layer=1)


@pytest.mark.parametrize("samples", [1, 3])
def test_a_memory_of_other_samples_is_refused(samples: int) -> None:
    with pytest.raises(ValueError, match=rf"layer 1: the memory holds {samples} samples, but the input has 2"):
        check_past(Size(2, 4), Size(samples, 3), None, POSITIONS, layer=1)


@pytest.mark.parametrize("columns", [3, 5])
def test_positions_of_other_tokens_are_refused(columns: int) -> None:
    with pytest.raises(ValueError, match=r"make the positions from the same tokens"):
        check_tokens(Size(2, columns), POSITIONS)
