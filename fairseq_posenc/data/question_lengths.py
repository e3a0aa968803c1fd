"""Prepared questions that are longer than a model reads or says.

fairseq leaves them out of training with one warning, and ends at the first one in validation.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from .questions import Questions

logger = logging.getLogger(__name__)


def check_lengths(data: Questions, limits: tuple[int, int], folder: Path, split: str, *, skipped: bool) -> None:
    """Count items beyond the limits.

    Args:
        limits: of sources and of questions, in tokens, with their marks. skipped: they are to be left out.
    Raises:
        ValueError: there are some, and they are not to be left out.
    """
    parts = (
        ("sources", data.src_sizes, limits[0], "--max-source-positions", "--longest"),
        ("questions", data.tgt_sizes, limits[1], "--max-target-positions", "--longest-question"),
    )
    told = [_told(*part) for part in parts if part[1] is not None and (np.asarray(part[1]) > part[2]).any()]
    if told and skipped:
        logger.warning(f"{folder}, {split}: left out are {'; '.join(told)}")
    elif told:
        raise ValueError(f"{folder}, {split}: {'; '.join(told)}")


def _told(what: str, sizes: object, limit: int, flag: str, prepared: str) -> str:
    lengths = np.asarray(sizes)
    count, longest = int((lengths > limit).sum()), int(lengths.argmax())
    return (
        f"{count:,} of {len(lengths):,} {what} have more than {limit} tokens (item {longest} has {lengths[longest]}): "
        f"give {flag} {lengths[longest]} where the model is as long, or prepare the questions with a smaller {prepared}"
    )
