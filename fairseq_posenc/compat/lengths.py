"""Refuse sentences beyond the length limit in one line that says which flag to raise (tasks/fairseq_task.py:184)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.refusal import InputError
from .patching import replace

_SKIP = "--skip-invalid-size-inputs-valid-test"
#: Settings of tasks that limit the length of a single sequence, and of the two sides of a pair.
_SINGLE, _PAIR = ("max_positions", "tokens_per_sample"), ("max_source_positions", "max_target_positions")


def mend() -> None:
    """Name the lengths, the limit and the flag; fairseq's error is a traceback that names none of the flags."""
    from fairseq.tasks import FairseqTask

    replace(FairseqTask, "filter_indices_by_size", _or_refused)


def _or_refused(
    original: Callable[..., Any],
    task: Any,
    indices: Any,
    dataset: Any,
    max_positions: Any = None,
    ignore_invalid_inputs: bool = False,
) -> Any:
    if ignore_invalid_inputs or isinstance(max_positions, dict):
        return original(task, indices, dataset, max_positions, ignore_invalid_inputs)
    kept, ignored = dataset.filter_indices_by_size(indices, max_positions)
    if len(ignored):
        share = f"{len(ignored)} of {len(indices)}"
        raise InputError(refusal(task, ignored[0], dataset.size(ignored[0]), max_positions, share))
    return kept


def refusal(task: Any, number: int, size: Any, limit: Any, share: str) -> str:
    """Return the error message about a sentence that is too long.

    Args:
        task: Task of fairseq, whose settings contain the flags.
        number: Number of the sentence in its file, counted from 0.
        size: Length of the sentence in tokens with </s>, or the lengths of its two sides.
        limit: Maximum length that both the task and the model allow, or one for each side; None means no limit.
        share: How many sentences are too long, such as `3 of 20`.
    """
    sizes, limits = _sides(size), _sides(limit)
    limits = limits * len(sizes) if len(limits) == 1 else limits[: len(sizes)]
    over = [side for side, most in enumerate(limits) if most is not None and sizes[side] > most]
    words = ("source tokens", "target tokens") if len(sizes) > 1 else ("tokens",)
    lengths = " and ".join(f"{sizes[side]} {words[side]} (limit: {limits[side]})" for side in over)
    flags = " and ".join(_flag(task, side, len(sizes)) for side in over)
    cure = f"Train a model with a larger {flags}" if _is_of_model(task, over, limits) else f"Raise {flags}"
    return (
        f"sentence {number}, counted from 0, has {lengths}, including </s>. {cure}, or shorten the sentence. "
        f"{_SKIP} leaves out all sentences that are too long: {share}."
    )


def _sides(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _flag(task: Any, side: int, sides: int) -> str:
    """Return the flag that limits this side of a sentence."""
    if sides > 1:
        return f"--{_PAIR[side]}".replace("_", "-")
    settings = getattr(task, "cfg", None) or getattr(task, "args", None)
    names = [name for name in _SINGLE if getattr(settings, name, None) is not None] or _SINGLE
    return " or ".join(f"--{name}".replace("_", "-") for name in names)


def _is_of_model(task: Any, over: Sequence[int], limits: Sequence[Any]) -> bool:
    """Return whether the limit comes from the model, that is, whether the task allows longer sentences."""
    own = _sides(task.max_positions())
    own = own * len(limits) if len(own) == 1 else own
    return all(own[side] is None or own[side] > limits[side] for side in over)
