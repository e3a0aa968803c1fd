"""Say which part of a checkpoint is missing or has a wrong type; fairseq would raise, say, `KeyError: 'best_loss'`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from torch import Tensor


def problem(state: Any) -> str | None:
    """Return why fairseq cannot read a checkpoint, or None if it has all parts that fairseq needs.

    The first versions of fairseq stored some of these parts in another form, which fairseq still reads.
    """
    if not isinstance(state, dict):
        return f"it contains {_kind(state)} instead of a dictionary"
    model, history, extra = (state.get(part) for part in ("model", "optimizer_history", "extra_state"))
    if not isinstance(model, Mapping) or not any(isinstance(value, Tensor) for value in model.values()):
        return "it has no weights ('model')"
    if not _is_history(history) and not (history is None and {"best_loss", "optimizer"} <= state.keys()):
        return "its part 'optimizer_history' is missing or is not a list of dictionaries"
    if not _is_position(extra) and not (extra is None and {"epoch", "batch_offset", "val_loss"} <= state.keys()):
        return "its part 'extra_state' is missing or does not hold the position in the data"
    if not isinstance(state.get("last_optimizer_state"), (Mapping, type(None))):
        return "its part 'last_optimizer_state' is not a dictionary"
    if not isinstance(state.get("args"), argparse.Namespace) and not isinstance(state.get("cfg"), Mapping):
        return "it has no settings ('cfg' or 'args')"
    return None


def _is_history(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _is_position(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("train_iterator"), (Mapping, type(None)))


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"an object of type {type(value).__name__}"
