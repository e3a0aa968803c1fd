"""Write fairseq's binary files (MMapIndexedDataset).

fairseq's own builder would write the same bytes (a test checks this). This module does not use fairseq, because
importing fairseq takes seconds and 300 MB in each process, and fairseq's lists of sizes take 80 bytes per item.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from shared import whole

_MAGIC, _VERSION = b"MMIDIDX\x00\x00", 1
_CODES = {np.dtype(np.uint16): 8, np.dtype(np.uint32): 9}  # fairseq's codes of the types


def dtype_for(symbols: int) -> np.dtype[np.generic]:
    """Return the integer type that stores ids below `symbols`, like fairseq's `best_fitting_int_dtype`."""
    return np.dtype(np.uint16) if symbols < 65500 else np.dtype(np.uint32)


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
    with whole(prefix.with_name(f"{prefix.name}.idx")) as idx, whole(prefix.with_name(f"{prefix.name}.bin")) as ids:
        with ids.open("wb") as file:
            writer = ShardWriter(dtype, file)
            yield writer
        _index(np.frombuffer(writer.sizes, np.int32), dtype, idx)


def _index(sizes: NDArray[np.int32], dtype: np.dtype[np.generic], path: Path) -> None:
    """Write fairseq's .idx file for items with these numbers of ids."""
    begins = np.cumsum(sizes, dtype=np.int64) - sizes
    with path.open("wb") as file:
        file.write(_MAGIC + struct.pack("<QBQ", _VERSION, _CODES[dtype], len(sizes)))
        sizes.astype("<i4").tofile(file)
        (begins * dtype.itemsize).astype("<i8").tofile(file)
