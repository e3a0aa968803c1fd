"""Test the code for PoSE in docs/positions.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

PAGE = Path(__file__).parents[2] / "docs" / "positions.md"


@pytest.mark.parametrize("chunks", [2, 3])
def test_pose_skips_between_chunks_only(chunks: int) -> None:
    section = PAGE.read_text(encoding="utf-8").split("### PoSE")[1]
    block = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    torch.manual_seed(0)
    exec(block[1], names)
    assert names["ids"].shape == (512,)
    largest = 0
    for _ in range(200):
        ids = names["pose_ids"](16, 64, chunks)
        steps = ids.diff()
        assert int(ids[0]) == 0
        assert bool((steps >= 1).all())
        assert int((steps > 1).sum()) <= chunks - 1
        largest = max(largest, int(ids[-1]))
    assert largest == 63
