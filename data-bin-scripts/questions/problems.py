"""Name and count what is wrong with questions, so that none is left out silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from corpora.errors import CorpusError
from shared import write_whole

from .output import json_lines

#: how --bad repair handles each kind of problem; "": it leaves the question out
REPAIRS = {
    "misplaced answer": "taken where it occurs, nearest to its offset",
    "empty answer": "",
    "no answer": "",
    "unanswerable": "",
    "empty context": "",
    "empty question": "",
    "long answer": "cut to --longest-answer",
    "long question": "cut to --longest-question; as a reference it stays whole",
    "malformed question": "",
    "duplicate id": "",
    "question that is answered too": "",
}
#: properties of the set (SQuAD 2.0), which are reported and never refused
EXPECTED = {"unanswerable"}
HOW = ("refuse", "skip", "repair")
SHOWN = 5  # ids of each kind that are printed
FILE = "problems.jsonl"
UNUSABLE = "These questions cannot be used as they are; "


class RefusedError(CorpusError):
    """Questions have problems, and --bad is refuse."""


class Problem(NamedTuple):
    """A problem of a question.

    Args:
        where: File name and the place in the file.
        done: refused, left out or repaired. If only one of several answers is wrong, only that answer is left out.
    """

    split: str
    where: str
    id: str
    kind: str
    what: str
    done: str


def made(split: str, where: str, name: str, kind: str, what: str, how: str) -> Problem:
    """Return a problem of a question or an answer, handled according to `how` and `REPAIRS`."""
    if how == "refuse" and kind not in EXPECTED:
        return Problem(split, where, name, kind, what, "refused")
    return Problem(split, where, name, kind, what, "repaired" if how == "repair" and REPAIRS[kind] else "left out")


def refuse(where: Path, wrong: list[Problem], cure: str, before: str = "") -> None:
    """Raise an error and write all problems to WHERE.problems.jsonl if any problem is refused.

    Otherwise, remove that file, which an earlier attempt may have left.

    Args:
        cure: What the user can do.
        before: Text before the file's name in the error.
    Raises:
        RefusedError: A problem is refused.
    """
    beside = where.with_name(f"{where.name}.{FILE}")
    if any(one.done == "refused" for one in wrong):
        write_whole(beside, json_lines(one._asdict() for one in wrong))
        raise RefusedError("\n".join([*summary(wrong), f"{before}{beside} names them all. {cure}"]))
    beside.unlink(missing_ok=True)


def tell(folder: Path, wrong: list[Problem]) -> None:
    """Write the problems to problems.jsonl, and print a summary."""
    write_whole(folder / FILE, json_lines(one._asdict() for one in wrong))
    for line in summary(wrong):
        print(line, flush=True)


def counted(problems: Iterable[Problem]) -> dict[str, dict[str, int]]:
    """Return the number of problems by kind and by how they were handled."""
    found: dict[str, dict[str, int]] = {}
    for (kind, done), number in sorted(Counter((one.kind, one.done) for one in problems).items()):
        found.setdefault(kind, {})[done] = number
    return found


def summary(problems: list[Problem]) -> list[str]:
    """Return a line for each split, kind and handling, with the first ids."""
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for one in problems:
        groups.setdefault((one.split, one.kind, one.done), []).append(one)
    lines = []
    for (split, kind, done), some in groups.items():
        # a bare number after a colon would look like a count
        names = list(dict.fromkeys(f"id {one.id}" if one.id.isdecimal() else one.id for one in some))
        more = ", ..." if len(names) > SHOWN else ""
        in_all = f" of {len(names):,} questions" if len(names) != len(some) else ""
        lines.append(f"{split}: {len(some):,} x {kind}{in_all}, {done}: {', '.join(names[:SHOWN])}{more}")
    return lines
