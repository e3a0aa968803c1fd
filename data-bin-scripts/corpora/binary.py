"""Write fairseq's binary files (MMapIndexedDataset), and the token files that the shards are built from.

fairseq's own builder would write the same bytes (a test checks this). This module does not use fairseq, because
importing fairseq takes seconds and 300 MB in each process, and fairseq's lists of sizes take 80 bytes per item.
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
_CODES = {np.dtype(np.uint16): 8, np.dtype(np.uint32): 9}  # fairseq's codes of the types
_CHUNK = 1 << 20  # items whose offsets are computed at a time

#: a document in a token file: the number of its source file, its number in that file, its language, its split (1:
#: valid), and its numbers of items and ids
RECORD = np.dtype(
    [("file", "<u4"), ("index", "<u8"), ("language", "<u2"), ("valid", "u1"), ("items", "<u4"), ("ids", "<u8")]
)
ENDS = ("ids", "sizes", "documents")
#: a document to copy into a shard: its random sort key, the task that tokenised it, and where its ids and sizes begin
#: in the files of that task
PLACE = np.dtype(
    {
        "names": ["key", "file", "index", "copy", "task", "id", "ids", "item", "items"],
        "formats": ["<u8", "<u4", "<u8", "<u4", "<u4", "<u8", "<u8", "<u8", "<u8"],
    }
)


def dtype_for(symbols: int) -> np.dtype[np.generic]:
    """Return the integer type that stores ids below `symbols`, like fairseq's `best_fitting_int_dtype`."""
    return np.dtype(np.uint16) if symbols < 65500 else np.dtype(np.uint32)


def index(sizes: NDArray[np.int32], dtype: np.dtype[np.generic], path: Path) -> None:
    """Write fairseq's .idx file for items of these sizes.

    Args:
        sizes: Number of ids of each item, [items].
        dtype: Type of the ids in the .bin file.
    """
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
    """Yield a temporary path for each file-name ending, and rename the files if the block ends without an error.

    The files are renamed in the order of `ends`, so that the existence of the last file shows that all exist.
    """
    with ExitStack() as stack:  # an ExitStack leaves its contexts in reverse order
        yield {end: stack.enter_context(whole(prefix.with_name(f"{prefix.name}.{end}"))) for end in reversed(ends)}


class TokenFiles:
    """Read the token files of all tasks with pread, because mapped files would count as memory of the process."""

    def __init__(self, folder: Path, tasks: int, dtype: np.dtype[np.generic]) -> None:
        self.folder, self.tasks, self.dtype = folder, tasks, dtype
        self._file = lru_cache(maxsize=256)(self._open)  # many systems allow 1,024 open files

    def _open(self, task: int, end: str) -> BinaryIO:
        return (self.folder / f"{task:05d}.{end}").open("rb", buffering=0)

    def placed(self, task: int) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Return a `RECORD` and a `PLACE` of each document of a task; the caller sets the sort keys of the places."""
        records = np.fromfile(self.folder / f"{task:05d}.documents", RECORD)
        places = np.zeros(len(records), PLACE)
        for name in ("file", "index", "items", "ids"):
            places[name] = records[name]
        places["task"] = task
        for begin, size in (("id", "ids"), ("item", "items")):
            places[begin] = np.cumsum(records[size], dtype=np.uint64) - records[size]
        return records, places

    def read(self, task: int, end: str, begin: int, count: int) -> bytes:
        """Return the bytes of `count` ids or sizes, beginning at index `begin`."""
        width = 4 if end == "sizes" else self.dtype.itemsize
        return os.pread(self._file(task, end).fileno(), count * width, begin * width)


@dataclass(frozen=True)
class ShardWriter:
    """Write the items of fairseq's .bin and .idx files."""

    dtype: np.dtype[np.generic]
    file: BinaryIO
    sizes: array[int] = field(default_factory=lambda: array("i"))

    def add(self, ids: bytes, sizes: bytes) -> None:
        """Append several items: `ids` holds the bytes of all their ids, and `sizes` their numbers of ids (int32)."""
        self.file.write(ids)
        self.sizes.frombytes(sizes)

    def put(self, ids: list[int]) -> None:
        """Append one item."""
        self.file.write(np.array(ids, self.dtype).tobytes())
        self.sizes.append(len(ids))


@contextmanager
def shard(prefix: Path, dtype: np.dtype[np.generic]) -> Iterator[ShardWriter]:
    """Yield a writer of PREFIX.bin and PREFIX.idx; both files appear if the block ends without an error."""
    with replacing(prefix, ("bin", "idx")) as new, new["bin"].open("wb", buffering=BLOCK) as file:
        writer = ShardWriter(dtype, file)
        yield writer
        index(np.frombuffer(writer.sizes, np.int32), dtype, new["idx"])
