"""Check that the two files of binarised data fit each other, so that damage is noticed before the training begins.

`NAME.idx` stores the size of each item and its place in `NAME.bin`. The places follow from the sizes, so the check
detects a wrong bit in NAME.idx and a truncated NAME.bin. The check does not detect wrong tokens inside NAME.bin,
because the format has no checksums.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.refusal import InputError
from .patching import replace

_AT_ONCE = 1 << 20  # items that are checked together
_UNREADABLE = (AssertionError, KeyError, ValueError, OverflowError, struct.error)  # what fairseq raises


class DataError(InputError):
    """Raised if binarised data are damaged; the message names the file."""


def mend() -> None:
    """Check binarised data (--dataset-impl mmap) when they are opened."""
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    replace(MMapIndexedDataset, "_do_init", _checked)
    for kind in (MMapIndexedDataset, MMapIndexedDataset.Index):  # of an object that could not be built
        replace(kind, "__del__", _without_error)


def _checked(original: Callable[..., None], dataset: Any, path: str) -> None:
    try:
        original(dataset, path)
    except _UNREADABLE as error:
        empty = next((name for name in (f"{path}.idx", f"{path}.bin") if not os.path.getsize(name)), None)
        problem = "the file is empty" if empty else f"the index cannot be read ({type(error).__name__}: {error})"
        raise DataError(f"{empty or f'{path}.idx'}: {problem}. {_CURE}") from error
    if (place := _first_wrong(dataset._index)) is not None:
        raise DataError(f"{path}.idx: the size or the position of item {place} is wrong. {_CURE}")
    expected, actual = _bytes(dataset._index), os.path.getsize(f"{path}.bin")
    if expected != actual:
        raise DataError(f"{path}.bin has {actual:,} bytes, but {path}.idx describes {expected:,}. {_CURE}")


_CURE = "The data are damaged or incomplete: copy both files again, or binarise the data again."


def _first_wrong(index: Any) -> int | None:
    """Return the number of the first item with a wrong position or a negative size; None if all items are right."""
    end = 0
    for start in range(0, len(index), _AT_ONCE):
        sizes = index._sizes[start : start + _AT_ONCE].astype(np.int64)
        ends = end + np.cumsum(sizes) * index._dtype_size
        begins = np.concatenate(([end], ends[:-1]))
        wrong = (index._pointers[start : start + _AT_ONCE] != begins) | (sizes < 0)
        if wrong.any():
            return start + int(wrong.argmax())
        end = int(ends[-1])
    return None


def _bytes(index: Any) -> int:
    return int(index._pointers[-1]) + int(index._sizes[-1]) * index._dtype_size if len(index) else 0


def _without_error(original: Callable[..., None], instance: Any) -> None:
    with contextlib.suppress(AttributeError):
        original(instance)
