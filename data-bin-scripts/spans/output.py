"""The files of a split: windows as fairseq reads them, and what they are of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from corpora.binary import ShardWriter, dtype_for
from questions.reading import Question

#: of a window: the question's number, its first piece of the context and how many, their column, the answer's columns
FIELDS = ("question", "first", "length", "column", "start", "end")


class SplitWriter:
    """SPLIT.{bin,idx}, SPLIT.windows.npy, SPLIT.questions.jsonl and SPLIT.contexts.jsonl.

    Args:
        size: of the dictionary.
    """

    def __init__(self, folder: Path, split: str, size: int) -> None:
        self._stack, self._prefix = ExitStack(), folder / split
        self._dtype, self._rows = dtype_for(size), list[tuple[int, ...]]()
        self._tokens = self._stack.enter_context(ShardWriter(lambda end: folder / f"{split}.{end}", self._dtype))
        self._questions = self._text("questions")
        self._contexts = self._text("contexts")

    def _text(self, name: str) -> Any:
        path = self._prefix.with_name(f"{self._prefix.name}.{name}.jsonl")
        return self._stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))

    def question(self, **facts: Any) -> None:
        """The next one."""
        self._questions.write(json.dumps(facts, ensure_ascii=False) + "\n")

    def context(self, text: str, offsets: Sequence[tuple[int, int]]) -> None:
        """The next one, and where its pieces lie."""
        self._contexts.write(json.dumps({"text": text, "offsets": offsets}, ensure_ascii=False) + "\n")

    def window(self, tokens: list[int], *row: int) -> None:
        """Args:
        row: of `FIELDS`.
        """
        self._tokens.add(np.array(tokens, self._dtype).tobytes(), np.array([len(tokens)], np.int32).tobytes())
        self._rows.append(row)

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if error is None:
            rows = np.array(self._rows, np.int32).reshape(-1, len(FIELDS))
            np.save(self._prefix.with_name(f"{self._prefix.name}.windows.npy"), rows)


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
