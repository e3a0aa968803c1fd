"""Format the rows as tables, one for each size: as text for a terminal, and as Markdown for the docs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tabulate import tabulate

from .rows import Row

#: The facts that are printed below the tables.
FACTS = ("device", "cpu", "cores", "threads", "load", "allocator", "torch", "python", "version", "commit")
MISSED = " !"
#: What the rows of a table measure, by `Row.what`.
_KINDS = {"layer": "Layer", "length": "Layer", "model": "Model", "memory": "Peak memory", "decode": "Decoding"}


@dataclass(frozen=True)
class Section:
    """Hold a table of measurements: its title, its header, and one line of cells per encoding."""

    title: str
    head: list[str]
    lines: list[list[str]]


def text(rows: Sequence[Row], facts: Mapping[str, Any]) -> str:
    """Return the tables as text for a terminal, with the number of targets that are met, and the machine."""
    return "\n\n".join([_tables(rows, "{}\n", "plain"), _verdict(rows), _below(facts)])


def markdown(rows: Sequence[Row], facts: Mapping[str, Any]) -> str:
    """Return the tables as Markdown, with the number of targets that are met, and the machine."""
    return "\n\n".join([markdown_tables(rows, "### {}"), _verdict(rows), _below(facts)]) + "\n"


def markdown_tables(rows: Sequence[Row], title: str) -> str:
    """Return only the tables as Markdown. `title` is the format of each table's title, such as `### {}`."""
    return _tables(rows, f"{title}\n\n", "github")


def _tables(rows: Sequence[Row], title: str, form: str) -> str:
    tables = (
        title.format(section.title) + tabulate(section.lines, section.head, tablefmt=form, disable_numparse=True)
        for section in sections(rows)
    )
    return "\n\n".join(tables)


def sections(rows: Sequence[Row]) -> Iterator[Section]:
    """Yield one table per size, in the order of the rows, with the columns of all modes side by side."""
    together: dict[str, list[Row]] = {}
    for row in rows:
        together.setdefault(_title(row), []).append(row)
    for title, members in together.items():
        modes = list(dict.fromkeys(row.mode for row in members))
        cells = {(_name(row), row.mode): _cells(row) for row in members}
        names = dict.fromkeys(map(_name, members))
        blank = [""] * len(_columns(members[0], ""))
        yield Section(
            title,
            ["encoding", *(column for mode in modes for column in _columns(members[0], mode))],
            [[name, *(cell for mode in modes for cell in cells.get((name, mode), blank))] for name in names],
        )


def _title(row: Row) -> str:
    size = f"width {row.width}, {row.heads} heads"
    if row.what == "exponent":
        return f"Exponents of growth with the length, {size}, n = {row.first} to {row.length}"
    pads = ", left-padded" if row.padded else ""
    if row.what == "translation":
        size = f"width {row.width}, {row.layers} + {row.layers} layers"
        if row.mode == "train":
            return f"Training for translation, {size}, {row.length} tokens per batch, relative to fairseq's transformer"
        return f"Translation, {size}, {row.length} words by beam search, relative to fairseq's transformer"
    if row.what == "lm-memory":
        return f"Memory, {size}, {row.layers} layers, segments of {row.length}, {row.batch} streams, {row.dtype}"
    depth = f" of {row.layers} layers" if row.layers > 1 else ""
    sequences = f"{row.batch} sequence{'s' if row.batch > 1 else ''}"
    return f"{_KINDS[row.what]}{depth}, {size}, n = {row.length}, {sequences}{pads}, {row.dtype}"


def _name(row: Row) -> str:
    where = " (decoder)" if row.causal and row.what != "decode" else ""
    return row.name + where + row.origin


def _columns(row: Row, mode: str) -> list[str]:
    if row.what == "exponent":
        return [mode]
    if row.what == "memory":
        return [mode, "target", "MiB per sequence"]
    return [mode, "target", "ms", *(["MiB"] if row.what == "length" else [])]


def _cells(row: Row) -> list[str]:
    if row.what == "exponent":
        return [f"{row.exponent:.2f}" if row.exponent is not None else ""]
    target = f"{row.target:.2f}{MISSED if row.holds is False else ''}" if row.target is not None else ""
    if row.what == "memory":
        return [f"{row.ratio:.3f}", target, f"{row.mib:.1f}"]
    mib = [f"{row.mib:.1f}" if row.mib is not None else ""] if row.what == "length" else []
    return [f"{row.ratio:.3f} ± {row.spread:.3f}", target, f"{row.milliseconds:.2f}", *mib]


def _verdict(rows: Sequence[Row]) -> str:
    with_target = [row for row in rows if row.holds is not None]
    met = sum(row.holds is True for row in with_target)
    return f"{met} of {len(with_target)} targets are met; {MISSED.strip()} marks a missed target."


def _below(facts: Mapping[str, Any]) -> str:
    return "Measured with " + "; ".join(f"{name} {facts[name]}" for name in FACTS if name in facts) + "."
