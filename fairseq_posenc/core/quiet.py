"""Silence libraries that log more than a user wants to read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


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
