"""Test the language model recipe: what a longer memory changes in its evaluation."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from support_recipes import called

from recipes.lm_wikitext103 import evaluate


def test_a_longer_memory_is_evaluated_in_short_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides: list[dict[str, Any]] = []

    def load(path: Path, changed: dict[str, Any], *, cpu: bool) -> SimpleNamespace:
        overrides.append(changed)
        return SimpleNamespace(model=torch.nn.Linear(1, 1))

    trained = {"cfg": SimpleNamespace(model=SimpleNamespace(pos_enc="xl", pos_enc_args=""))}
    monkeypatch.setattr(evaluate.checkpoint_utils, "load_checkpoint_to_cpu", lambda path: trained)
    monkeypatch.setattr(evaluate, "load", load)
    monkeypatch.setattr(evaluate, "updates", lambda path: 3)
    monkeypatch.setattr(evaluate, "evaluate", lambda *_: {"nats": 2.0, "tokens": 2, "words": 1})
    words = "--checkpoint C --data D --split S --streams 1 --length 150 --memories 150,640 --segment 64"
    words += f" --same-length true --clamp 400 --output {tmp_path / 'scores.json'}"
    called(evaluate, *words.split())
    names = ("eval_mem_length", "eval_segment_length", "same_length", "pos_enc_args")
    assert [[changed.get(name) for name in names] for changed in overrides] == [
        [150, 150, False, None],
        [640, 64, True, "clamp=400"],
    ]
    assert json.loads((tmp_path / "scores.json").read_text())["best"]["per word"] == pytest.approx(math.exp(2))


def test_the_largest_distance_is_set_for_encodings_that_have_one() -> None:
    assert evaluate.clamped("xl", "biases=tied", 400) == "biases=tied,clamp=400"
    assert evaluate.clamped("xl", "clamp=50", 400) == "clamp=50"
    assert evaluate.clamped("learned+xl[biases=none]", "", 400) == "clamp=400"
    assert evaluate.clamped("t5", "", 400) == ""
