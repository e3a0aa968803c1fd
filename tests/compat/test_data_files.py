"""Test that damaged binarised data and dictionaries are refused, with the file and the line or item."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, make_builder

from fairseq_posenc import compat
from fairseq_posenc.compat.data_files import DataError
from fairseq_posenc.compat.dictionaries import DictionaryError
from fairseq_posenc.core.reading import NotTextError

compat.apply()
LENGTHS = [3, 1, 4, 1, 5]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return the path without ending of a small binarised file."""
    builder = make_builder(str(tmp_path / "train.bin"), "mmap", 20)
    for length in LENGTHS:
        builder.add_item(torch.arange(length))
    builder.finalize(str(tmp_path / "train.idx"))
    return tmp_path / "train"


def change(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def test_whole_data_are_read(data: Path) -> None:
    dataset = MMapIndexedDataset(str(data))
    assert [dataset[number].tolist() for number in range(len(dataset))] == [list(range(n)) for n in LENGTHS]


@pytest.mark.parametrize("ending", ["idx", "bin"])
@pytest.mark.parametrize("part", [0.0, 0.5, 0.9])
def test_truncated_and_empty_files_are_named(data: Path, ending: str, part: float) -> None:
    path = data.with_suffix(f".{ending}")
    content = path.read_bytes()
    change(path, content[: int(part * len(content))])
    with pytest.raises(DataError, match=rf"{path}.*(is empty|cannot be read|bytes, but).*binarise the data again"):
        MMapIndexedDataset(str(data))


def test_every_flipped_bit_of_an_index_is_noticed(data: Path) -> None:
    path = data.with_suffix(".idx")
    content = path.read_bytes()
    for bit in random.Random(0).sample(range(8 * len(content)), 60):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        change(path, bytes(flipped))
        with pytest.raises(DataError, match=re.escape(str(data))):
            MMapIndexedDataset(str(data))


def test_fairseq_itself_does_not_notice(data: Path) -> None:
    path = data.with_suffix(".idx")
    content = bytearray(path.read_bytes())
    content[26] ^= 2  # the size of the first item: 1 in place of 3
    change(path, bytes(content))
    dataset = MMapIndexedDataset.__new__(MMapIndexedDataset)
    MMapIndexedDataset._do_init.__wrapped__(dataset, str(data))
    assert len(dataset[0]) == 1
    with pytest.raises(DataError, match="item 1 is wrong"):
        MMapIndexedDataset(str(data))


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"a 1\nb\xff 1\n", NotTextError, ":2: the line is not UTF-8, because it contains the byte 0xff"),
        (b"a 1\nb 1\nc\n", DictionaryError, ":3: the line 'c' does not consist of a symbol, a space and a count"),
        (b"a 1\nb many\n", DictionaryError, ":2: the line 'b many' does not consist of"),
        (b"a 1\na 1\n", DictionaryError, ": Duplicate word found"),
    ],
)
def test_a_bad_dictionary_is_named_with_its_line(
    tmp_path: Path, content: bytes, error: type[Exception], message: str
) -> None:
    path = tmp_path / "dict.txt"
    change(path, content)
    with pytest.raises(error, match=re.escape(f"{path}{message}")):
        Dictionary.load(str(path))


def test_a_good_dictionary_is_read_and_a_missing_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "dict.txt").write_text("a 1\nb 2 #fairseq:overwrite\n")
    assert Dictionary.load(str(tmp_path / "dict.txt")).symbols[4:] == ["a", "b"]
    with pytest.raises(FileNotFoundError, match="none"):
        Dictionary.load(str(tmp_path / "none"))
