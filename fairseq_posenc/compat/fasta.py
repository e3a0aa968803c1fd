"""Refuse unsafe paths with --dataset-impl fasta, because fairseq passes them to a shell (data/fasta_dataset.py:60)."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from ..core.refusal import InputError
from .patching import replace


def mend() -> None:
    """Make fairseq refuse a path that a shell would not read as a single word."""
    from fairseq.data.fasta_dataset import FastaDataset

    replace(FastaDataset, "_build_index", _of_one_word)


def _of_one_word(original: Callable[..., Any], dataset: Any, path: str) -> Any:
    if shlex.quote(path) != path:
        raise InputError(
            f"{path!r}: fairseq would pass this path to a shell, which would not read it as a single word. "
            "Rename the folder and its files so that the path has only letters, digits and '_-./', or use "
            "--dataset-impl mmap."
        )
    return original(dataset, path)
