"""Half precision."""

from __future__ import annotations

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def promoted(x: Tensor) -> Tensor:
    """Return half precision as float32; float64 stays.

    A table is promoted before its rows are read: what all tokens and pairs add to the gradient of a row is then
    summed in float32.
    """
    return x.float() if x.dtype in HALF else x


def exact_product(x: Tensor, y: Tensor) -> Tensor:
    """Return x @ y in at least float32, also under autocast: for what is kept beyond a forward or added to others."""
    with torch.autocast(x.device.type, enabled=False):
        return promoted(x) @ promoted(y)
