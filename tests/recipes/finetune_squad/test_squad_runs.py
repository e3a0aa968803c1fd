"""Run the SQuAD recipe from questions to table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import support_curves

pytest.importorskip("fairseq")

import support_squad as s

from recipes.finetune_squad.__main__ import FINETUNE_SQUAD
from recipes.lib.command import main

pytestmark = pytest.mark.usefixtures("forked_stages")


@pytest.fixture
def run(tmp_path: Path) -> Any:
    files = [s.written(tmp_path / f"{split}.json", s.squad(number, number)) for split, number in SIZES.items()]
    models = ",".join(str(s.checkpoint(tmp_path / name, name)) for name in ("learned", "shaw"))
    asked = ["--preset", "small", "--jobs", "1", "--device", "cpu", "--checkpoint", models, "--tokenizer-path", "words"]
    asked += ["--train-file", str(files[0]), "--dev-file", str(files[1]), "--output", str(tmp_path / "out")]
    asked += ["--longest-question", "4", "--train.log-interval", "2"]
    return lambda max_length="24": main(FINETUNE_SQUAD, [*asked, "--max-length", max_length])


SIZES = {"train": 100, "dev": 12}


def test_every_stage_runs_and_is_not_done_twice(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0, capsys.readouterr().out
    facts = json.loads((tmp_path / "out" / "result.json").read_text())
    learned, shaw, span, gold = facts["results"]
    assert (learned["model"], shaw["encoding"]) == ("learned", "shaw")
    assert learned["updates"] == 8  # 100 windows in batches of 32, twice
    assert (learned["comparable"], learned["out of reach"]) == (None, 0)
    assert learned["parameters"] > 1000
    assert (gold["EM"], gold["F1"], span["questions"]) == (100, 100, 12)
    predictions = tmp_path / "out" / "predictions" / "shaw" / "predictions.json"
    assert len(json.loads(predictions.read_text())) == 12
    log = (tmp_path / "out" / "logs" / "shaw.train.log").read_text()
    assert '"valid_spans"' in log
    assert (tmp_path / "out" / "curves.png").stat().st_size > 1000
    capsys.readouterr()
    assert run() == 0
    printed = capsys.readouterr().out
    assert "All stages are already done" in printed
    scored = tmp_path / "out" / "data-bin" / "learned" / "valid.scored.json"
    assert re.search(r"evaluate-v1\.1\.py \S*/valid\.scored\.json \S*/predictions\.json", printed)
    assert s.texts(json.loads(scored.read_text())) == s.texts(s.squad(SIZES["dev"], SIZES["dev"]))


def test_longer_windows_are_refused_before_anything_is_prepared(run: Any, tmp_path: Path, capsys: Any) -> None:
    assert run(max_length="40") == 1
    printed = capsys.readouterr().err
    assert "windows have up to 40 pieces, but learned" in printed
    assert "--max-length in recipes/finetune_squad" in printed
    assert "--pos-enc-args extend=repeat, or extend=interpolate,extend_to=40" in printed
    assert not (tmp_path / "out" / "data-bin").exists()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_smoke_preset_runs_from_text_to_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--preset", "smoke", "--jobs", "1", "--output", str(tmp_path)]
    assert main(FINETUNE_SQUAD, words) == 0
    support_curves.check("finetune_squad", tmp_path)
    facts = json.loads((tmp_path / "result.json").read_text())
    *models, span, gold = facts["results"]
    assert [row["model"] for row in models] == ["learned", "shaw"]
    assert all(row["questions"] == 60 for row in facts["results"])
    assert (gold["EM"], gold["F1"]) == (100, 100)
    assert span["F1"] == 0  # the span is a word of the question, and no invented answer contains such a word
    assert len(json.loads((tmp_path / "predictions" / "shaw" / "predictions.json").read_text())) == 60
