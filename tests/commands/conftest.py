"""Provide small models, trained for two updates."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

from integration import lm, masked_lm, support

#: A masked language model, one with memory, one that ends after 8 tokens, and a translation model.
MODELS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "masked": (masked_lm, "--pos-enc learned+diet-abs", {}),
    "memory": (lm, "--pos-enc t5", {}),
    "short": (lm, "--pos-enc learned", {"task": lm.STOCK_TASK}),
    "translation": (support, "--pos-enc-encoder m4 --pos-enc-decoder learned+t5", {}),
}


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that trains one of the models, if it was not trained before, and returns its checkpoint."""

    @functools.cache
    def trained(name: str) -> Path:
        folder, (module, words, parts) = tmp_path_factory.mktemp(name), MODELS[name]
        data = module.write_corpus(folder / "data-bin")
        module.train(data, *words.split(), "--max-update", 2, "--save-dir", folder, **parts)
        return folder / "checkpoint_last.pt"

    return trained
