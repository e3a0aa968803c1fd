"""Test that text that a later program would drop, shift or misread is refused with its file and line."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from pathlib import Path
from unittest import mock

import pytest

from recipes.lib.translation import parallel

LINES = {"en": [f"A dog runs {n}." for n in range(20)], "de": [f"Ein Hund läuft {n}." for n in range(20)]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = tmp_path / "my corpus"
    corpus.mkdir()
    for name in ("train", "val", "test"):
        for language, lines in LINES.items():
            (corpus / f"{name}.{language}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return corpus


def check(folder: Path, *options: str, target: str = "de") -> str | None:
    """Prepare the text of a folder, and return the problems that are reported."""
    words = ["--folder", folder, "--output", folder.parent / "raw", "--source-lang", "en", "--target-lang", target]
    words += ["--train-set", "train", "--valid-set", "val", "--test-set", "test", *options]
    with mock.patch.object(sys, "argv", ["parallel.py", *map(str, words)]):
        try:
            parallel.main()
        except SystemExit as error:
            return str(error.code)
    return None


def edit(path: Path, number: int, line: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))


def refused(folder: Path, *options: str, **target: str) -> str:
    """Return the message; nothing that looks finished is left."""
    message = check(folder, *options, **target)
    assert message is not None
    assert not list(folder.parent.glob("raw*"))
    return message


def test_sound_text_is_copied_byte_for_byte_plain_or_gzipped(folder: Path) -> None:
    with gzip.open(folder / "train.en.gz", "wb") as file:
        file.write((folder / "train.en").read_bytes())
    (folder / "train.en").unlink()
    assert check(folder) is None
    for split, name in (("train", "train"), ("valid", "val"), ("test", "test")):
        assert (folder.parent / "raw" / f"{split}.de").read_bytes() == (folder / f"{name}.de").read_bytes()
    assert (folder.parent / "raw" / "train.en").read_text(encoding="utf-8").splitlines() == LINES["en"]


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_lf_ends_a_line(separator: str, folder: Path) -> None:
    """str.splitlines splits at these, and every pair after the line would be shifted."""
    edit(folder / "train.en", 3, f"A dog{separator}runs.".encode())
    assert check(folder) is None
    assert len((folder.parent / "raw" / "train.en").read_bytes().split(b"\n")) == 21


def test_a_last_line_without_lf_counts(folder: Path) -> None:
    path = folder / "test.de"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert check(folder) is None
    assert (folder.parent / "raw" / "test.de").read_bytes().endswith(b"19.\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "the line is empty. Remove the line from both files."),
        (b" \t ", "the line is empty. Remove the line from both files."),
        (b"Ein Hund.\r", r"the line ends in CR LF. Convert the file with: sed -i 's/\r$//' train.de"),
        (b"Ein\rHund.", "the line contains a CR or NUL"),
        (b"Ein\0Hund.", "the line contains a CR or NUL"),
        ("Ein Hund läuft.".encode("utf-16"), "the line contains a CR or NUL"),
        ("Ein Hund läuft.".encode("latin-1"), "the text is not UTF-8 (byte 0xe4 at position 11). Convert"),
    ],
)
def test_a_bad_line_is_refused_with_file_line_and_cure(line: bytes, message: str, folder: Path) -> None:
    edit(folder / "train.de", 7, line)
    error = refused(folder)
    assert f"error: {folder / 'train.de'}:7: {message}" in error
    assert "--bad-lines drop" in error


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_with_the_command_that_converts_it(encoding: str, folder: Path) -> None:
    edit(folder / "train.de", 1, "Ein Hund läuft.".encode(encoding))
    error = refused(folder)
    assert f"{folder / 'train.de'}:1: the text is UTF-16, but must be UTF-8. Convert it with: iconv -f UTF-16" in error


def test_a_byte_order_mark_is_refused(folder: Path) -> None:
    edit(folder / "val.en", 1, b"\xef\xbb\xbfA dog.")
    assert "val.en:1: the file begins with a byte order mark" in refused(folder)


def test_many_bad_lines_are_counted_and_a_few_are_printed(folder: Path) -> None:
    for number in range(3, 15):
        edit(folder / "train.en", number, b"")
    error = refused(folder)
    assert error.count("the line is empty") == parallel.SHOWN
    assert "train: number of bad pairs: 12 (12 empty)" in error


def test_bad_pairs_of_training_are_dropped_if_asked_with_their_count(folder: Path) -> None:
    edit(folder / "train.en", 2, b"")
    edit(folder / "train.de", 4, b"\xff")
    assert check(folder, "--bad-lines", "drop") is None
    counts = json.loads((folder.parent / "raw" / "counts.json").read_text())
    assert counts["train"] == {"pairs": 18, "left out": 2, "because": "1 empty, 1 UTF-8"}
    for language, lines in LINES.items():
        kept = (folder.parent / "raw" / f"train.{language}").read_text(encoding="utf-8").splitlines()
        assert kept == [line for number, line in enumerate(lines, start=1) if number not in (2, 4)]


def test_a_test_set_is_never_shortened(folder: Path) -> None:
    edit(folder / "test.en", 2, b"")
    error = refused(folder, "--bad-lines", "drop")
    assert "test.en:2: the line is empty" in error
    assert "test: number of bad pairs: 1" in error


def test_files_of_unequal_length_are_refused_with_the_line(folder: Path) -> None:
    with (folder / "train.de").open("a", encoding="utf-8") as file:
        file.write("Noch einer.\n")
    assert refused(folder) == refused(folder, "--limit", "3")
    error = refused(folder)
    assert f"{folder / 'train.en'}: the file ends after line 20, but {folder / 'train.de'} continues" in error


def test_an_empty_file_is_refused(folder: Path) -> None:
    (folder / "val.de").write_bytes(b"")
    assert f"{folder / 'val.de'}: the file is empty, but {folder / 'val.en'} is not" in refused(folder)
    (folder / "val.en").write_bytes(b"")
    assert f"{folder / 'val.en'}: the file is empty, and {folder / 'val.de'} is empty, too" in refused(folder)


def test_a_missing_file_is_reported_with_the_existing_files(folder: Path) -> None:
    error = refused(folder, target="cs")
    languages = "The folder has the set train in these languages: de, en."
    assert f"{folder / 'train.cs'}: neither this file nor train.cs.gz exists. {languages}" in error
    for language in ("en", "de"):
        (folder / f"test.{language}").rename(folder / f"test_2016.{language}")
    assert "these sets in en: test_2016, train, val. Name your sets with --train-set" in refused(folder)
    assert "is not a folder. Name a folder with --corpus" in refused(folder / "nowhere")


def test_a_file_plain_and_gzipped_must_be_the_same(folder: Path) -> None:
    """The downloader leaves both."""
    (folder / "train.en.gz").write_bytes(gzip.compress((folder / "train.en").read_bytes()))
    assert check(folder) is None
    shutil.rmtree(folder.parent / "raw")
    (folder / "train.en.gz").write_bytes(gzip.compress(b"other\n"))
    assert "train.en and train.en.gz have different text. Remove one of" in refused(folder)


def test_a_cut_gzip_file_is_refused(folder: Path) -> None:
    (folder / "train.en.gz").write_bytes(gzip.compress((folder / "train.en").read_bytes())[:-6])
    (folder / "train.en").unlink()
    assert "the gzip file is damaged" in refused(folder)


def test_the_limit_applies_to_training_pairs_only(folder: Path) -> None:
    assert check(folder, "--limit", "5") is None
    sizes = {
        path.name: len(path.read_bytes().split(b"\n")) - 1
        for path in (folder.parent / "raw").iterdir()
        if path.suffix != ".json"
    }
    assert sizes == {
        f"{split}.{language}": 5 if split == "train" else 20 for split in parallel.SPLITS for language in LINES
    }
