"""The files of a prepared task, as fairseq's sentence prediction reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from corpora.binary import ShardWriter, dtype_for, shard
from corpora.pieces import END, SPECIALS

from .items import Item


@dataclass
class SplitWriter:
    """Takes the items of a split, which all have labels, or none (see `split_files`)."""

    inputs: list[ShardWriter]
    labels: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def add(self, index: str, item: Item, label: str | None) -> None:
        for writer, sentence in zip(self.inputs, item.sentences, strict=True):
            writer.put(sentence)
        self.ids.append(index)
        if label is not None:
            self.labels.append(label)


@contextmanager
def split_files(folder: Path, split: str, size: int, sentences: int, labels: tuple[str, ...]) -> Iterator[SplitWriter]:
    """Yield the writer of input0/SPLIT, input1/SPLIT of pairs, label/SPLIT of classes, label/SPLIT.label of numbers,
    and SPLIT.ids.

    Args:
        size: That of the dictionary. sentences: One or two. labels: By class; none of regression.
    """
    with ExitStack() as stack:
        files = [folder / f"input{number}" / split for number in range(sentences)]
        writer = SplitWriter([stack.enter_context(shard(file, dtype_for(size))) for file in files])
        yield writer
    _write_lines(folder / f"{split}.ids", writer.ids)
    if writer.labels and not labels:
        (folder / "label").mkdir(exist_ok=True)
        _write_lines(folder / "label" / f"{split}.label", writer.labels)
    elif writer.labels:
        with shard(folder / "label" / split, dtype_for(len(labels))) as classes:
            for label in writer.labels:
                classes.put([len(SPECIALS) + labels.index(label), END])


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
