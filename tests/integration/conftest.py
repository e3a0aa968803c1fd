"""Provide the corpora and a trained checkpoint, once per worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from . import lm, masked_lm, support


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the binarised corpus."""
    return support.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin")


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a binarised corpus of documents, for masked language models."""
    return masked_lm.write_corpus(tmp_path_factory.mktemp("text") / "data-bin", seed=4)


@pytest.fixture(scope="session")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a binarised corpus of sentences, for language models."""
    return lm.write_corpus(tmp_path_factory.mktemp("lines") / "data-bin")


@pytest.fixture(scope="session")
def corpora(data: Path, text: Path, lines: Path) -> dict[Any, Path]:
    """Return the corpus of each module that trains models."""
    return {support: data, masked_lm: text, lm: lines}


@pytest.fixture(scope="session")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the checkpoints of a Shaw model after two epochs, which has begun to reverse its input."""
    folder = tmp_path_factory.mktemp("trained")
    support.train(data, "--pos-enc", "shaw", "--max-epoch", 2, "--valid-subset", "valid", "--save-dir", folder)
    return folder


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[Any]:
    """Restore the random states, because fairseq's trainer seeds the global generators."""
    with torch.random.fork_rng(devices=[]):
        yield
