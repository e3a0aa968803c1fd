"""The binary files: those of fairseq (MMapIndexedDataset), and the tokens that the shards are made of.

fairseq's builder writes the same bytes (tested), but importing fairseq takes 300 MB and seconds in each process, and
its lists of sizes 80 bytes an item.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from .compressed import BLOCK

_MAGIC, _VERSION = b"MMIDIDX\x00\x00", 1
_CODES = {np.dtype(np.uint16): 8, np.dtype(np.uint32): 9}  # fairseq's
_CHUNK = 1 << 20  # items whose pointers are made at a time

#: a document of a file of tokens: number of its file, its number there, language, split (1: valid), items, ids
RECORD = np.dtype(
    [("file", "<u4"), ("index", "<u8"), ("language", "<u2"), ("valid", "u1"), ("items", "<u4"), ("ids", "<u8")]
)
ENDS = ("ids", "sizes", "documents")
#: a document to be copied: its draw, and where it lies among the ids and sizes of its task
PLACE = np.dtype(
    {
        "names": ["key", "file", "index", "copy", "task", "id", "ids", "item", "items"],
        "formats": ["<u8", "<u4", "<u8", "<u4", "<u4", "<u8", "<u8", "<u8", "<u8"],
    }
)


def dtype_for(symbols: int) -> np.dtype[np.generic]:
    """Of ids below `symbols`: what fairseq's `best_fitting_int_dtype` says."""
    return np.dtype(np.uint16) if symbols < 65500 else np.dtype(np.uint32)


def index(sizes: NDArray[np.int32], dtype: np.dtype[np.generic], path: Path) -> None:
    """fairseq's .idx of items [n] of so many ids."""
    with path.open("wb") as file:
        file.write(_MAGIC + struct.pack("<QBQ", _VERSION, _CODES[dtype], len(sizes)))
        sizes.astype("<i4").tofile(file)
        begin = 0
        for part in range(0, len(sizes), _CHUNK):
            ends = begin + np.cumsum(sizes[part : part + _CHUNK], dtype=np.int64) * dtype.itemsize
            np.concatenate([[begin], ends[:-1]]).astype("<i8").tofile(file)
            begin = int(ends[-1])


@contextmanager
def replacing(prefix: Path, ends: tuple[str, ...]) -> Iterator[Callable[[str], Path]]:
    """Names to write to, which take those of `prefix` when all is well; the last one last, as it says that all is."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for end in ends:
        for left in prefix.parent.glob(f".{prefix.name}.{end}.*"):
            left.unlink()  # by a task that was killed

    def unfinished(end: str) -> Path:
        return prefix.with_name(f".{prefix.name}.{end}.{os.getpid()}")

    try:
        yield unfinished
        for end in ends:
            os.replace(unfinished(end), prefix.with_name(f"{prefix.name}.{end}"))
    finally:
        for end in ends:
            unfinished(end).unlink(missing_ok=True)


class TokenWriter:
    """Documents as ids, sizes of items and records; memory does not grow."""

    def __init__(self, unfinished: Callable[[str], Path], dtype: np.dtype[np.generic]) -> None:
        self.dtype = dtype
        self._files = [unfinished(end).open("wb", buffering=BLOCK) for end in ENDS]

    def add(self, name: tuple[int, int, int, bool], ids: NDArray[np.integer], sizes: NDArray[np.int32]) -> None:
        """A document: its file, number, language, whether it is of validation, its ids and the sizes of its items."""
        record = np.array((*name, len(sizes), len(ids)), RECORD)
        for file, content in zip(self._files, (ids.astype(self.dtype), sizes.astype("<i4"), record), strict=True):
            file.write(content.tobytes())

    def close(self) -> None:
        for file in self._files:
            file.close()


class TokenFiles:
    """The files of tokens of all tasks, read by place: what is mapped would count as memory until it is let go."""

    def __init__(self, folder: Path, tasks: int, dtype: np.dtype[np.generic]) -> None:
        self.folder, self.tasks, self.dtype = folder, tasks, dtype
        self._file = lru_cache(maxsize=256)(self._open)  # many systems allow 1,024

    def _open(self, task: int, end: str) -> BinaryIO:
        return (self.folder / f"{task:05d}.{end}").open("rb", buffering=0)

    def placed(self, task: int) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """The records of a task, and where its documents lie; not yet drawn."""
        records = np.fromfile(self.folder / f"{task:05d}.documents", RECORD)
        places = np.zeros(len(records), PLACE)
        for name in ("file", "index", "items", "ids"):
            places[name] = records[name]
        places["task"] = task
        for begin, size in (("id", "ids"), ("item", "items")):
            places[begin] = np.cumsum(records[size], dtype=np.uint64) - records[size]
        return records, places

    def read(self, task: int, end: str, begin: int, count: int) -> bytes:
        """So many ids or sizes."""
        width = 4 if end == "sizes" else self.dtype.itemsize
        return os.pread(self._file(task, end).fileno(), count * width, begin * width)


class ShardWriter:
    """fairseq's .bin and .idx."""

    def __init__(self, unfinished: Callable[[str], Path], dtype: np.dtype[np.generic]) -> None:
        self.dtype, self._idx, self._sizes = dtype, unfinished("idx"), array("i")
        self._bin = unfinished("bin").open("wb", buffering=BLOCK)

    def add(self, ids: bytes, sizes: bytes) -> None:
        self._bin.write(ids)
        self._sizes.frombytes(sizes)

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._bin.close()
        if error is None:
            index(np.frombuffer(self._sizes, np.int32), self.dtype, self._idx)
