"""What is wrong with questions: each is named, and counted by kind; nothing is left out without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from corpora.errors import CorpusError
from shared import write_whole

from .output import json_lines

#: what --bad repair can do of each, "" where nothing
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
#: a property of the set (SQuAD 2.0), told and never refused
EXPECTED = {"unanswerable"}
HOW = ("refuse", "skip", "repair")
SHOWN = 5  # ids of a kind on the screen
FILE = "problems.jsonl"
UNUSABLE = "These questions cannot be used as they are; "


class RefusedError(CorpusError):
    """There are problems, and they are not to be skipped."""


class Problem(NamedTuple):
    """where: the file with the place in it. done: refused, left out, or repaired; of one answer among several, that
    answer is left out."""

    split: str
    where: str
    id: str
    kind: str
    what: str
    done: str


def made(split: str, where: str, name: str, kind: str, what: str, how: str) -> Problem:
    """Return a problem of a question or an answer, with what is done about it according to `REPAIRS`."""
    if how == "refuse" and kind not in EXPECTED:
        return Problem(split, where, name, kind, what, "refused")
    return Problem(split, where, name, kind, what, "repaired" if how == "repair" and REPAIRS[kind] else "left out")


def refuse(where: Path, wrong: list[Problem], cure: str, before: str = "") -> None:
    """Raise an error if problems are refused, and write them all into WHERE.problems.jsonl.

    Without any, remove that file, which an earlier attempt left.

    Args:
        cure: What to do. before: What stands in front of the file's name.
    Raises:
        RefusedError: Problems are refused.
    """
    beside = where.with_name(f"{where.name}.{FILE}")
    if any(one.done == "refused" for one in wrong):
        write_whole(beside, json_lines(one._asdict() for one in wrong))
        raise RefusedError("\n".join([*summary(wrong), f"{before}{beside} names them all. {cure}"]))
    beside.unlink(missing_ok=True)


def tell(folder: Path, wrong: list[Problem]) -> None:
    """Write the problems into problems.jsonl, and print how many there are of each kind."""
    write_whole(folder / FILE, json_lines(one._asdict() for one in wrong))
    for line in summary(wrong):
        print(line, flush=True)


def counted(problems: Iterable[Problem]) -> dict[str, dict[str, int]]:
    """Return by kind how often each thing was done."""
    found: dict[str, dict[str, int]] = {}
    for (kind, done), number in sorted(Counter((one.kind, one.done) for one in problems).items()):
        found.setdefault(kind, {})[done] = number
    return found


def summary(problems: list[Problem]) -> list[str]:
    """Return a line for each split and kind, with the first ids."""
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for one in problems:
        groups.setdefault((one.split, one.kind, one.done), []).append(one)
    lines = []
    for (split, kind, done), some in groups.items():
        # a bare number behind a colon would read as a count
        names = list(dict.fromkeys(f"id {one.id}" if one.id.isdecimal() else one.id for one in some))
        more = ", ..." if len(names) > SHOWN else ""
        in_all = f" of {len(names):,} questions" if len(names) != len(some) else ""
        lines.append(f"{split}: {len(some):,} x {kind}{in_all}, {done}: {', '.join(names[:SHOWN])}{more}")
    return lines
