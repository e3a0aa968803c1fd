"""Test that fairseq-train runs whole models of every task, and that a run that was stopped goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks import whole_models


def test_models_train_and_a_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_models, "WORDS", 300)
    monkeypatch.setattr(whole_models, "LINES", 300)
    words = [*"--updates 3 --json --models stock shaw[clip=4] --output".split(), str(tmp_path)]
    assert whole_models.main(words) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["task"], row["model"]) for row in rows] == [
        (task, model) for task in whole_models.TASKS for model in ("stock", "shaw[clip=4]")
    ]
    assert all(row["words/s"] > 0 and row["loss"] > 0 for row in rows)
    assert all(("explicit" in row["path"]) == (row["model"] != "stock") for row in rows if row["path"])
    assert whole_models.main(words) == 0
    captured = capsys.readouterr()
    assert "shaw" not in captured.err, "a stored row is measured again"
    assert len(json.loads(captured.out)) == len(rows)
