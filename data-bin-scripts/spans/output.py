"""The files of a split: windows as fairseq reads them, and what they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from corpora.binary import ShardWriter, dtype_for, shard
from questions.output import json_lines
from questions.reading import Question

#: of a window: the question's number, its first piece of the context and how many, their column, the answer's columns
FIELDS = ("question", "first", "length", "column", "start", "end")


@dataclass
class SplitWriter:
    """Takes what is in a split (see `split_files`); the questions and the contexts are rows of JSON."""

    tokens: ShardWriter
    questions: list[str] = field(default_factory=list)
    contexts: list[str] = field(default_factory=list)
    rows: list[tuple[int, ...]] = field(default_factory=list)

    def question(self, **facts: Any) -> None:
        """Add the next question."""
        self.questions.append(json_lines([facts]))

    def context(self, text: str, offsets: Sequence[tuple[int, int]]) -> None:
        """Add the next context, and where its pieces lie."""
        self.contexts.append(json_lines([{"text": text, "offsets": offsets}]))

    def window(self, tokens: list[int], *row: int) -> None:
        """Add the next window with its `FIELDS`."""
        self.tokens.put(tokens)
        self.rows.append(row)


@contextmanager
def split_files(folder: Path, split: str, size: int) -> Iterator[SplitWriter]:
    """Yield the writer of SPLIT.{bin,idx}, SPLIT.windows.npy, SPLIT.questions.jsonl and SPLIT.contexts.jsonl.

    Args:
        size: That of the dictionary.
    """
    with shard(folder / split, dtype_for(size)) as tokens:
        writer = SplitWriter(tokens)
        yield writer
    np.save(folder / f"{split}.windows.npy", np.array(writer.rows, np.int32).reshape(-1, len(FIELDS)))
    for name, lines in (("questions", writer.questions), ("contexts", writer.contexts)):
        (folder / f"{split}.{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def squad_format(asked: Iterable[Question], version: str) -> dict[str, Any]:
    """Questions as SQuAD's files have them: what its own scripts read beside predictions."""
    data = []
    for _, article in groupby(asked, key=lambda one: one.article):
        parts = []
        for context, some in groupby(article, key=lambda one: one.context):
            parts.append({"context": context, "qas": [_asked(one) for one in some]})
        data.append({"paragraphs": parts})
    return {"version": version, "data": data}


def _asked(one: Question) -> dict[str, Any]:
    answers = [{"text": answer.text, "answer_start": answer.start} for answer in one.answers]
    return {"id": one.id, "question": one.text, "answers": answers, "is_impossible": one.impossible}
