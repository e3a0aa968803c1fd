"""Compute sums and products in at least float32, for tensors that may be in half precision."""

from __future__ import annotations

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def promoted(x: Tensor) -> Tensor:
    """Convert a tensor in half precision to float32, and return any other tensor unchanged.

    Parameter tables are converted before their rows are read, so that the gradient of each row is summed over all
    tokens in float32.
    """
    return x.float() if x.dtype in HALF else x


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a tensor to a dtype. If it already has this dtype, this is faster than `Tensor.to`."""
    return x if x.dtype == dtype else x.to(dtype)


def exact_product(x: Tensor, y: Tensor) -> Tensor:
    """Return x @ y in at least float32, even under autocast."""
    with torch.autocast(x.device.type, enabled=False):
        return promoted(x) @ promoted(y)
