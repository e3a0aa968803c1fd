"""Questions as they are given to questions that can be made items of, with what is wrong told."""

from __future__ import annotations

from .problems import Problem, made
from .reading import Answer, Question


def checked(
    split: str, found: list[Question], how: str, *, answers: bool, unanswerable: bool = False
) -> tuple[list[Question], list[Problem]]:
    """Those that are left, each with its one answer, and what is wrong.

    The answer is the first that stands at its offset.

    Args:
        how: of `problems.HOW`; with refuse, as with skip. answers: the file has some. unanswerable: questions that the
            file says to have none (SQuAD 2.0) are kept, without any.
    """
    kept, problems = list[Question](), list[Problem]()
    for one in found:
        without = unanswerable and one.impossible
        told = _empty(split, one, how) or (_unanswered(split, one, how) if answers and not without else None)
        if told:
            problems.append(told)
            continue
        if without or not answers:
            kept.append(one._replace(answers=()) if without else one)
            continue
        good = list[Answer]()
        for answer in one.answers:
            placed, wrong = _placed(split, one, answer, how)
            good += [placed] if placed else []
            problems += [wrong] if wrong else []
        if good:
            kept.append(one._replace(answers=(good[0],)))
        else:
            problems.append(made(split, one.where, one.id, "no answer", "none of its answers can be used", how))
    return kept, problems


def _empty(split: str, one: Question, how: str) -> Problem | None:
    for kind, text in (("empty context", one.context), ("empty question", one.text)):
        if not text.strip():
            return made(split, one.where, one.id, kind, f"the {kind.split()[1]} is {text!r}", how)
    return None


def _unanswered(split: str, one: Question, how: str) -> Problem | None:
    if one.impossible:
        return made(split, one.where, one.id, "unanswerable", "is_impossible is true", how)
    if not one.answers:
        return made(split, one.where, one.id, "no answer", "it has no answers", how)
    return None


def _placed(split: str, one: Question, answer: Answer, how: str) -> tuple[Answer | None, Problem | None]:
    """The answer where it stands, and what was wrong."""
    text, start = answer
    if not text.strip():
        return None, made(split, one.where, one.id, "empty answer", f"the answer is {text!r}", how)
    if start >= 0 and one.context.startswith(text, start):
        return answer, None
    place = nearest(one.context, text, start)
    there = one.context[max(0, start) : max(0, start) + len(text)]
    elsewhere = "occurs nowhere" if place is None else f"occurs at {place}"
    told = made(split, one.where, one.id, "misplaced answer", f"{text!r} at {start}: {there!r}; it {elsewhere}", how)
    if how == "repair" and place is None:
        return None, told._replace(done="left out")
    return (Answer(text, place) if how == "repair" and place is not None else None), told


def nearest(context: str, text: str, start: int) -> int | None:
    """The occurrence that begins nearest to `start`, of two the earlier; None where there is none."""
    places, at = list[int](), context.find(text)
    while at >= 0:
        places.append(at)
        at = context.find(text, at + 1)
    return min(places, key=lambda place: abs(place - start)) if places else None
