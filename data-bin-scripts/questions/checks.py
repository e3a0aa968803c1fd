"""Check the questions of a file, and report what is wrong with them."""

from __future__ import annotations

from .problems import Problem, new_problem
from .reading import Answer, Question


def checked(
    split: str, questions: list[Question], how: str, *, answers: bool, unanswerable: bool = False
) -> tuple[list[Question], list[Problem]]:
    """Return the usable questions, each with one answer, and the problems.

    Each question keeps its first usable answer. An answer is usable if it occurs at its offset, or was repaired.

    Args:
        how: How bad questions are handled (one of `problems.HOW`); `refuse` returns the same questions as `skip`.
        answers: Whether the file has answers.
        unanswerable: Keep the questions that the file marks as unanswerable (SQuAD 2.0), without an answer.
    """
    usable, problems = list[Question](), list[Problem]()

    def report(question: Question, kind: str, what: str) -> Problem:
        problems.append(new_problem(split, question.where, question.id, kind, what, how))
        return problems[-1]

    for question in questions:
        unanswered = unanswerable and question.impossible
        if defect := _defect(question, answered=answers and not unanswered):
            report(question, *defect)
            continue
        if unanswered or not answers:
            usable.append(question._replace(answers=()) if unanswered else question)
            continue
        usable_answers = list[Answer]()
        for answer in question.answers:
            place, defect = _place(question, answer)
            handling = report(question, *defect).done if defect else "fine"
            if place is not None and handling in ("fine", "repaired"):
                usable_answers.append(Answer(answer.text, place))
            elif handling == "repaired":
                problems[-1] = problems[-1]._replace(done="left out")
        if usable_answers:
            usable.append(question._replace(answers=(usable_answers[0],)))
        else:
            report(question, "no answer", "none of the question's answers is usable")
    return usable, problems


def _defect(question: Question, *, answered: bool) -> tuple[str, str] | None:
    """Return the kind and the description of what is wrong with a question, or None."""
    for kind, text in (("context", question.context), ("question", question.text)):
        if not text.strip():
            return f"empty {kind}", f"the {kind} is {text!r}"
    if answered and question.impossible:
        return "unanswerable", "is_impossible is true"
    if answered and not question.answers:
        return "no answer", "the question has no answers"
    return None


def _place(question: Question, answer: Answer) -> tuple[int | None, tuple[str, str] | None]:
    """Return the offset of an answer, and the kind and the description of what is wrong with it."""
    text, start = answer
    if not text.strip():
        return None, ("empty answer", f"the answer is {text!r}")
    if start >= 0 and question.context.startswith(text, start):
        return start, None
    place = nearest(question.context, text, start)
    there = question.context[max(0, start) : max(0, start) + len(text)]
    elsewhere = "occurs nowhere" if place is None else f"occurs at offset {place}"
    what = f"{text!r} is not at offset {start}, where the context has {there!r}; the answer {elsewhere}"
    return place, ("misplaced answer", what)


def nearest(context: str, text: str, start: int) -> int | None:
    """Return the offset of the occurrence nearest to `start` (the earlier one if two are equally near), or None."""
    places, at = list[int](), context.find(text)
    while at >= 0:
        places.append(at)
        at = context.find(text, at + 1)
    return min(places, key=lambda place: abs(place - start)) if places else None
