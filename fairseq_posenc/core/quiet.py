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
def unchanged() -> Iterator[None]:
    """Restore the level and the handlers of the root logger at the end of the `with` block.

    Importing fairseq would let the root logger show debug messages, for example thousands of messages that torch
    writes when it compiles.
    """
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
