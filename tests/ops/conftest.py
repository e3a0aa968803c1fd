"""Test all kernels with new memory that is full of NaN."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def _poisoned(_new_memory_is_nan: None) -> None:
    """Use the fixture in every test of this folder, and check that it works."""
    assert torch.empty(3).isnan().all()
