"""Convert a question to an item with a source and a target.

The source is <s> answer </s> context </s> with segment ids, and the target is question </s>. The format is that
of question generation in the LFHC/GCDF paper (Qu et al. 2021): [CLS] answer [SEP] context [SEP], with the segment ids
0 and 1. By default, the source has at most 512 pieces, the answer 100 and the question 50. <s> and </s> are fairseq's
[CLS] and [SEP]. If the data have no answers, the source is <s> sentence </s>.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from . import sentences
from .problems import Problem, new_problem
from .reading import Question

if TYPE_CHECKING:
    from fairseq_posenc.data.question_pieces import Piece, Surface

BEGIN, END, UNKNOWN = 0, 2, 3


@dataclass(frozen=True)
class Shape:
    """Hold the maximum lengths of an item, and how its context is chosen.

    Args:
        longest: Maximum number of pieces of a source, including <s> and </s>.
        longest_answer: Maximum number of pieces of an answer.
        longest_question: Maximum number of pieces of a question.
        context: `paragraph` uses the whole paragraph, `sentence` uses only the answer's sentence.
        bad: How bad questions are handled (one of `problems.HOW`).
    """

    longest: int
    longest_answer: int
    longest_question: int
    context: str
    language: str
    bad: str


class Cut(NamedTuple):
    """Hold a question, its answer and its context, split into pieces.

    Args:
        answer: Pieces of the answer, or None if the file has no answers.
        windowed: Whether the context was too long, so that only a part of it is kept.
        sentence: Text of the answer's sentence, or of the whole source if there is no answer.
    """

    answer: list[str] | None
    context: list[str]
    question: list[str]
    windowed: bool
    sentence: str


class Ids(NamedTuple):
    """Hold the ids of an item, which consists of a source and a target.

    Args:
        unknown: Words of the source that the dictionary lacks, in the order of their ids, which follow the ids of the
            dictionary.
    """

    source: list[int]
    segments: list[int]
    target: list[int]
    unknown: list[str]


class Cutter:
    """Split questions into pieces.

    Args:
        surface: Tokenizer.
        shape: Limits of answers, contexts and questions.
    """

    def __init__(self, surface: Surface, shape: Shape) -> None:
        self.surface, self.shape = surface, shape
        self._context = lru_cache(maxsize=64)(surface.cut)  # the questions of a context are consecutive

    def cut(self, split: str, question: Question) -> tuple[Cut | None, list[Problem]]:
        """Return the pieces of a checked question (None if it is left out) and its problems."""
        shape = self.shape
        start, end = _places(question)
        first, last = 0, len(question.context)
        sentence = question.context
        if question.answers:
            around = sentences.around(question.context, start, end, shape.language)
            sentence = question.context[slice(*around)]
            first, last = around if shape.context == "sentence" else (first, last)
        question_pieces = [piece.name for piece in self.surface.cut(question.text)]
        answer = [piece.name for piece in self.surface.cut(question.answers[0].text)] if question.answers else None
        parts: dict[str, Sequence[object]] = {"question": question_pieces, "context": self._context(question.context)}
        if problem := _nothing(split, question, parts if answer is None else {**parts, "answer": answer}, shape.bad):
            return None, [problem]
        problems = list(self._long(split, question, answer or [], question_pieces))
        if any(problem.done != "repaired" for problem in problems):
            return None, problems
        answer = answer if answer is None else answer[: shape.longest_answer]
        context = [piece for piece in self._context(question.context) if piece.end > first and piece.start < last]
        window = self._window(context, 0 if answer is None else len(answer) + 1, start, end)
        names, target = [piece.name for piece in context[window]], question_pieces[: shape.longest_question]
        return Cut(answer, names, target, len(names) < len(context), sentence), problems

    def _long(self, split: str, question: Question, answer: list[str], target: list[str]) -> list[Problem]:
        where, name, how = question.where, question.id, self.shape.bad
        limits = {"answer": (answer, self.shape.longest_answer), "question": (target, self.shape.longest_question)}
        return [
            new_problem(split, where, name, f"long {what}", f"{len(pieces)} pieces exceed the limit of {most}", how)
            for what, (pieces, most) in limits.items()
            if len(pieces) > most
        ]

    def _window(self, context: Sequence[Piece], taken: int, start: int, end: int) -> slice:
        """Return the part of the context that fits, with the answer in its middle. A long answer is cut at its end."""
        room = self.shape.longest - 2 - taken
        inside = [number for number, piece in enumerate(context) if piece.end > start and piece.start < end]
        first, last = (inside[0], inside[-1]) if inside else (0, 0)
        begin = min(first, (first + last + 1 - room) // 2) if last - first < room else first
        begin = max(0, min(begin, len(context) - room))
        return slice(begin, begin + room)


def _nothing(split: str, question: Question, parts: Mapping[str, Sequence[object]], how: str) -> Problem | None:
    """Return a problem if an answer, context or question has no pieces (for example, only zero-width characters)."""
    empty = next((name for name, pieces in parts.items() if not pieces), None)
    if empty is None:
        return None
    return new_problem(split, question.where, question.id, f"empty {empty}", f"the {empty} has no pieces", how)


def _places(question: Question) -> tuple[int, int]:
    if not question.answers:
        return 0, 0
    text, start = question.answers[0]
    return start, start + len(text)


def numbered(cut: Cut, known: Mapping[str, int], size: int) -> Ids:
    """Return the ids of an item.

    Words of the source that the dictionary lacks get ids from `size` on, and the same ids in the target, so that they
    can be copied. Other unknown words of the target become <unk>.
    """
    unknown: dict[str, int] = {}

    def ids(names: Sequence[str]) -> list[int]:
        return [known[name] if name in known else unknown.setdefault(name, size + len(unknown)) for name in names]

    first = [BEGIN, *([*ids(cut.answer), END] if cut.answer is not None else [])]
    second = [*ids(cut.context), END]
    target = [known.get(name, unknown.get(name, UNKNOWN)) for name in cut.question]
    return Ids([*first, *second], [0] * len(first) + [1] * len(second), [*target, END], [*unknown])


class Item(NamedTuple):
    """Hold the hash of an item's source, and the fields of the item's line in surface.jsonl.

    Args:
        source: Hash of the pieces that the model reads.
        facts: Fields that do not depend on other items.
    """

    source: bytes
    facts: dict[str, Any]


def described(question: Question, cut: Cut, ids: Ids) -> Item:
    """Return the hash of an item's source, and the text of its question, answer and sentence."""
    # The hash covers only the pieces, because the model does not read the answer's offset or the words that were cut.
    source = hashlib.sha256(repr((ids.source, ids.unknown)).encode()).digest()
    answer = {"answer": question.answers[0].text} if question.answers else {}
    facts = {"id": question.id, "question": question.text, **answer, "sentence": cut.sentence, "unknown": ids.unknown}
    return Item(source, facts)


def grouped(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return the lines of surface.jsonl; questions with the same source become references of each other."""
    questions_by_source: dict[bytes, list[str]] = {}
    for item in items:
        questions_by_source.setdefault(item.source, []).append(item.facts["question"])
    place = {source: number for number, source in enumerate(questions_by_source)}
    references = {source: list(dict.fromkeys(texts)) for source, texts in questions_by_source.items()}
    return [
        {"id": facts["id"], "source": place[source], "references": references[source], **facts}
        for source, facts in items
    ]
