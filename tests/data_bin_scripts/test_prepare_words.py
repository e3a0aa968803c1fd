"""Test prepare_words.py with published text."""

from __future__ import annotations

import json
from pathlib import Path

import prepare_words
import pytest
from support_scripts import DATA, Runs


@pytest.mark.skipif(not (DATA / "wikitext-2").is_dir(), reason="POSENC_DATA names no folder with WikiText-2")
def test_wikitext_2_has_its_published_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = Runs(prepare_words.main, tmp_path, capsys)
    assert words.run("--text", DATA / "wikitext-2", "--types", 33278).status == 0
    splits = json.loads((words.output / "counts.json").read_text())["splits"]
    assert [splits[split]["tokens"] for split in ("train", "valid", "test")] == [2088628, 217646, 245569]
