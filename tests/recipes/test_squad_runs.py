"""The SQuAD recipe from questions to table."""

from __future__ import annotations

import json
import logging
import os
import re
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

import pytest

pytest.importorskip("fairseq")

import support_squad as s
from fairseq_cli.train import cli_main

from recipes.finetune_squad.__main__ import FINETUNE_SQUAD
from recipes.lib.command import main
from recipes.lib.recipe import ROOT
from recipes.lib.runner import Runner
from recipes.lib.stages import Stage

FORM = "%(asctime)s | %(levelname)s | %(name)s | %(message)s"  # fairseq's


def in_this_process(self: Runner, stage: Stage, command: list[str], slot: Any, log: BinaryIO) -> int:
    """A stage's command, without the seconds that a process of its own takes to import torch."""
    words, text = list(stage.command), TextIOWrapper(log, "utf-8", write_through=True)
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter(FORM))
    root = logging.getLogger()
    level, before = root.level, sys.argv
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    sys.argv = words[2:]
    try:
        with redirect_stdout(text), redirect_stderr(text):
            if words[1] != "-m":
                return int(s.prepare_spans.main(words[2:]))
            runpy.run_module(words[2], run_name="__main__", alter_sys=True)
        return 0
    except SystemExit as error:
        text.write(str(error.code))
        return int(bool(error.code))
    finally:
        sys.argv = before
        root.removeHandler(handler)
        root.setLevel(level)
        text.detach()


def instead(file: str, words: list[str]) -> None:
    """fairseq-train, where a process would become it."""
    sys.argv = words
    cli_main()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(Runner, "_wait_for", in_this_process)
    monkeypatch.setattr(os, "execvp", instead)
    files = [s.written(tmp_path / f"{split}.json", s.squad(number, number)) for split, number in SIZES.items()]
    models = ",".join(str(s.checkpoint(tmp_path / name, name)) for name in ("learned", "shaw"))
    asked = ["--preset", "small", "--jobs", "1", "--device", "cpu", "--checkpoint", models, "--tokenizer-path", "words"]
    asked += ["--train-file", str(files[0]), "--dev-file", str(files[1]), "--output", str(tmp_path / "out")]
    asked += ["--max-length", "24", "--longest-question", "4", "--train.log-interval", "2"]
    return lambda *more: main(FINETUNE_SQUAD, [*asked, *more])


SIZES = {"train": 100, "dev": 12}


def test_every_stage_runs_and_is_not_done_twice(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0, capsys.readouterr().out
    facts = json.loads((tmp_path / "out" / "result.json").read_text())
    learned, shaw, span, gold = facts["results"]
    assert (learned["model"], shaw["encoding"]) == ("learned", "shaw")
    assert learned["updates"] == 8  # 100 windows in batches of 32, twice
    assert (learned["comparable"], learned["out of reach"]) == (None, 0)
    assert (gold["EM"], gold["F1"], span["questions"]) == (100, 100, 12)
    predictions = tmp_path / "out" / "predictions" / "shaw" / "predictions.json"
    assert len(json.loads(predictions.read_text())) == 12
    log = (tmp_path / "out" / "logs" / "shaw.train.log").read_text()
    assert '"valid_spans"' in log
    assert (tmp_path / "out" / "curves.png").stat().st_size > 1000
    capsys.readouterr()
    assert run() == 0
    told = capsys.readouterr().out
    assert "Everything is done" in told
    scored = tmp_path / "out" / "data-bin" / "learned" / "valid.scored.json"
    assert re.search(r"evaluate-v1\.1\.py \S*/valid\.scored\.json \S*/predictions\.json", told)
    assert s.texts(json.loads(scored.read_text())) == s.texts(s.squad(SIZES["dev"], SIZES["dev"]))


def test_longer_windows_are_refused_before_anything_is_prepared(run: Any, tmp_path: Path, capsys: Any) -> None:
    assert run("--max-length", "40") == 1
    told = capsys.readouterr().out
    assert "windows have up to 40 pieces, learned" in told
    assert (
        "--longest of prepare_spans.py and of recipes/finetune_xtreme, --max-length of recipes/finetune_squad" in told
    )
    assert "--pos-enc-args extend=repeat, or extend=interpolate,extend_to=40" in told
    assert not (tmp_path / "out" / "data-bin").exists()


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
