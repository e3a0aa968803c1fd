"""Protect --dataset-impl fasta, which passes the path of its data to a shell (data/fasta_dataset.py:60)."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from .patching import replace


def mend() -> None:
    """Raise if a shell would read the path as more than one word."""
    from fairseq.data.fasta_dataset import FastaDataset

    replace(FastaDataset, "_build_index", _of_one_word)


def _of_one_word(original: Callable[..., Any], dataset: Any, path: str) -> Any:
    if shlex.quote(path) != path:
        raise ValueError(
            f"{path!r}: fairseq would pass this path to a shell, which would not read it as a single word. Rename the "
            "folder and its files with only letters, digits and '_-./', or use --dataset-impl mmap."
        )
    return original(dataset, path)
