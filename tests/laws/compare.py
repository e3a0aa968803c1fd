"""Compare numbers, and raise AssertionError with the size of the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor


def assert_close(actual: Tensor, expected: Tensor, tolerance: float, what: str = "") -> None:
    """Assert that tensors are equal up to `tolerance`, relative to the larger of 1 and the largest expected value."""
    assert actual.shape == expected.shape, f"{what}: shapes {tuple(actual.shape)} and {tuple(expected.shape)}"
    assert_finite(actual, what)
    if expected.numel():
        size = max(1.0, float(expected.detach().abs().max()))
        error = float((actual.to(expected.dtype) - expected).detach().abs().max()) / size
        assert error <= tolerance, f"{what}: differs by {error:.3g}, more than {tolerance:.3g}"


def assert_all_close(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor], tolerance: float, what: str) -> None:
    """Assert that all tensors of two dictionaries are equal up to `tolerance`."""
    assert actual.keys() == expected.keys()
    for name, tensor in expected.items():
        assert_close(actual[name], tensor, tolerance, f"{what}: {name}")


def assert_finite(x: Tensor, what: str = "") -> None:
    """Assert that a tensor has no NaN and no infinity."""
    assert bool(torch.isfinite(x).all()), f"{what}: {int((~torch.isfinite(x)).sum())} of {x.numel()} are not finite"


def differ(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors differ by more than rounding."""
    return one.shape != other.shape or float((one - other).abs().max()) > 1e-6


def refusal(call: Callable[[], Any]) -> str:
    """Return the message of the ValueError that a call raises."""
    try:
        call()
    except ValueError as error:
        return str(error)
    raise AssertionError("was not refused")


def assert_refused(call: Callable[[], Any], *words: str) -> None:
    """Assert that a call raises a ValueError whose message contains all the words."""
    message = refusal(call)
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"
