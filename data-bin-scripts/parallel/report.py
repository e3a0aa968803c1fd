"""Report how many pairs were kept and left out, as a table (report.md) and as JSON (report.json)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .cleaning import STEPS
from .merge import Tally, total

Sets = dict[str, list[dict[str, Any]]]


def rows(tallies: Sequence[Tally], sets: Sets, steps: Sequence[str], pair: tuple[str, str]) -> list[dict[str, Any]]:
    """Return a table row for each count of pairs or words, with the line numbers of the first pairs left out."""
    result: list[dict[str, Any]] = []
    names = ("read", *steps, "kept", "mended")
    for tally in tallies:
        counts = {name: tally.counts[name] for name in names}
        counts |= {f"words {code}": tally.counts[f"words {side}"] for side, code in enumerate(pair)}
        lines = {step: " ".join(map(str, numbers)) for step, numbers in tally.lines.items()}
        result += [_row("train", tally.name, step, count, lines.get(step, "")) for step, count in counts.items()]
    for split, entries in sets.items():
        for entry in entries:
            result.append(_row(split, entry["name"], "empty", entry["empty"]))
            result.append(_row(split, entry["name"], "kept", entry["pairs"]))
    return result


def _row(split: str, corpus: str, step: str, count: int, lines: str = "") -> dict[str, Any]:
    return {"split": split, "corpus": corpus, "step": step, "count": count, "first lines": lines}


def page(tallies: Sequence[Tally], sets: Sets, steps: Sequence[str], options: dict[str, Any]) -> str:
    """Return the content of report.md."""
    pair = options["pair"].split("-")
    text = [f"# {options['pair']}", "", "## Training", "", *_training(tallies, steps, pair), ""]
    text += ["Reasons to leave a pair out:", "", *(f"- {step}: {STEPS[step]}" for step in steps)]
    mended = "Mended pairs were kept with changes: Unicode NFC, no control characters, and single spaces."
    text += ["", mended]
    text += ["", "## Validation and test", "", *_table(("split", "set", "pairs", "left out: empty"), _held_out(sets))]
    if places := [*_places(tallies, pair)]:
        text += ["", "## First pairs that each step left out", "", *places]
    flags = (f"`--{name.replace('_', '-')} {value}`" for name, value in options.items() if name != "language_id")
    return "\n".join([*text, "", "## Options", "", ", ".join(flags), ""])


def _training(tallies: Sequence[Tally], steps: Sequence[str], pair: Sequence[str]) -> list[str]:
    columns = [(tally.name, tally.counts) for tally in tallies]
    if len(tallies) > 1:
        columns.append(("all", total(tallies)))

    def line(title: str, name: str) -> tuple[str, ...]:
        return (title, *(f"{counts[name]:,}" for _, counts in columns))

    kept = (f"{counts['kept']:,} ({counts['kept'] / max(1, counts['read']):.1%})" for _, counts in columns)
    lines = [line("read", "read"), *(line(f"- {step}", step) for step in steps), ("kept", *kept)]
    lines += [line("mended", "mended"), *(line(f"words {code}", f"words {side}") for side, code in enumerate(pair))]
    return _table(("pairs", *(name for name, _ in columns)), lines)


def _held_out(sets: Sets) -> list[tuple[str, ...]]:
    return [
        (split, entry["name"], f"{entry['pairs']:,}", f"{entry['empty']:,}")
        for split, entries in sets.items()
        for entry in entries
    ]


def _places(tallies: Sequence[Tally], pair: Sequence[str]) -> list[str]:
    return [
        f"- {step}: " + ", ".join(f"{tally.name}.{pair[0]}:{line}" for line in lines)
        for tally in tallies
        for step, lines in sorted(tally.lines.items(), key=lambda item: [*STEPS].index(item[0]))
    ]


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *lines)]
