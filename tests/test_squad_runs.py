"""The SQuAD recipe from text to table, on its built-in questions and models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes.finetune_squad.__main__ import FINETUNE_SQUAD
from recipes.lib.command import main

pytest.importorskip("fairseq")


@pytest.mark.long
def test_the_smoke_preset_runs_from_text_to_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--preset", "smoke", "--jobs", "1", "--output", str(tmp_path)]
    assert main(FINETUNE_SQUAD, words) == 0
    facts = json.loads((tmp_path / "result.json").read_text())
    *models, span, gold = facts["results"]
    assert [row["model"] for row in models] == ["learned", "shaw"]
    assert all(row["questions"] == 60 for row in facts["results"])
    assert (gold["EM"], gold["F1"]) == (100, 100)
    assert 0 < span["F1"] < 50
    assert len(json.loads((tmp_path / "predictions" / "shaw" / "predictions.json").read_text())) == 60
    capsys.readouterr()
    assert main(FINETUNE_SQUAD, words) == 0
    told = capsys.readouterr().out
    assert "Everything is done" in told
    assert "evaluate-v1.1.py" in told


@pytest.mark.long
def test_longer_windows_are_refused_before_anything_is_prepared(tmp_path: Path, capsys) -> None:
    words = ["--preset", "smoke", "--max-length", "200", "--output", str(tmp_path)]
    assert main(FINETUNE_SQUAD, words) == 1
    told = capsys.readouterr().out
    assert "windows have up to 200 pieces, learned" in told
    assert "--pos-enc-args extend=repeat, or extend=interpolate,extend_to=200" in told
    assert not (tmp_path / "data-bin").exists()
