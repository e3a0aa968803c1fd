"""Test that text and binarised data are read whole, and that damage is named: each fault of fairseq, then its fix.

tests/faults/test_parsers.py holds the law that damaged files are read or named.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("fairseq")

from fairseq import file_chunker_utils
from fairseq.binarizer import FileBinarizer, VocabularyDatasetBinarizer
from fairseq.data import Dictionary, LanguagePairDataset, TokenBlockDataset, data_utils, indexed_dataset
from fairseq.data.indexed_dataset import MMapIndexedDataset, make_builder
from fairseq.tasks.translation import load_langpair_dataset

from fairseq_posenc.compat import data as mended
from fairseq_posenc.compat.data import DataError
from fairseq_posenc.core.reading import NotTextError

from . import ROOT
from .data import pair_dataset, words

# -- binarised data


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """Return the path without ending of a small binarised file."""
    builder = make_builder(str(tmp_path / "train.bin"), "mmap", 20)
    for length in [3, 1, 4, 1, 5]:
        builder.add_item(torch.arange(length))
    builder.finalize(str(tmp_path / "train.idx"))
    return tmp_path / "train"


def test_every_flipped_bit_of_an_index_is_noticed(binary: Path) -> None:
    """fairseq itself notices few of them: it would read items of another length."""
    path = binary.with_suffix(".idx")
    content = path.read_bytes()
    unnoticed = 0
    for bit in random.Random(0).sample(range(8 * len(content)), 60):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(DataError, match=re.escape(str(binary))):
            MMapIndexedDataset(str(binary))
        with contextlib.suppress(Exception):
            MMapIndexedDataset._do_init.__wrapped__(MMapIndexedDataset.__new__(MMapIndexedDataset), str(binary))
            unnoticed += 1
    assert unnoticed > 20  # the fault


# -- names that numpy 2 has removed


def test_break_mode_eos_and_length_buckets() -> None:
    lines = [torch.tensor([5, 6, 2]), torch.tensor([7, 2])]
    blocks = TokenBlockDataset(lines, [3, 2], None, pad=1, eos=2, break_mode="eos")
    assert [item.tolist() for item in blocks] == [[5, 6, 2], [7, 2]]
    dataset = pair_dataset(40, num_buckets=4)
    assert 2 <= len({len(dataset[i]["source"]) for i in range(40)}) <= 4
    assert np is sys.modules["numpy"]


# -- pairs


def load_pairs(folder: Path, counts: list[tuple[int, int]], impl: str, **more: Any) -> LanguagePairDataset:
    """Write corpora with these numbers of sentences in English and German, and load them as one."""
    for number, pair in enumerate(counts):
        for language, count in zip(("en", "de"), pair, strict=True):
            prefix = folder / f"train{number or ''}.en-de.{language}"
            if impl == "raw":
                prefix.write_text("a b\n" * count, encoding="utf-8")
                continue
            builder = make_builder(f"{prefix}.bin", impl, len(words()))
            for _ in range(count):
                builder.add_item(torch.tensor([4, 5, 2], dtype=torch.int32))
            builder.finalize(f"{prefix}.idx")
    settings = {"combine": True, "upsample_primary": 2, "left_pad_source": True, "left_pad_target": False, **more}
    settings |= {"max_source_positions": 9, "max_target_positions": 9, "dataset_impl": impl}
    return load_langpair_dataset(str(folder), "train", "en", words(), "de", words(), **settings)


@pytest.mark.parametrize(
    ("impl", "more"), [("mmap", {"truncate_source": True, "prepend_bos": True}), ("cached", {}), ("raw", {})]
)
def test_each_of_several_corpora_is_compared(impl: str, more: dict[str, Any], tmp_path: Path) -> None:
    """The totals are equal, so fairseq itself would train on pairs that are shifted by one sentence."""
    assert len(load_pairs(tmp_path, [(6, 6), (5, 5)], impl, **more)) == 2 * 6 + 5
    error = rf"{tmp_path}/train1.en-de.en has 5 sentences, but {tmp_path}/train1.en-de.de has 4. Binarise"
    with pytest.raises(DataError, match=error):
        load_pairs(tmp_path, [(6, 6), (5, 4), (4, 5)], impl, **more)


# -- text

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


@pytest.mark.parametrize(("end", "workers"), [("\n", 1), ("\r\n", 1), ("\r\n", 3)])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_separator_inside_a_sentence_does_not_end_it(separator: str, end: str, workers: int, tmp_path: Path) -> None:
    path = write(tmp_path / "text", separator, end)
    assert binarised(path, workers) == ids(words())
    if workers == 1:
        raw = indexed_dataset.IndexedRawTextDataset(str(path), words())
        assert [line.tolist() for line in raw.tokens_list] == ids(words())
        assert raw.lines == [sentence.replace("e", f"e{separator}b") for sentence in SENTENCES]


def test_fairseq_itself_splits_sentences_at_carriage_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_chunker_utils, "open", builtins.open)
    assert len(binarised(write(tmp_path / "text", "\r"))) == len(SENTENCES) + 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train.en", "train.de", "valid.en", "valid.de"):
        write(tmp_path / name, " ")
    return tmp_path


def preprocess(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairseq_cli.preprocess", "--user-dir", str(ROOT / "fairseq_posenc")]
    command += ["--source-lang", "en", "--target-lang", "de", "--destdir", "out"]
    command += ["--trainpref", "train", "--validpref", "valid"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_preprocess_keeps_pairs_together_and_refuses_bad_text_before_it_writes(folder: Path) -> None:
    write(folder / "train.en", "\r")
    done = preprocess(folder)
    assert done.returncode == 0, done.stderr
    for side in ("en", "de"):
        dictionary = Dictionary.load(str(folder / "out" / f"dict.{side}.txt"))
        lines = data_utils.load_indexed_dataset(str(folder / "out" / f"train.en-de.{side}"), dictionary)
        assert [dictionary.string(line) for line in lines] == [line.replace("e", "e b") for line in SENTENCES]
    shutil.rmtree(folder / "out")
    (folder / "valid.de").write_bytes(b"a\n")
    done = preprocess(folder)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("preprocess.py: error: valid.en has 5, but valid.de has 1 lines.")
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.de", b"a\nb\n", "train.en has 5, but .*train.de has 2 lines. Each line must translate"),
        ("valid.de", "a b c\n".encode("utf-16"), "valid.de:1: the text is UTF-16, but must be UTF-8"),
    ],
)
def test_text_that_cannot_be_binarised_is_named(name: str, content: bytes, message: str, folder: Path) -> None:
    def check(output: str) -> None:
        texts = {"trainpref": str(folder / "train"), "validpref": str(folder / "valid"), "testpref": None}
        mended.check_text(Namespace(destdir=output, source_lang="en", target_lang="de", only_source=False, **texts))

    check("out")
    with pytest.raises(DataError, match="--destdir 12:30: the path contains ':', at which fairseq splits a path"):
        check("12:30")
    (folder / name).write_bytes(content)
    with pytest.raises((DataError, NotTextError), match=message):
        check("out")


def test_interactive_reads_by_line_feeds(tmp_path: Path) -> None:
    path = tmp_path / "text"

    def batches(size: int) -> list[list[str]]:
        return list(mended.sentences(lambda *_: None, str(path), size))

    path.write_bytes(b"a\rb\r\n\nc")
    assert batches(2) == [["a\rb", ""], ["c"]]
    path.write_bytes(b"a\nb\xe4\n")
    with pytest.raises(NotTextError, match=r"text:2: the line is not UTF-8"):
        batches(2)
