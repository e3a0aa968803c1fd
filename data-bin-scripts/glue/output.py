"""The files of a prepared task, as fairseq's sentence prediction reads them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from corpora.binary import ShardWriter, dtype_for
from corpora.pieces import SPECIALS
from questions.output import put

from .items import END, Item


class SplitWriter:
    """input0/SPLIT, input1/SPLIT of pairs, label/SPLIT of classes, label/SPLIT.label of numbers; SPLIT.ids.

    Args:
        size: of the dictionary. sentences: one or two. labels: by class; none of regression.
    """

    def __init__(self, folder: Path, split: str, size: int, sentences: int, labels: tuple[str, ...]) -> None:
        self._stack, self._folder, self._split = ExitStack(), folder, split
        self._inputs = [self._binary(f"input{number}", dtype_for(size)) for number in range(sentences)]
        self._classes = {label: number for number, label in enumerate(labels, start=len(SPECIALS))}
        self._labels: list[str] = []
        self._ids: list[str] = []

    def _binary(self, name: str, dtype: np.dtype[np.generic]) -> ShardWriter:
        (self._folder / name).mkdir(exist_ok=True)
        prefix = self._folder / name / self._split
        return self._stack.enter_context(ShardWriter(lambda end: prefix.with_name(f"{prefix.name}.{end}"), dtype))

    def add(self, index: str, item: Item, label: str | None) -> None:
        """An item; of a split all have labels, or none."""
        for writer, ids in zip(self._inputs, item.sentences, strict=True):
            put(writer, ids, writer.dtype)
        self._ids.append(index)
        if label is not None:
            self._labels.append(label)

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with self._stack:
            if error is not None:
                return
            write_lines(self._folder / f"{self._split}.ids", self._ids)
            if not self._labels:
                return
            if self._classes:
                writer = self._binary("label", dtype_for(len(self._classes)))
                for label in self._labels:
                    put(writer, [self._classes[label], END], writer.dtype)
            else:
                (self._folder / "label").mkdir(exist_ok=True)
                write_lines(self._folder / "label" / f"{self._split}.label", self._labels)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
