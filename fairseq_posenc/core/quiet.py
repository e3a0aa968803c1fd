"""Silence libraries that log more than a user wants to read."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast


@contextmanager
def warnings_only(name: str | None = None) -> Iterator[None]:
    """Let the logger `name` and its child loggers (without a name: all loggers) log only warnings and errors."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def without(message: str, category: type[Warning]) -> Iterator[None]:
    """Hide the warnings of a category whose text begins with `message`, a regular expression.

    Unlike `warnings.catch_warnings`, this keeps the filters that are added in the meantime, for example by an import.
    """
    warnings.filterwarnings("ignore", message, category)
    filters = cast("list[object]", warnings.filters)
    added = filters[0]
    try:
        yield
    finally:
        if added in filters:
            filters.remove(added)


@contextmanager
def importing_fairseq() -> Iterator[None]:
    """Hide what the import of fairseq writes, and restore the level and the handlers of the root logger after it.

    Importing fairseq would let the root logger show debug messages, for example thousands of messages that torch
    writes when it compiles.
    """
    # One task of fairseq asks every user for tensorboardX, which only that task needs.
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        # torch.jit.script warns since torch 2.14, and the import of fairseq calls it (models/model_utils.py:12).
        with without("`torch.jit.script` is deprecated", FutureWarning):
            yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
