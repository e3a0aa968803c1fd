"""Test prepare_words.py, and the options that all data scripts share."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import command
import prepare_words
import pytest
from support_scripts import DATA, Runs


@pytest.fixture
def words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    runs = Runs(prepare_words.main, tmp_path, capsys)
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "wiki.train.tokens").write_text(" a  b\n\n <unk> a c\n")
    (tmp_path / "text" / "valid.txt.gz").write_bytes(gzip.compress(b"a d\n"))
    (tmp_path / "text" / "test.txt").write_text("b <unk>\n")
    return runs


def test_words_are_counted_as_for_published_perplexities(words: Runs) -> None:
    assert words.run("--text", words.folder / "text", "--types", 5).status == 0  # a, b, c, <unk>, <eos>
    assert (words.output / "train.txt").read_text() == "a b\n\n<unk> a c\n"
    counts = json.loads((words.output / "counts.json").read_text())
    assert counts["types"] == 5
    assert counts["splits"]["train"] == {"lines": 3, "tokens": 8, "unknown": 1}
    assert counts["splits"]["valid"] == {"lines": 1, "tokens": 3, "unknown": 1}


def test_the_text_is_not_replaced(words: Runs) -> None:
    assert "would replace the text" in words.run("--text", words.folder / "text", output=words.folder).error


@pytest.mark.skipif(not (DATA / "wikitext-2").is_dir(), reason="POSENC_DATA names no folder with WikiText-2")
def test_wikitext_2_has_its_published_numbers(words: Runs) -> None:
    assert words.run("--text", DATA / "wikitext-2", "--types", 33278).status == 0
    splits = json.loads((words.output / "counts.json").read_text())["splits"]
    assert [splits[split]["tokens"] for split in ("train", "valid", "test")] == [2088628, 217646, 245569]


def test_a_folder_of_data_has_no_colon() -> None:
    assert command.data_folder("data/12-30") == Path("data/12-30")
    with pytest.raises(argparse.ArgumentTypeError, match="data/12:30: the path contains ':', at which fairseq splits"):
        command.data_folder("data/12:30")
