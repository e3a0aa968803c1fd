"""Prepared windows of questions and contexts: what --task posenc_squad trains on, and what its answers are read from.

Legend: B batch, T tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from numpy.typing import NDArray

from ..compat.checkpoints import CheckpointError
from .span_items import Window

#: what data-bin-scripts/prepare_spans.py leaves in its folder
RECORD, DICTIONARY = "spans.json", "dict.txt"


class Row(NamedTuple):
    """A window: the number of its question, its part of the context and the column where that begins, the columns of
    the answer's first and last piece (0, <s>: it is not in it)."""

    question: int
    first: int
    length: int
    column: int
    start: int
    end: int

    @property
    def window(self) -> Window:
        return Window(self.first, self.length)


class Question(NamedTuple):
    """A line of SPLIT.questions.jsonl. context: its number. answers: none where it has none. pieces: of the shortest of
    them that can be found; 0 where no window holds one, None where none is known to stand in the context."""

    id: str
    question: str
    context: int
    answers: list[str]
    pieces: int | None = None


class Context(NamedTuple):
    """A line of SPLIT.contexts.jsonl. offsets: of its pieces, without spaces around them."""

    text: str
    offsets: list[tuple[int, int]]


def record(folder: Path) -> dict[str, Any]:
    """Return how the folder was made.

    Raises:
        CheckpointError: it is none of prepare_spans.py.
    """
    try:
        found: dict[str, Any] = json.loads((folder / RECORD).read_text("utf-8"))
        int(found["longest"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder} was not made by prepare_spans.py, or not whole ({error})") from None
    return found


def rows(folder: Path, split: str) -> list[Row]:
    """Return the windows of a split.

    Raises:
        CheckpointError: there is none.
    """
    path = folder / f"{split}.windows.npy"
    try:
        found: NDArray[np.int32] = np.load(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: no windows ({error}); {folder} has {', '.join(splits(folder))}") from None
    return [Row(*map(int, one)) for one in found]


def splits(folder: Path) -> list[str]:
    """Return the splits that were prepared."""
    return list(record(folder)["splits"])


def questions(folder: Path, split: str) -> list[Question]:
    """Return the questions of a split, in the order of their numbers."""
    return [Question(**one) for one in _lines(folder / f"{split}.questions.jsonl")]


def contexts(folder: Path, split: str) -> list[Context]:
    """Return the contexts of a split, in the order of their numbers."""
    found = _lines(folder / f"{split}.contexts.jsonl")
    return [Context(one["text"], [(start, end) for start, end in one["offsets"]]) for one in found]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield json.loads(line)


class Windows(FairseqDataset):
    """A split's windows.

    Args:
        tokens: fairseq's dataset of them. found: what they are of, as many. pad: its id. shuffle: of training.
    """

    def __init__(self, tokens: Any, found: Sequence[Row], pad: int, *, shuffle: bool) -> None:
        if len(tokens) != len(found):
            raise CheckpointError(f"{len(tokens)} windows, and {len(found)} rows of them: prepare the questions again")
        self.tokens, self.rows, self.pad, self.shuffle = tokens, found, pad, shuffle

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"id": index, "tokens": self.tokens[index], "row": self.rows[index]}

    def __len__(self) -> int:
        return len(self.rows)

    def collater(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return fairseq's batch: `src_tokens` [B, T], padded on the right; `start` and `end` [B]."""
        if not samples:
            return {}
        tokens = [sample["tokens"].long() for sample in samples]
        lengths = torch.tensor([len(one) for one in tokens])
        source = data_utils.collate_tokens(tokens, self.pad)
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": {"src_tokens": source, "src_lengths": lengths},
            "start": torch.tensor([sample["row"].start for sample in samples]),
            "end": torch.tensor([sample["row"].end for sample in samples]),
        }

    def num_tokens(self, index: int) -> int:
        return int(self.tokens.sizes[index])

    size = num_tokens

    @property
    def sizes(self) -> Any:
        return self.tokens.sizes

    def ordered_indices(self) -> NDArray[np.int64]:
        """Return them by length, in a drawn order among the same length, so that batches have few pads."""
        found = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))  # noqa: NPY002 - fairseq's
        return found[np.argsort(self.sizes[found], kind="mergesort")]


def load(folder: Path, split: str, dictionary: Dictionary, *, shuffle: bool) -> Windows:
    """Load a split of a folder that prepare_spans.py made.

    Raises:
        CheckpointError: there is no such split, or one of another dictionary.
    """
    found = rows(folder, split)
    made = record(folder)["dictionary"]
    if made != len(dictionary):
        raise CheckpointError(
            f"{folder} was prepared with {made} symbols, {DICTIONARY} has {len(dictionary)}: prepare them again"
        )
    tokens = data_utils.load_indexed_dataset(str(folder / split), dictionary, "mmap")
    return Windows(tokens, found, dictionary.pad(), shuffle=shuffle)
