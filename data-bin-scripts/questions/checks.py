"""Check the questions of a file, and report what is wrong with them."""

from __future__ import annotations

from .problems import Problem, made
from .reading import Answer, Question


def checked(
    split: str, found: list[Question], how: str, *, answers: bool, unanswerable: bool = False
) -> tuple[list[Question], list[Problem]]:
    """Return the questions that are kept, each with one answer, and the problems.

    The answer is the first one that is usable: it occurs at its offset, or was repaired.

    Args:
        how: One of `problems.HOW`; refuse returns the same questions as skip.
        answers: The file has answers.
        unanswerable: Keep the questions that the file marks as unanswerable (SQuAD 2.0), without an answer.
    """
    kept, problems = list[Question](), list[Problem]()

    def report(one: Question, kind: str, what: str) -> Problem:
        problems.append(made(split, one.where, one.id, kind, what, how))
        return problems[-1]

    for one in found:
        without = unanswerable and one.impossible
        if wrong := _wrong(one, answered=answers and not without):
            report(one, *wrong)
            continue
        if without or not answers:
            kept.append(one._replace(answers=()) if without else one)
            continue
        good = list[Answer]()
        for answer in one.answers:
            place, wrong = _place(one, answer)
            done = report(one, *wrong).done if wrong else "fine"
            if place is not None and done in ("fine", "repaired"):
                good.append(Answer(answer.text, place))
            elif done == "repaired":
                problems[-1] = problems[-1]._replace(done="left out")
        if good:
            kept.append(one._replace(answers=(good[0],)))
        else:
            report(one, "no answer", "none of its answers can be used")
    return kept, problems


def _wrong(one: Question, *, answered: bool) -> tuple[str, str] | None:
    """Return the kind and the description of what is wrong with a question, or None."""
    for kind, text in (("context", one.context), ("question", one.text)):
        if not text.strip():
            return f"empty {kind}", f"the {kind} is {text!r}"
    if answered and one.impossible:
        return "unanswerable", "is_impossible is true"
    if answered and not one.answers:
        return "no answer", "it has no answers"
    return None


def _place(one: Question, answer: Answer) -> tuple[int | None, tuple[str, str] | None]:
    """Return the offset of an answer, and the kind and the description of what is wrong with it."""
    text, start = answer
    if not text.strip():
        return None, ("empty answer", f"the answer is {text!r}")
    if start >= 0 and one.context.startswith(text, start):
        return start, None
    place = nearest(one.context, text, start)
    there = one.context[max(0, start) : max(0, start) + len(text)]
    elsewhere = "occurs nowhere" if place is None else f"occurs at {place}"
    return place, ("misplaced answer", f"{text!r} at {start}: {there!r}; it {elsewhere}")


def nearest(context: str, text: str, start: int) -> int | None:
    """Return the offset of the occurrence nearest to `start` (the earlier of two), or None if there is none."""
    places, at = list[int](), context.find(text)
    while at >= 0:
        places.append(at)
        at = context.find(text, at + 1)
    return min(places, key=lambda place: abs(place - start)) if places else None
