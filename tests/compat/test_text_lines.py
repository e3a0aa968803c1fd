"""Test that fairseq's commands end lines at line feeds only, and refuse text that they cannot binarise."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

from fairseq import file_chunker_utils
from fairseq.binarizer import FileBinarizer, VocabularyDatasetBinarizer
from fairseq.data import Dictionary, data_utils, indexed_dataset

from fairseq_posenc.compat import text_lines
from fairseq_posenc.core.reading import NotTextError

from . import ROOT
from .data import words

SEPARATORS = ["\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"]
SENTENCES = ["a b", "c d", "e", "f g h", "a"]


def write(path: Path, separator: str, end: str = "\n") -> Path:
    """Write the sentences; in the third sentence, the separator stands between two words."""
    text = "".join(sentence + end for sentence in SENTENCES).replace("e", f"e{separator}b")
    path.write_bytes(text.encode())
    return path


def binarised(path: Path, workers: int = 1) -> list[list[int]]:
    dictionary = words()
    target = path.with_name(f"{path.name}.{workers}")
    binarizer = VocabularyDatasetBinarizer(dictionary)
    FileBinarizer.multiprocess_dataset(str(path), "mmap", binarizer, str(target), len(dictionary), workers)
    return [line.tolist() for line in data_utils.load_indexed_dataset(str(target), dictionary)]


def ids(dictionary: Dictionary) -> list[list[int]]:
    sentences = [sentence.replace("e", "e b") for sentence in SENTENCES]
    return [dictionary.encode_line(sentence, add_if_not_exist=False).tolist() for sentence in sentences]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_separator_inside_a_sentence_does_not_end_it(separator: str, end: str, workers: int, tmp_path: Path) -> None:
    assert binarised(write(tmp_path / "text", separator, end), workers) == ids(words())


def test_fairseq_itself_splits_sentences_at_carriage_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_chunker_utils, "open", builtins.open)
    assert len(binarised(write(tmp_path / "text", "\r"))) == len(SENTENCES) + 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_raw_text_is_read_by_line_feeds(end: str, tmp_path: Path) -> None:
    path = write(tmp_path / "text", "\r", end)
    raw = indexed_dataset.IndexedRawTextDataset(str(path), words())
    assert [line.tolist() for line in raw.tokens_list] == ids(words())
    assert raw.lines == [sentence.replace("e", "e\rb") for sentence in SENTENCES]


# -- the commands


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in ("train", "valid"):
        write(tmp_path / f"{split}.en", " ")
        write(tmp_path / f"{split}.de", " ")
    return tmp_path


def preprocess(folder: Path, *more: str, output: str = "out") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairseq_cli.preprocess", "--user-dir", str(ROOT / "fairseq_posenc")]
    command += ["--source-lang", "en", "--target-lang", "de", "--destdir", output, *more]
    command += ["--trainpref", "train", "--validpref", "valid"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_preprocess_keeps_pairs_together(folder: Path) -> None:
    write(folder / "train.en", "\r")
    (folder / "train.align").write_text("0-0\n" * len(SENTENCES))
    done = preprocess(folder, "--alignfile", "train.align")
    assert done.returncode == 0, done.stderr
    for side in ("en", "de"):
        dictionary = Dictionary.load(str(folder / "out" / f"dict.{side}.txt"))
        lines = data_utils.load_indexed_dataset(str(folder / "out" / f"train.en-de.{side}"), dictionary)
        assert [dictionary.string(line) for line in lines] == [line.replace("e", "e b") for line in SENTENCES]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.de", b"a\nb\n", "train.en has 5 lines, but train.de has 2. Each line must translate"),
        ("valid.en", b"a\nb\xe4\n", "valid.en:2: the line is not UTF-8, because it contains the byte 0xe4"),
        ("valid.de", "a b c\n".encode("utf-16"), "valid.de:1: the text is UTF-16, but must be UTF-8"),
    ],
)
def test_preprocess_refuses_bad_text_before_it_writes(name: str, content: bytes, message: str, folder: Path) -> None:
    (folder / name).write_bytes(content)
    done = preprocess(folder)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()


def test_preprocess_refuses_a_folder_that_training_could_not_open(folder: Path) -> None:
    done = preprocess(folder, output="12:30")
    assert done.returncode == 1
    assert "--destdir 12:30: the path contains ':', at which fairseq splits a path" in done.stderr
    assert not (folder / "12:30").exists()


def batches(path: Path, size: int) -> list[list[str]]:
    def unused(*_: Any) -> None:
        raise AssertionError

    return list(text_lines.sentences(unused, str(path), size))


def test_interactive_reads_by_line_feeds(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\rb\r\n\nc")
    assert batches(path, 2) == [["a\rb", ""], ["c"]]
    path.write_bytes(b"a\nb\xe4\n")
    with pytest.raises(NotTextError, match=r"text:2: the line is not UTF-8"):
        batches(path, 2)
