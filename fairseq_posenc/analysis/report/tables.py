"""Write the report's main table as CSV and as LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from .columns import Cell, Column, columns
from .runs import Entry

#: Spreadsheets run a cell that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def to_csv(entries: Sequence[Entry]) -> str:
    """Return the table as CSV, with extra columns for the 95 % intervals."""
    parts = [_csv_column(column, entries) for column in columns(entries)]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([title for part in parts for title in part])
    writer.writerows(zip(*(values for part in parts for values in part.values()), strict=True))
    return file.getvalue()


def _csv_column(column: Column, entries: Sequence[Entry]) -> dict[str, list[object]]:
    cells = [column.cell(entry) for entry in entries]
    parts: dict[str, list[object]] = {column.title: [_csv_cell(cell) for cell in cells]}
    if any(cell.within is not None for cell in cells):
        parts[f"{column.title} ±"] = ["" if cell.within is None else float(f"{cell.within:.4g}") for cell in cells]
    return parts


def _csv_cell(cell: Cell) -> object:
    if cell.value is not None:
        return cell.value
    text = cell.full or cell.text
    return f"'{text}" if text.startswith(FORMULA) else text


def to_latex(entries: Sequence[Entry]) -> str:
    """Return the table as LaTeX, which needs the package booktabs."""
    shown = columns(entries)
    align = "".join("r" if column.numeric else "l" for column in shown)
    lines = [[escape_latex(column.title) for column in shown]]
    lines += [[_latex_cell(column.cell(entry)) for column in shown] for entry in entries]
    head, *body = [" & ".join(cells) + r" \\" for cells in lines]
    begin = ["% needs \\usepackage{booktabs}", rf"\begin{{tabular}}{{{align}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*begin, *body, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(cell: Cell) -> str:
    within = "" if cell.within is None else rf" $\pm$ {cell.within:.2g}"
    return escape_latex(cell.text) + within


def escape_latex(text: str) -> str:
    """Return text with escapes, so that LaTeX prints it literally and on one line.

    A `[` or `*` at the beginning is protected, because LaTeX would read it as an argument of the line break before it.
    """
    plain = re.sub(r"[\x00-\x1f\x7f]+", " ", text)
    escaped = "".join(LATEX.get(character, character) for character in plain)
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped
