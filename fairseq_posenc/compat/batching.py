"""Keep the last batch of a data set, which fairseq drops without a message (data/data_utils.py:357).

If a sentence is longer than --max-tokens, an error names the sentence and the flags; fairseq has an assertion.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.refusal import InputError
from .patching import replace, say_once

logger = logging.getLogger(__name__)


def mend() -> None:
    """Keep the last batch of a data set when its size is not a multiple of --required-batch-size-multiple.

    Every caller looks `batch_by_size` up in `data_utils` (data/fairseq_dataset.py:145), so it is enough to replace this
    function there.
    """
    from fairseq.data import data_utils

    replace(data_utils, "batch_by_size", _with_tail)


def _with_tail(original: Callable[..., Any], indices: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(indices, np.ndarray):
        indices = np.fromiter(indices, dtype=np.int64, count=-1)
    if len(indices) == 0:
        return []  # fairseq would raise an IndexError at b[-1]
    try:
        batches = original(indices, *args, **kwargs)
    except AssertionError as error:
        refuse_longer(indices, _argument(kwargs, args, "num_tokens_fn", 0), _argument(kwargs, args, "max_tokens", 2))
        raise error
    tail = indices[sum(len(batch) for batch in batches) :]
    # With fixed shapes (TPU, --num-batch-buckets), batches are not consecutive runs of indices, and none is dropped.
    if len(tail) == 0 or _argument(kwargs, args, "fixed_shapes", 5) is not None:
        return batches
    multiple = _argument(kwargs, args, "required_batch_size_multiple", 4)
    say_once(
        logger,
        f"The last batch of {len(tail)} sentences is kept. fairseq would drop it, because its size is not a multiple "
        f"of --required-batch-size-multiple {multiple}.",
    )
    return [*batches, tail]


def refuse_longer(indices: np.ndarray, size_of: Callable[[int], int], most: int | None) -> None:
    """Raise ValueError if a sentence has more than `most` tokens, so that no batch can hold it.

    Args:
        indices: Numbers of the sentences.
        size_of: Function that returns the number of tokens of a sentence.
        most: Value of --max-tokens, or None.
    """
    number = next((number for number in indices if most and size_of(number) > most), None)
    if number is not None:
        raise InputError(
            f"sentence {number}, counted from 0, has {size_of(number)} tokens, which exceeds max_tokens={most}, the "
            "tokens of a batch. Raise --max-tokens (for validation, --max-tokens-valid), give --batch-size instead, or "
            "shorten the sentence."
        )


def _argument(kwargs: dict[str, Any], args: tuple[Any, ...], name: str, place: int) -> Any:
    """Return an argument of a call of batch_by_size; `place` is its index among the arguments after `indices`."""
    return args[place] if len(args) > place else kwargs.get(name)
