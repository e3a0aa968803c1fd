"""Convert a question to an item with a source and a target.

The source is <s> answer </s> context </s> with segments, and the target is question </s>. This follows the question
generation of the LFHC/GCDF paper (Qu et al. 2021): [CLS] answer [SEP] context [SEP] with segments 0 and 1. The source
has at most 512 pieces, the answer 100 and the question 50. <s> and </s> are fairseq's [CLS] and [SEP]. Without answers,
the source is <s> sentence </s>.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from . import sentences
from .problems import Problem, made
from .reading import Question

if TYPE_CHECKING:
    from fairseq_posenc.data.question_pieces import Piece, Surface

BEGIN, END, UNKNOWN = 0, 2, 3


@dataclass(frozen=True)
class Shape:
    """How a question is cut into its item.

    Args:
        longest: Maximum number of pieces of a source, including <s> and </s>.
        longest_answer: Maximum number of pieces of an answer.
        longest_question: Maximum number of pieces of a question.
        context: Use the whole paragraph, or only the answer's sentence.
        bad: One of `problems.HOW`.
    """

    longest: int
    longest_answer: int
    longest_question: int
    context: str
    language: str
    bad: str


class Cut(NamedTuple):
    """The names of a question's pieces.

    Args:
        answer: Pieces of the answer, or None if the file has no answers.
        windowed: The context was cut to a window.
        sentence: Text of the answer's sentence, or of the whole source if there is no answer.
    """

    answer: list[str] | None
    context: list[str]
    question: list[str]
    windowed: bool
    sentence: str


class Ids(NamedTuple):
    """The ids of an item.

    Args:
        unknown: Words of the source that the dictionary lacks, in the order of their ids, which follow the
            dictionary's.
    """

    source: list[int]
    segments: list[int]
    target: list[int]
    unknown: list[str]


class Cutter:
    """Cut questions into pieces.

    Args:
        surface: Tokenizer.
        shape: Limits of the parts.
    """

    def __init__(self, surface: Surface, shape: Shape) -> None:
        self.surface, self.shape = surface, shape
        self._context = lru_cache(maxsize=64)(surface.cut)  # the questions of a context are consecutive

    def cut(self, split: str, one: Question) -> tuple[Cut | None, list[Problem]]:
        """Return the pieces of a checked question, or None if it is left out, and its problems."""
        shape = self.shape
        start, end = _places(one)
        first, last = 0, len(one.context)
        sentence = one.context
        if one.answers:
            around = sentences.around(one.context, start, end, shape.language)
            sentence = one.context[slice(*around)]
            first, last = around if shape.context == "sentence" else (first, last)
        question = [piece.name for piece in self.surface.cut(one.text)]
        answer = [piece.name for piece in self.surface.cut(one.answers[0].text)] if one.answers else None
        pieces: dict[str, Sequence[object]] = {"question": question, "context": self._context(one.context)}
        if told := _nothing(split, one, pieces if answer is None else {**pieces, "answer": answer}, shape.bad):
            return None, [told]
        problems = list(self._long(split, one, answer or [], question))
        if any(problem.done != "repaired" for problem in problems):
            return None, problems
        answer = answer if answer is None else answer[: shape.longest_answer]
        context = [piece for piece in self._context(one.context) if piece.end > first and piece.start < last]
        window = self._window(context, 0 if answer is None else len(answer) + 1, start, end)
        names = [piece.name for piece in context[window]]
        return Cut(answer, names, question[: shape.longest_question], len(names) < len(context), sentence), problems

    def _long(self, split: str, one: Question, answer: list[str], question: list[str]) -> list[Problem]:
        limits = {"answer": (answer, self.shape.longest_answer), "question": (question, self.shape.longest_question)}
        return [
            made(split, one.where, one.id, f"long {what}", f"{len(pieces)} pieces, {most} are allowed", self.shape.bad)
            for what, (pieces, most) in limits.items()
            if len(pieces) > most
        ]

    def _window(self, context: Sequence[Piece], taken: int, start: int, end: int) -> slice:
        """Return the part of the context that fits, with the answer in the middle; a long answer is cut at its end."""
        room = self.shape.longest - 2 - taken
        inside = [number for number, piece in enumerate(context) if piece.end > start and piece.start < end]
        first, last = (inside[0], inside[-1]) if inside else (0, 0)
        begin = min(first, (first + last + 1 - room) // 2) if last - first < room else first
        begin = max(0, min(begin, len(context) - room))
        return slice(begin, begin + room)


def _nothing(split: str, one: Question, parts: Mapping[str, Sequence[object]], how: str) -> Problem | None:
    """Return a problem if the tokenizer leaves no piece of a part, as for zero-width characters."""
    empty = next((what for what, pieces in parts.items() if not pieces), None)
    return made(split, one.where, one.id, f"empty {empty}", f"the {empty} has no pieces", how) if empty else None


def _places(one: Question) -> tuple[int, int]:
    if not one.answers:
        return 0, 0
    text, start = one.answers[0]
    return start, start + len(text)


def numbered(cut: Cut, known: Mapping[str, int], size: int) -> Ids:
    """Return the ids of an item.

    Words of the source that the dictionary lacks get ids from `size` on. The target shares these ids, so that it can
    copy the words; its other unknown words become <unk>.
    """
    unknown: dict[str, int] = {}

    def ids(names: Sequence[str]) -> list[int]:
        return [known[name] if name in known else unknown.setdefault(name, size + len(unknown)) for name in names]

    first = [BEGIN, *([*ids(cut.answer), END] if cut.answer is not None else [])]
    second = [*ids(cut.context), END]
    target = [known.get(name, unknown.get(name, UNKNOWN)) for name in cut.question]
    return Ids([*first, *second], [0] * len(first) + [1] * len(second), [*target, END], [*unknown])


class Item(NamedTuple):
    """An item's identity and description.

    Args:
        source: Hash of what the model sees.
        facts: Fields of the line in surface.jsonl that do not depend on other items.
    """

    source: bytes
    facts: dict[str, Any]


def described(one: Question, cut: Cut, ids: Ids) -> Item:
    """Return the hash of an item's source, and the text of its question, answer and sentence."""
    # The hash covers the pieces only; the model sees neither the words around them nor the answer's offset.
    seen = hashlib.sha256(repr((ids.source, ids.unknown)).encode()).digest()
    answer = {"answer": one.answers[0].text} if one.answers else {}
    facts = {"id": one.id, "question": one.text, **answer, "sentence": cut.sentence, "unknown": ids.unknown}
    return Item(seen, facts)


def grouped(found: Sequence[Item]) -> list[dict[str, Any]]:
    """Return the lines of surface.jsonl; questions with the same source become references of each other."""
    asked: dict[bytes, list[str]] = {}
    for one in found:
        asked.setdefault(one.source, []).append(one.facts["question"])
    place = {source: number for number, source in enumerate(asked)}
    references = {source: list(dict.fromkeys(texts)) for source, texts in asked.items()}
    return [
        {"id": facts["id"], "source": place[source], "references": references[source], **facts}
        for source, facts in found
    ]
