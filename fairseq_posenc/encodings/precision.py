"""Half precision."""

from __future__ import annotations

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def promoted(x: Tensor) -> Tensor:
    """Half precision to float32; float64 stays."""
    return x.float() if x.dtype in HALF else x
