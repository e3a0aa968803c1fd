"""data-bin-scripts/prepare_wikitext103.sh: from a folder, or what the downloader leaves, to what fairseq reads."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support_corpora import SCRIPTS

TEXT = {"train": " = A = \n\n a b <unk> a \n", "valid": " a b \n", "test": " c  a \n"}
TYPES = 5  # =, A, a, b and <unk> of the text
ARCHIVE = "wikitext-103/wikitext-103-v1"


def prepare(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """In a folder, with this environment."""
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    command = [SCRIPTS / "prepare_wikitext103.sh", *words]
    return subprocess.run(map(str, command), cwd=folder, env=environment, capture_output=True, text=True, check=False)


def write(folder: Path, packed: bool = False) -> Path:
    folder.mkdir(parents=True)
    for split, text in TEXT.items():
        if packed:
            (folder / f"{split}.txt.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / f"wiki.{split}.tokens").write_text(text)
    return folder


def lines(folder: Path) -> list[str]:
    """What fairseq reads in the test text, word by word."""
    code = (
        "from fairseq.data import Dictionary, data_utils\n"
        f"words = Dictionary.load({str(folder / 'dict.txt')!r})\n"
        f"text = data_utils.load_indexed_dataset({str(folder / 'test')!r}, words)\n"
        "print(len(words), *[words[number] for line in text for number in line])"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_help_and_dry_runs_need_nothing(tmp_path: Path) -> None:
    told = prepare(tmp_path, "--help")
    assert told.returncode == 0
    assert "267,735 types" in told.stdout
    told = prepare(tmp_path, "--dry-run", "--workers", 3)
    assert told.returncode == 0, told.stderr
    fetch, words, removed, binarise, counts, moved = told.stdout.splitlines()
    assert "fetch.py wikitext-103/wikitext-103-v1.zip --output data/raw" in fetch
    assert "--text data/raw/wikitext-103/wikitext-103-v1 --output data-bin/wikitext103.text --types 267735" in words
    assert "--padding-factor 1 --workers 3" in binarise
    assert [line.split()[0] for line in (removed, counts, moved)] == ["rm", "cp", "mv"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_becomes_what_fairseq_reads(tmp_path: Path, packed: bool) -> None:
    text = write(tmp_path / "text", packed)
    told = prepare(tmp_path, "--text", text, "--types", TYPES + 1, "--output", "out")  # and <eos>
    assert told.returncode == 0, told.stderr
    assert lines(tmp_path / "out") == [str(TYPES + 3), "<unk>", "a", "</s>"]  # <s>, <pad>, </s>; <unk> is one
    counts = json.loads((tmp_path / "out" / "counts.json").read_text())
    assert counts["types"] == TYPES + 1
    assert counts["splits"]["train"]["tokens"] == 10
    again = prepare(tmp_path, "--text", text, "--types", 0, "--output", "out")
    assert (again.returncode, again.stderr) == (1, "error: out is there: move it, or choose another --output\n")


def test_what_was_fetched_before_is_unpacked_text_like_any_other(tmp_path: Path) -> None:
    write(tmp_path / "data" / "raw" / ARCHIVE)
    told = prepare(tmp_path, "--text", tmp_path / "data" / "raw" / ARCHIVE, "--types", 0, "--text-only")
    assert told.returncode == 0, told.stderr
    assert told.stdout == "data-bin/wikitext103.text\n"
    assert (tmp_path / "data-bin" / "wikitext103.text" / "test.txt").read_text() == "c a\n"
    assert not (tmp_path / "data-bin" / "wikitext103").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--text", "text"], "6 types (with <unk> and <eos>), 267,735 are wanted"),
        (["--text", "text", "--type", "6"], "unknown option --type; --help lists them"),
        (["--text", "text", "--types", "six"], "--types wants a number"),
        (["--text", "text", "--text", "text"], "--text is one folder"),
        (["--fetch-limit", "2"], "a part of WikiText-103 has another vocabulary"),
        (["--text", "nowhere"], "nowhere: no such folder"),
        (["--fetch-from", "own"], "the size is wrong: 190,229,076 bytes are published"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left(tmp_path: Path, words: list[str], message: str) -> None:
    write(tmp_path / "text")
    own = tmp_path / "own" / "wikitext-103" / "wikitext-103-v1.zip"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"another file")
    told = prepare(tmp_path, *words)
    assert told.returncode != 0
    assert message in told.stderr
    assert not (tmp_path / "data-bin" / "wikitext103").exists()
    assert not (tmp_path / "data-bin" / "wikitext103.text").exists()
