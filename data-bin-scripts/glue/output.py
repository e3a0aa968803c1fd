"""Write the files of a prepared task for fairseq's sentence prediction.

A single sentence becomes `<s> a </s>`. A pair becomes `<s> a </s></s> b </s>` (RoBERTa) or `<s> a </s> b </s>` (BERT).
The task adds <s> (--init-token) and the separators before the second sentence (--separator-token), so the files contain
neither.
All lengths include <s> and all separators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from corpora.binary import dtype_for, shard
from corpora.pieces import END, SPECIALS, UNKNOWN


class Example(NamedTuple):
    """Hold a row that was converted to ids.

    Args:
        name: Name of the row in SPLIT.ids.
        sentences: Ids of each sentence, without special symbols.
        label: Label, or None if the file has none.
    """

    name: str
    sentences: list[list[int]]
    label: str | None


@dataclass(frozen=True)
class Layout:
    """Hold the properties that all splits of a folder share.

    Args:
        size: Size of the dictionary.
        sentences: Number of sentences of a row, 1 or 2.
        labels: Labels of the classes; empty for regression.
        longest: Maximum number of pieces of an item, including special symbols.
        marks: Number of special symbols of an item.
    """

    size: int
    sentences: int
    labels: tuple[str, ...]
    longest: int
    marks: int


def write_split(folder: Path, split: str, examples: Iterable[Example], layout: Layout) -> dict[str, Any]:
    """Write the files of a split, and return its counts.

    The files are input0/SPLIT, input1/SPLIT for pairs, and SPLIT.ids. If all examples have labels, the function also
    writes label/SPLIT for classes, or label/SPLIT.label for regression.
    """
    tally, longest = Counter[str](items=0, cut=0, pieces=0, unknown=0), 0
    names, labels = list[str](), list[str | None]()
    with ExitStack() as stack:
        files = [folder / f"input{number}" / split for number in range(layout.sentences)]
        writers = [stack.enter_context(shard(file, dtype_for(layout.size))) for file in files]
        for name, sentences, label in examples:
            pieces = sum(map(len, sentences)) + layout.marks
            cut(sentences, layout.longest - layout.marks)
            for writer, sentence in zip(writers, sentences, strict=True):
                writer.put([*sentence, END])
            unknown = sum(sentence.count(UNKNOWN) for sentence in sentences)
            tally.update(items=1, cut=int(pieces > layout.longest), pieces=pieces, unknown=unknown)
            longest = max(longest, min(pieces, layout.longest))
            names.append(name)
            labels.append(label)
    _write_lines(folder / f"{split}.ids", names)
    labelled = [label for label in labels if label is not None]
    if len(labelled) == len(names):
        _write_labels(folder / "label", split, labelled, layout.labels)
    return {**tally, "labelled": len(labelled) == len(names), "longest": longest}


def cut(sentences: list[list[int]], room: int) -> None:
    """While an item is too long, drop the last piece of its longer sentence, as BERT does."""
    while sum(map(len, sentences)) > room:
        max(reversed(sentences), key=len).pop()  # shortens the second sentence if both are equally long


def _write_labels(folder: Path, split: str, labels: list[str], classes: tuple[str, ...]) -> None:
    folder.mkdir(exist_ok=True)
    if not classes:
        _write_lines(folder / f"{split}.label", labels)
        return
    with shard(folder / split, dtype_for(len(classes))) as writer:
        for label in labels:
            writer.put([len(SPECIALS) + classes.index(label), END])


def write_dictionaries(folder: Path, content: str, layout: Layout) -> None:
    """Write the dictionary of each input (first or second sentence), and the dictionary of the classes."""
    for number in range(layout.sentences):
        (folder / f"input{number}" / "dict.txt").write_text(content, encoding="utf-8")
    if layout.labels:
        _write_lines(folder / "label" / "dict.txt", [f"{label} 1" for label in layout.labels])


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
