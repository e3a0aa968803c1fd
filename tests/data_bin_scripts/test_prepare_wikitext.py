"""Test prepare_wikitext103.sh: it converts a folder, or a downloaded archive, to fairseq's format."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import prepare_words
import pytest
from support_scripts import script

TEXT = {"train": " = A = \n\n a b <unk> a \n", "valid": " a b \n", "test": " c  a \n"}
TYPES = 5  # =, A, a, b and <unk>
ARCHIVE = "wikitext-103/wikitext-103-v1"


def write(folder: Path, packed: bool = False) -> Path:
    folder.mkdir(parents=True)
    for split, text in TEXT.items():
        if packed:
            (folder / f"{split}.txt.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / f"wiki.{split}.tokens").write_text(text)
    return folder


def test_help_and_dry_runs_need_nothing(tmp_path: Path) -> None:
    result = script("wikitext103", "--help", folder=tmp_path)
    assert result.returncode == 0
    assert "267,735 types" in result.stdout
    result = script("wikitext103", "--dry-run", "--workers", 3, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    fetch, words, removed, binarise, counts, moved = result.stdout.splitlines()
    assert "fetch.py wikitext-103/wikitext-103-v1.zip --output data/raw" in fetch
    assert "--text data/raw/wikitext-103/wikitext-103-v1 --output data-bin/wikitext103.text --types 267735" in words
    assert "--padding-factor 1 --workers 3" in binarise
    assert [line.split()[0] for line in (removed, counts, moved)] == ["rm", "cp", "mv"]
    assert not list(tmp_path.iterdir())


def test_a_folder_becomes_what_fairseq_reads(tmp_path: Path) -> None:
    from fairseq.data import Dictionary, data_utils  # takes seconds, and not all tests need it

    text = write(tmp_path / "text", packed=True)
    words = ["--text", text, "--types", TYPES + 1, "--output", "out"]  # one more type: <eos>
    result = script("wikitext103", *words, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    dictionary = Dictionary.load(str(tmp_path / "out" / "dict.txt"))
    lines = data_utils.load_indexed_dataset(str(tmp_path / "out" / "test"), dictionary)
    assert len(dictionary) == TYPES + 3  # plus <s>, <pad> and </s>
    assert [dictionary[number] for line in lines for number in line] == ["<unk>", "a", "</s>"]
    counts = json.loads((tmp_path / "out" / "counts.json").read_text())
    assert counts["types"] == TYPES + 1
    assert counts["splits"]["train"] == {"lines": 3, "tokens": 10, "unknown": 1}
    assert counts["splits"]["test"] == {"lines": 1, "tokens": 3, "unknown": 1}
    again = script("wikitext103", "--text", text, "--types", 0, "--output", "out", folder=tmp_path)
    assert (again.returncode, again.stderr) == (1, "error: out exists. Move it, or choose another --output.\n")


def test_what_was_fetched_before_is_unpacked_text_like_any_other(tmp_path: Path) -> None:
    text = write(tmp_path / "data" / "raw" / ARCHIVE)
    result = script("wikitext103", "--text", text, "--types", 0, "--text-only", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "data-bin/wikitext103.text\n"
    assert (tmp_path / "data-bin" / "wikitext103.text" / "test.txt").read_text() == "c a\n"
    assert not (tmp_path / "data-bin" / "wikitext103").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--type", "6"], "unknown option --type"),
        (["--types", "six"], "--types six: give a whole number"),
        (["--text", "text"], "--text can be given only once"),
        (["--fetch-limit", "2"], "a part of WikiText-103 has a smaller vocabulary"),
    ],
)
def test_options_that_are_wrong_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    result = script("wikitext103", "--text", "text", *words, folder=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert message in result.stderr


def test_another_file_than_the_published_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    own = tmp_path / "own" / f"{ARCHIVE}.zip"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"another file")
    result = script("wikitext103", "--fetch-from", "own", folder=tmp_path)
    assert "but the published size is 190,229,076" in result.stderr
    assert not (tmp_path / "data-bin").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "wiki.train.tokens: the text has 6 types (including <unk> and <eos>), but --types is 267,735"),
        ({"train.txt": "a\n"}, "the folder has both wiki.train.tokens and train.txt"),
        ({"wiki.train.tokens": "a\n<s> b\n"}, "wiki.train.tokens:2: the word <s> stands for fairseq's beginning"),
        ({"wiki.train.tokens": "<pad>\n"}, "wiki.train.tokens:1: the word <pad> stands for fairseq's padding"),
        ({"wiki.test.tokens": "a\nb <eos>\n"}, "wiki.test.tokens:2: the word <eos> stands for the end of a line"),
        ({"wiki.valid.tokens": "\n\n"}, "wiki.valid.tokens: the file has no words"),
        (
            {"wiki.test.tokens": None, "a": ""},
            "holds a, wiki.train.tokens, wiki.valid.tokens, but not wiki.test.tokens",
        ),
        ({f"wiki.{split}.tokens": None for split in TEXT}, "the folder holds nothing, but not wiki.train.tokens"),
        (None, "text: there is no such folder"),
    ],
)
def test_text_that_is_wrong_is_refused_and_nothing_is_left(
    tmp_path: Path, changes: dict[str, str | None] | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    if changes is not None:
        write(text)
        for name, content in changes.items():
            (text / name).unlink() if content is None else (text / name).write_text(content)
    words = ["--text", text, "--output", tmp_path / "out", "--types", 267735]
    assert prepare_words.main([*map(str, words)]) == 1
    assert message in capsys.readouterr().err
    assert not [*tmp_path.glob("out*")]


def test_the_text_is_not_replaced_by_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = write(tmp_path / "mine" / "text")
    for output in (text, text / ".." / "text", tmp_path / "mine"):
        assert prepare_words.main(["--text", str(text), "--output", str(output)]) == 1
        assert f"--output {output}: this would replace the text in {text}" in capsys.readouterr().err
    assert {path.name for path in text.iterdir()} == {f"wiki.{split}.tokens" for split in TEXT}
