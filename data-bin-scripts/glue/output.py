"""Write the files of a prepared task for fairseq's sentence prediction.

A single sentence becomes `<s> a </s>`. A pair becomes `<s> a </s></s> b </s>` (RoBERTa) or `<s> a </s> b </s>` (BERT).
The files contain neither <s> nor the separators before b, because the task adds them (--init-token, --separator-token).
All lengths include these symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from corpora.binary import ShardWriter, dtype_for, shard
from corpora.pieces import END, SPECIALS, UNKNOWN

from .reading import Row

if TYPE_CHECKING:
    from fairseq_posenc.data.question_pieces import Surface


class Item(NamedTuple):
    """A row that was converted to ids.

    Args:
        sentences: Ids of each sentence with its </s>.
        pieces: Number of pieces before the item was cut.
        cut: Whether the item was too long and was cut.
    """

    sentences: list[list[int]]
    pieces: int
    cut: bool


class Cutter:
    """Convert rows to items.

    Args:
        surface: Tokenizer.
        known: Id of each piece.
        longest: Maximum number of pieces of an item, including special symbols.
        separators: Number of </s> between the sentences of a pair.
    """

    def __init__(self, surface: Surface, known: Mapping[str, int], longest: int, separators: int) -> None:
        self.surface, self.known, self.longest, self.separators = surface, known, longest, separators

    def item(self, row: Row) -> Item:
        """Return the item of a row; while it is too long, drop the last piece of its longer sentence, as BERT does."""
        ids = [[self.known.get(piece[0], UNKNOWN) for piece in self.surface.cut(text)] for text in row.sentences]
        pieces = sum(map(len, ids))
        marks = 2 if len(ids) == 1 else 2 + self.separators
        room = self.longest - marks
        while sum(map(len, ids)) > room:
            max(reversed(ids), key=len).pop()  # shortens the second sentence if both are equally long
        return Item([[*sentence, END] for sentence in ids], pieces + marks, pieces > room)


@dataclass
class SplitWriter:
    """Write the items of a split (see `split_files`). Either all items must have labels, or none of them."""

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
    """Yield a writer of a split's files.

    It writes input0/SPLIT, input1/SPLIT for pairs, and SPLIT.ids. If the rows have labels, it writes label/SPLIT for
    classes and label/SPLIT.label for regression.

    Args:
        size: Size of the dictionary.
        sentences: Number of sentences of a row, 1 or 2.
        labels: Labels of the classes; empty for regression.
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
