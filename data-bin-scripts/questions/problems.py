"""Describe and count the problems of questions, so that no question is left out silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from corpora.errors import CorpusError
from shared import write_whole

from .output import json_lines

#: how --bad repair handles each kind of problem; "" means that it leaves the question out
REPAIRS = {
    "misplaced answer": "the occurrence nearest to the given offset is used",
    "empty answer": "",
    "no answer": "",
    "unanswerable": "",
    "empty context": "",
    "empty question": "",
    "long answer": "the answer is cut to --longest-answer",
    "long question": "the question is cut to --longest-question, but its reference text is not cut",
    "malformed question": "",
    "duplicate id": "",
    "question that is answered too": "",
}
#: kinds that SQuAD 2.0 contains on purpose; they are reported and never refused
EXPECTED = {"unanswerable"}
HOW = ("refuse", "skip", "repair")
SHOWN = 5  # ids of each kind that are printed
FILE = "problems.jsonl"
UNUSABLE = "These questions contain errors, so they cannot be used without a change. "


class RefusedError(CorpusError):
    """Report that questions have problems and --bad is refuse."""


class Problem(NamedTuple):
    """Describe a problem with a question.

    Args:
        where: Name of the file, and the place in it.
        what: Description of the problem.
        done: How the problem was handled: refused, left out or repaired. If only some answers of a question are wrong,
        only the wrong answers are left out.
    """

    split: str
    where: str
    id: str
    kind: str
    what: str
    done: str


def new_problem(split: str, where: str, name: str, kind: str, what: str, how: str) -> Problem:
    """Return a problem with a question or an answer; `how` (from --bad) and `REPAIRS` decide how the problem is
    handled.
    """
    if how == "refuse" and kind not in EXPECTED:
        return Problem(split, where, name, kind, what, "refused")
    return Problem(split, where, name, kind, what, "repaired" if how == "repair" and REPAIRS[kind] else "left out")


def refuse(where: Path, problems: list[Problem], cure: str, before: str = "") -> None:
    """If any problem is marked as refused, write all problems to WHERE.problems.jsonl and raise an error.

    If no problem is marked as refused, remove WHERE.problems.jsonl, which an earlier run may have written.

    Args:
        cure: Sentence that says what the user can do.
        before: Beginning of the error message, before the name of the file that lists the problems.
    Raises:
        RefusedError: At least one problem is marked as refused.
    """
    listing = where.with_name(f"{where.name}.{FILE}")
    if any(problem.done == "refused" for problem in problems):
        write_whole(listing, json_lines(problem._asdict() for problem in problems))
        raise RefusedError("\n".join([*summary(problems), f"{before}{listing} lists all of them. {cure}"]))
    listing.unlink(missing_ok=True)


def tell(folder: Path, problems: list[Problem]) -> None:
    """Write the problems to problems.jsonl, and print a summary."""
    write_whole(folder / FILE, json_lines(problem._asdict() for problem in problems))
    for line in summary(problems):
        print(line, flush=True)


def counted(problems: Iterable[Problem]) -> dict[str, dict[str, int]]:
    """Return the number of problems by kind and by how they were handled."""
    numbers: dict[str, dict[str, int]] = {}
    for (kind, done), number in sorted(Counter((problem.kind, problem.done) for problem in problems).items()):
        numbers.setdefault(kind, {})[done] = number
    return numbers


def summary(problems: list[Problem]) -> list[str]:
    """Count the problems by split, kind and handling; return a line for each count, with the first questions' ids."""
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.split, problem.kind, problem.done), []).append(problem)
    lines = []
    for (split, kind, done), group in groups.items():
        # a bare number after a colon would look like a count
        ids = dict.fromkeys(problem.id for problem in group)
        names = [f"id {name}" if name.isdecimal() else name for name in ids]
        more = ", ..." if len(names) > SHOWN else ""
        in_all = f" of {len(names):,} questions" if len(names) != len(group) else ""
        lines.append(f"{split}: {len(group):,} x {kind}{in_all}, {done}: {', '.join(names[:SHOWN])}{more}")
    return lines
