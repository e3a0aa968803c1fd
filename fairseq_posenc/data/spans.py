"""Load prepared windows (a question with a part of its context) as a data set, for training and for finding answers.

Legend: B batch, T tokens.
"""

from __future__ import annotations

import json
import tokenize
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from numpy.typing import NDArray

from ..compat.checkpoints import CheckpointError
from .span_items import Window

#: files that data-bin-scripts/prepare_spans.py writes into its folder
RECORD, DICTIONARY = "spans.json", "dict.txt"

Item = TypeVar("Item")


class Row(NamedTuple):
    """Describe a prepared window, which holds a question and a part of its context.

    question: Number of the question. first: Number of the part's first piece in the context. length: Number of pieces
    of the part. column: Position in the window where the part begins. start, end: Positions of the answer's first and
    last piece, or 0 (the position of <s>) if the window does not contain it.
    """

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
    """Hold a line of SPLIT.questions.jsonl, which describes a question.

    context: Number of the question's context. answers: Texts of the answers; empty if the question has no answer.
    pieces: Number of pieces of the shortest answer in any window; 0 if no window contains an answer, and None if no
    answer is known to occur in the context.
    """

    id: str
    question: str
    context: int
    answers: list[str]
    pieces: int | None = None


class Context(NamedTuple):
    """Hold a line of SPLIT.contexts.jsonl, which describes a context.

    offsets: Start and end of each piece in `text`, without surrounding spaces.
    """

    text: str
    offsets: list[tuple[int, int]]


def record(folder: Path) -> dict[str, Any]:
    """Return the contents of spans.json, which record how the folder was prepared.

    Raises:
        CheckpointError: The folder was not written by prepare_spans.py.
    """
    try:
        contents: dict[str, Any] = json.loads((folder / RECORD).read_text("utf-8"))
        int(contents["longest"]), contents["splits"].keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        problem = f"{folder} is not a complete output folder of prepare_spans.py: {RECORD} cannot be read ({error!r})"
        raise CheckpointError(f"{problem}. Run prepare_spans.py again, or give another folder.") from None
    return contents


def rows(folder: Path, split: str) -> list[Row]:
    """Return the windows of a split.

    Raises:
        CheckpointError: The split does not exist, or its file cannot be read.
    """
    path = folder / f"{split}.windows.npy"
    try:
        # a memory map, because an array would first allocate what the header of a damaged file claims
        table: NDArray[np.int32] = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, OverflowError, SyntaxError, tokenize.TokenError) as error:
        known = ", ".join(splits(folder))
        raise CheckpointError(
            f"{path}: cannot read the windows ({error}). Choose one of the splits: {known}."
        ) from None
    if table.shape[1:] != (len(Row._fields),) or table.dtype.kind != "i":
        problem = f"{path}: the windows must be rows of {len(Row._fields)} integers"
        actual = f"but the file has an array of shape {table.shape} and type {table.dtype}"
        raise CheckpointError(f"{problem}, {actual}. Prepare the questions again.")
    return [Row(*row) for row in table.tolist()]


def splits(folder: Path) -> list[str]:
    """Return the names of the prepared splits."""
    return list(record(folder)["splits"])


def questions(folder: Path, split: str) -> list[Question]:
    """Return the questions of a split, in the order of their numbers.

    Raises:
        CheckpointError: A line is not a question; the message names the line.
    """
    return _items(folder / f"{split}.questions.jsonl", lambda line: Question(**line))


def contexts(folder: Path, split: str) -> list[Context]:
    """Return the contexts of a split, in the order of their numbers.

    Raises:
        CheckpointError: A line is not a context; the message names the line.
    """
    return _items(
        folder / f"{split}.contexts.jsonl",
        lambda line: Context(line["text"], [(start, end) for start, end in line["offsets"]]),
    )


def _items(path: Path, item: Callable[[dict[str, Any]], Item]) -> list[Item]:
    """Return the item that each line of a file describes in JSON."""
    items = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                items.append(item(json.loads(line)))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise CheckpointError(
                    f"{path}:{number}: cannot read the line ({error!r}). Prepare the questions again."
                ) from None
    return items


class Windows(FairseqDataset):
    """Provide the windows of a split as a data set.

    Args:
        tokens: fairseq's data set of the windows' tokens.
        rows: Description of each window.
        pad: Id of the padding symbol.
        shuffle: Whether to shuffle windows of the same length, for training.
    """

    def __init__(self, tokens: Any, rows: Sequence[Row], pad: int, *, shuffle: bool) -> None:
        if len(tokens) != len(rows):
            raise CheckpointError(
                f"The folder has tokens for {len(tokens)} windows, but descriptions for {len(rows)} windows. "
                "Prepare the questions again."
            )
        self.tokens, self.rows, self.pad, self.shuffle = tokens, rows, pad, shuffle

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"id": index, "tokens": self.tokens[index], "row": self.rows[index]}

    def __len__(self) -> int:
        return len(self.rows)

    def collater(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return fairseq's batch: `src_tokens` [B, T], padded on the right; `start` and `end` [B]."""
        if not samples:
            return {}
        tokens = [sample["tokens"].long() for sample in samples]
        lengths = torch.tensor([len(ids) for ids in tokens])
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
        """Return indices sorted by length, so that batches have little padding; `shuffle` shuffles equal lengths."""
        indices = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))  # noqa: NPY002 - fairseq's
        return indices[np.argsort(self.sizes[indices], kind="mergesort")]


def load(folder: Path, split: str, dictionary: Dictionary, *, shuffle: bool) -> Windows:
    """Load a split from a folder that prepare_spans.py wrote.

    Raises:
        CheckpointError: The split does not exist, or was prepared with another dictionary.
    """
    windows = rows(folder, split)
    size = record(folder).get("dictionary")
    if size != len(dictionary):
        sizes = f"{size} symbols, but {DICTIONARY} has {len(dictionary)} symbols"
        raise CheckpointError(f"{folder} was prepared with a dictionary of {sizes}. Prepare the questions again.")
    tokens = data_utils.load_indexed_dataset(str(folder / split), dictionary, "mmap")
    return Windows(tokens, windows, dictionary.pad(), shuffle=shuffle)
