"""The files of a prepared folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from corpora.binary import ShardWriter, dtype_for
from corpora.errors import CorpusError

from .items import Ids


@contextmanager
def whole(output: Path) -> Iterator[Path]:
    """OUTPUT.partial, which becomes OUTPUT if nothing goes wrong.

    Raises:
        CorpusError: OUTPUT is there.
    """
    if output.exists():
        raise CorpusError(f"{output} is there: move it, or choose another --output")
    partial = output.with_name(output.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        os.replace(partial, output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


class SplitWriter:
    """SPLIT.src-tgt.{src,tgt} and SPLIT.segments as fairseq reads them, and SPLIT.surface.jsonl.

    Args:
        size: of the dictionary. longest: pieces of a source, of which each may be unknown. segments: there are some.
    """

    def __init__(self, folder: Path, split: str, size: int, longest: int, *, segments: bool) -> None:
        self._stack = ExitStack()
        self._ids, self._small = dtype_for(size + longest), np.dtype(np.uint16)
        self._source = self._binary(folder / f"{split}.src-tgt.src", self._ids)
        self._target = self._binary(folder / f"{split}.src-tgt.tgt", self._ids)
        self._segments = self._binary(folder / f"{split}.segments", self._small) if segments else None
        file = (folder / f"{split}.surface.jsonl").open("w", encoding="utf-8", newline="\n")
        self._surface = self._stack.enter_context(file)

    def _binary(self, prefix: Path, dtype: np.dtype[Any]) -> ShardWriter:
        return self._stack.enter_context(ShardWriter(lambda end: prefix.with_name(f"{prefix.name}.{end}"), dtype))

    def add(self, ids: Ids) -> None:
        """An item."""
        put(self._source, ids.source, self._ids)
        put(self._target, ids.target, self._ids)
        if self._segments:
            put(self._segments, ids.segments, self._small)

    def describe(self, lines: list[dict[str, Any]]) -> None:
        """The items, in the same order."""
        self._surface.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def put(file: ShardWriter, ids: list[int], dtype: np.dtype[Any]) -> None:
    """An item."""
    file.add(np.array(ids, dtype).tobytes(), np.array([len(ids)], np.int32).tobytes())


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, facts: Any) -> None:
    path.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
