"""The binary files: those of fairseq (MMapIndexedDataset), and the tokens that the shards are made of.

fairseq's builder writes the same bytes (tested), but importing fairseq takes 300 MB and seconds in each process, and
its lists of sizes 80 bytes an item.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from shared import whole

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
    """Return the type of ids below `symbols`, as fairseq's `best_fitting_int_dtype` does."""
    return np.dtype(np.uint16) if symbols < 65500 else np.dtype(np.uint32)


def index(sizes: NDArray[np.int32], dtype: np.dtype[np.generic], path: Path) -> None:
    """Write fairseq's .idx for items [n] of these sizes."""
    with path.open("wb") as file:
        file.write(_MAGIC + struct.pack("<QBQ", _VERSION, _CODES[dtype], len(sizes)))
        sizes.astype("<i4").tofile(file)
        begin = 0
        for part in range(0, len(sizes), _CHUNK):
            ends = begin + np.cumsum(sizes[part : part + _CHUNK], dtype=np.int64) * dtype.itemsize
            np.concatenate([[begin], ends[:-1]]).astype("<i8").tofile(file)
            begin = int(ends[-1])


@contextmanager
def replacing(prefix: Path, ends: tuple[str, ...]) -> Iterator[dict[str, Path]]:
    """Yield a temporary path for each end; they become PREFIX.END if the block ends without an error.

    They are renamed in the order of `ends`, so that the last file says that all are there.
    """
    with ExitStack() as stack:  # which leaves the last one first
        yield {end: stack.enter_context(whole(prefix.with_name(f"{prefix.name}.{end}"))) for end in reversed(ends)}


class TokenFiles:
    """The files of tokens of all tasks, read by place: what is mapped would count as memory until it is let go."""

    def __init__(self, folder: Path, tasks: int, dtype: np.dtype[np.generic]) -> None:
        self.folder, self.tasks, self.dtype = folder, tasks, dtype
        self._file = lru_cache(maxsize=256)(self._open)  # many systems allow 1,024

    def _open(self, task: int, end: str) -> BinaryIO:
        return (self.folder / f"{task:05d}.{end}").open("rb", buffering=0)

    def placed(self, task: int) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Return the records of a task, and where its documents lie; not yet drawn."""
        records = np.fromfile(self.folder / f"{task:05d}.documents", RECORD)
        places = np.zeros(len(records), PLACE)
        for name in ("file", "index", "items", "ids"):
            places[name] = records[name]
        places["task"] = task
        for begin, size in (("id", "ids"), ("item", "items")):
            places[begin] = np.cumsum(records[size], dtype=np.uint64) - records[size]
        return records, places

    def read(self, task: int, end: str, begin: int, count: int) -> bytes:
        """Return so many ids or sizes, as bytes."""
        width = 4 if end == "sizes" else self.dtype.itemsize
        return os.pread(self._file(task, end).fileno(), count * width, begin * width)


@dataclass(frozen=True)
class ShardWriter:
    """Takes the items of fairseq's .bin and .idx (see `shard`)."""

    dtype: np.dtype[np.generic]
    file: BinaryIO
    sizes: array[int] = field(default_factory=lambda: array("i"))

    def add(self, ids: bytes, sizes: bytes) -> None:
        """Write items of these sizes (int32), one behind the other."""
        self.file.write(ids)
        self.sizes.frombytes(sizes)

    def put(self, ids: list[int]) -> None:
        """Write an item."""
        self.file.write(np.array(ids, self.dtype).tobytes())
        self.sizes.append(len(ids))


@contextmanager
def shard(prefix: Path, dtype: np.dtype[np.generic]) -> Iterator[ShardWriter]:
    """Yield the writer of PREFIX.bin and PREFIX.idx, which are there if the block ends without an error."""
    with replacing(prefix, ("bin", "idx")) as new, new["bin"].open("wb", buffering=BLOCK) as file:
        writer = ShardWriter(dtype, file)
        yield writer
        index(np.frombuffer(writer.sizes, np.int32), dtype, new["idx"])
