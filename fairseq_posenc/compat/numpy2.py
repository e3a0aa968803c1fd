"""Restore names that fairseq uses and numpy 2 has removed."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from .patching import overlay, say_once

logger = logging.getLogger(__name__)


def mend() -> None:
    """Give three modules of fairseq the names that numpy 2 lacks, without changing numpy itself.

    - `np.compat.long`: --sample-break-mode eos (token_block_dataset.py:125), --num-batch-buckets
      (language_pair_dataset.py:292)
    - `np.percentile(interpolation=)`: --num-batch-buckets (data_utils.py:877)
    """
    from fairseq.data import data_utils, language_pair_dataset, token_block_dataset

    overlay(token_block_dataset, "np", compat=_Compat())
    overlay(language_pair_dataset, "np", compat=_Compat())
    overlay(data_utils, "np", percentile=_percentile)


class _Compat:
    """Stand in for `numpy.compat`, of which fairseq uses only `long`."""

    @property
    def long(self) -> type[int]:
        say_once(logger, "int replaces np.compat.long, which fairseq uses and numpy 2 has removed")
        return int


def _percentile(a: Any, q: Any, *args: Any, interpolation: str | None = None, **kwargs: Any) -> Any:
    if interpolation is not None:
        say_once(logger, "np.percentile gets fairseq's argument interpolation as method, because numpy renamed it")
        kwargs["method"] = interpolation
    return np.percentile(a, q, *args, **kwargs)
