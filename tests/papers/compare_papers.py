"""Compare the papers' numbers in fairseq_posenc/papers/ with a second table of them and with the papers' texts.

The second table is in typed_again/, one file per paper. It was typed from the papers' texts and repeats whole tables,
with the numbers that fairseq_posenc/papers/ stores in another table of the paper. A row is its encoding with conditions
(`m4; length=576`) and its cells; an empty cell is not printed. The repository does not contain the texts; with them,
run:

    python tests/papers/compare_papers.py FOLDER_OF_TEXTS
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # Python adds only the folder of this file
    sys.path.insert(0, str(ROOT))

from fairseq_posenc.papers.reading import Figure, figures  # noqa: E402  (it needs the path)

SECOND = Path(__file__).parent / "typed_again"
TEXTS = {"M1-M4": "m1-m4*.txt", "M4M": "m4m*.txt", "LFHC": "lfhc*.txt", "DIET": "diet*.txt"}


@dataclass(frozen=True)
class Cell:
    """Hold a number of the second table; `conditions` may include `row`, the name of a row without an encoding."""

    paper: str
    table: str
    column: str
    encoding: str
    conditions: Mapping[str, str]
    printed: str
    also: Mapping[str, str] = field(default_factory=dict)  # its place in the data: `column`, conditions

    def __str__(self) -> str:
        facts = [self.encoding, *(f"{name}={value}" for name, value in self.conditions.items())]
        return f"{self.paper} {self.table}, {', '.join(filter(None, facts))}, {self.column}"


@dataclass(frozen=True)
class Line:
    """Hold a row of the second table as the text prints it; `sentence` is a text that contains the numbers."""

    paper: str
    table: str
    cells: tuple[str, ...]
    sentence: str


def second(paper: str) -> list[dict[str, Any]]:
    """Return the tables of a paper that were typed again."""
    tables: list[dict[str, Any]] = tomllib.loads((SECOND / f"{paper.lower()}.toml").read_text("utf-8"))["tables"]
    return tables


def rows(table: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the key and the cells of each row."""
    for line in table["rows"].strip().splitlines():
        key, *cells = (cell.strip() for cell in line.split("|"))
        assert len(cells) == len(table["columns"]), line
        yield key, cells


def cells(paper: str) -> Iterator[Cell]:
    """Yield the numbers of a paper's second table."""
    for table in second(paper):
        for key, numbers in rows(table):
            for column, printed in zip(table["columns"], numbers, strict=True):
                name, label = (key, column) if table.get("transposed") else (column, key)
                encoding, *words = (part.strip() for part in label.split(";"))
                conditions = table.get("conditions", {}) | dict(word.split("=", 1) for word in words)
                if printed:
                    also = table.get("also", {}).get(name, {})
                    yield Cell(paper, table["name"], name, encoding, conditions, printed, also)


def lines(paper: str) -> Iterator[Line]:
    """Yield the rows of a paper's second table that stand in its text."""
    for table in second(paper):
        if table.get("in_text", True):
            for _, numbers in rows(table):
                yield Line(paper, table["name"], tuple(filter(None, numbers)), table.get("sentence", ""))


# --- the data of the package against the second table


def differences(paper: str, data: Sequence[Figure]) -> list[str]:
    """Return a sentence for each number of a paper that the data and the second table do not share."""
    texts, compared = [], set()
    for cell in cells(paper):
        stored = found(cell, data)
        compared |= set(map(id, stored))
        printed = [figure.printed for figure in stored]
        if len(printed) != 1 or not same(cell, stored[0]):
            texts.append(f"{cell}: typed again {cell.printed}, stored {' and '.join(printed) or 'nowhere'}.")
    missing = [figure for figure in data if id(figure) not in compared]
    texts += [
        f"{one.paper} {one.table}, {one.row}, {one.column}: {one.printed} was not typed again." for one in missing
    ]
    return texts


def found(cell: Cell, data: Sequence[Figure]) -> list[Figure]:
    """Return the stored number of a cell: in its own table, or else in another table of the paper."""
    own = [figure for figure in data if figure.table == cell.table and matches(figure, cell, cell.column, {})]
    where = dict(cell.also)
    column = where.pop("column", cell.column)
    return own or [figure for figure in data if matches(figure, cell, column, where)]


def matches(figure: Figure, cell: Cell, column: str, where: Mapping[str, str]) -> bool:
    """Return whether a stored number has the cell's column, encoding and conditions, as far as it has them."""
    wanted = {**cell.conditions, **where}
    if (figure.column, figure.encoding) != (column, cell.encoding) or wanted.pop("row", figure.row) != figure.row:
        return False
    return all(figure.conditions.get(name, value) == value for name, value in wanted.items())


def same(cell: Cell, figure: Figure) -> bool:
    """Return whether a stored number has the digits of a cell; in another table, it may have a ± besides."""
    printed = figure.printed if figure.table == cell.table else figure.printed.partition("±")[0]
    return printed == cell.printed


# --- the second table against the texts


def plain(text: str) -> str:
    """Return a text without the marks of its formulas and with one spelling of spaces."""
    text = re.sub(r"\$|\\mathcal|<b>|</b>|\*\*", "", text.replace("{O}", "O"))
    return re.sub(r"\s*([-+*=])\s*|\s+(,)", r"\1\2", re.sub(r"\s+", " ", text))


def stands_in(cells: Iterable[str], text: str) -> bool:
    """Return whether a text contains the cells in their order, none of them as a part of a longer number."""
    start = 0
    for cell in cells:
        digits = plain(cell).removesuffix("K")  # in the M4M paper, the K is in the heading
        before, after = r"(?<![\d.])" * digits[0].isdigit(), r"(?!\d|\.\d)" * digits[-1].isdigit()
        match = re.compile(before + re.escape(digits) + after).search(text, start)
        if not match:
            return False
        start = match.end()
    return True


def printed_in(line: Line, texts: Sequence[str]) -> bool:
    """Return whether one of the texts prints a row in one line or, if it has a sentence, in this sentence."""
    if line.sentence:
        told = stands_in(line.cells, plain(line.sentence))
        return told and any(stands_in([line.sentence.casefold()], plain(text).casefold()) for text in texts)
    return any(stands_in(line.cells, plain(part)) for text in texts for part in text.splitlines())


def main(argv: Sequence[str]) -> int:
    """Print how many rows of each table stand in the texts, and all differences. Return 1 if there are any."""
    if len(argv) != 1 or not Path(argv[0]).is_dir():
        print("Name the folder of the papers' texts: python tests/papers/compare_papers.py FOLDER", file=sys.stderr)
        return 2
    problems = []
    for paper, pattern in TEXTS.items():
        data = figures(paper)
        texts = [path.read_text("utf-8") for path in sorted(Path(argv[0]).glob(pattern))]
        if not texts:
            problems.append(f"{paper}: {argv[0]} has no file {pattern}.")
        counts: Counter[str] = Counter()
        for line in lines(paper):
            inside = printed_in(line, texts)
            counts.update({line.table: 1, f"{line.table} in the text": inside})
            if not inside:
                problems.append(f"{paper} {line.table}: no line of the text has {' '.join(line.cells)}.")
        names = dict.fromkeys(table["name"] for table in second(paper))
        for name in names:
            numbers = sum(cell.table == name for cell in cells(paper))
            text = (
                f"{counts[f'{name} in the text']} of {counts[name]} rows" if counts[name] else "not a text of the paper"
            )
            print(f"{paper} {name}: {numbers} numbers; in the text: {text}")
        unequal = differences(paper, data)
        problems += unequal
        print(f"{paper}: {len(data)} stored numbers, {sum(1 for _ in cells(paper))} typed again, {len(unequal)} differ")
    print("\n".join(problems) or "All numbers agree.")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
