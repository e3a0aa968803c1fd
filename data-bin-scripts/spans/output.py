"""Convert questions and contexts to windows, and write the files of a split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from corpora.binary import ShardWriter, dtype_for, shard
from questions.output import json_lines
from questions.reading import Answer, Question

if TYPE_CHECKING:
    from fairseq_posenc.data.span_items import Item, Shape
    from fairseq_posenc.data.span_pieces import Pieces

#: fields of a window: the number of its question, its first piece of the context, its number of context pieces, the
#: column of the first one, and the columns of the answer's first and last piece
FIELDS = ("question", "first", "length", "column", "start", "end")


class Cutter:
    """Convert questions to windows.

    Args:
        pieces: Tokenizer with the model's vocabulary.
        shape: Limits of the windows, from fairseq_posenc/data/span_items.py.
    """

    def __init__(self, pieces: Pieces, shape: Shape) -> None:
        self.pieces, self.shape = pieces, shape
        self._context = lru_cache(maxsize=64)(pieces.cut)  # the questions of a context are consecutive

    def offsets(self, context: str) -> list[tuple[int, int]]:
        return [(piece.start, piece.end) for piece in self._context(context)]

    def items(self, question: Question) -> tuple[list[Item], int, str | None]:
        """Return the windows of a question, the question's number of pieces, and the text that the answer's pieces
        cover.
        """
        from fairseq_posenc.data.span_items import items, place

        context, question_ids = self._context(question.context), [piece.id for piece in self.pieces.cut(question.text)]
        if not question.answers:
            return items(question_ids, context, None, self.shape), len(question_ids), None
        text, start = question.answers[0]
        answer = place(context, start, start + len(text))
        back = question.context[context[answer[0]].start : context[answer[1]].end] if answer else None
        return items(question_ids, context, answer, self.shape), len(question_ids), back

    def shortest(self, context: str, answers: Iterable[Answer], windows: Sequence[Item]) -> int | None:
        """Return the number of pieces of the shortest answer that lies completely inside one window.

        If several windows hold the first piece of an answer, only the window with the most context around this piece
        counts. The result is 0 if no answer lies completely inside one window, and None if no answer occurs at its
        offset.
        """
        from fairseq_posenc.data.span_items import owner, place

        pieces, lengths = self._context(context), list[int]()
        spans = [item.window for item in windows]
        for text, start in answers:
            if not text.strip() or start < 0 or not context.startswith(text, start):
                continue
            at = place(pieces, start, start + len(text))
            window = spans[owner(spans, at[0])] if at else None
            lengths.append(at[1] - at[0] + 1 if at and window and at[1] < window.first + window.length else 0)
        return min(filter(None, lengths), default=0) if lengths else None


@dataclass
class SplitWriter:
    """Write the content of a split (see `split_files`); questions and contexts become rows of JSON."""

    tokens: ShardWriter
    questions: list[str] = field(default_factory=list)
    contexts: list[str] = field(default_factory=list)
    rows: list[tuple[int, ...]] = field(default_factory=list)

    def question(self, **facts: Any) -> None:
        """Write the next question."""
        self.questions.append(json_lines([facts]))

    def context(self, text: str, offsets: Sequence[tuple[int, int]]) -> None:
        """Write the next context, and the offsets of its pieces."""
        self.contexts.append(json_lines([{"text": text, "offsets": offsets}]))

    def window(self, tokens: list[int], *row: int) -> None:
        """Write the next window with its `FIELDS`."""
        self.tokens.put(tokens)
        self.rows.append(row)


@contextmanager
def split_files(folder: Path, split: str, size: int) -> Iterator[SplitWriter]:
    """Yield the writer of a split: its .bin, .idx, .windows.npy, .questions.jsonl and .contexts.jsonl files.

    Args:
        size: Size of the dictionary.
    """
    with shard(folder / split, dtype_for(size)) as tokens:
        writer = SplitWriter(tokens)
        yield writer
    np.save(folder / f"{split}.windows.npy", np.array(writer.rows, np.int32).reshape(-1, len(FIELDS)))
    for name, lines in (("questions", writer.questions), ("contexts", writer.contexts)):
        (folder / f"{split}.{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def squad_format(questions: Iterable[Question], version: str) -> dict[str, Any]:
    """Return questions in SQuAD's format, from which SQuAD's own scripts read the reference answers."""
    data = []
    for _, article in groupby(questions, key=lambda question: question.article):
        parts = []
        for context, same_context in groupby(article, key=lambda question: question.context):
            parts.append({"context": context, "qas": [_entry(question) for question in same_context]})
        data.append({"paragraphs": parts})
    return {"version": version, "data": data}


def _entry(question: Question) -> dict[str, Any]:
    answers = [{"text": answer.text, "answer_start": answer.start} for answer in question.answers]
    return {"id": question.id, "question": question.text, "answers": answers, "is_impossible": question.impossible}
