"""Test that every table of the papers' numbers is complete and cited, and that no number is stored twice."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from fairseq_posenc.encodings.facts import at_base_size
from fairseq_posenc.papers import reading
from fairseq_posenc.papers.matching import PRETRAINED
from fairseq_posenc.papers.reading import Figure, every, figures, read, tables
from recipes.lib.encodings import options_of, parse, published

CITATIONS = tomllib.loads((reading.FOLDER / "citations.toml").read_text("utf-8"))
FILES = pytest.mark.parametrize("path", tables(), ids=lambda path: path.stem)
ROOT = Path(__file__).resolve().parents[2]


@FILES
def test_a_file_is_one_cited_table(path: Path) -> None:
    figures = list(read(path))
    ((paper, table),) = {(figure.paper, figure.table) for figure in figures}
    assert path.name == f"{paper}_{table}.toml".lower().replace(" ", "")
    assert set(CITATIONS[paper]) == {"title", "authors", "where"}
    raw = tomllib.loads(path.read_text("utf-8"))
    assert raw.keys() - {"conditions"} == {"paper", "table", "title", "unit", "keys", "columns", "rows"}
    assert raw["keys"][:2] == ["row", "encoding"]
    assert {figure.row for figure in figures} == {str(row[0]) for row in raw["rows"]}  # no row is empty
    assert {figure.column for figure in figures} == set(raw["columns"])


@FILES
def test_a_cell_is_a_number_or_words_a_formula_or_a_dash(path: Path) -> None:
    for figure in read(path):
        text = figure.column in ("formula", "complexity") or figure.printed == "-" or re.search("[{ ]", figure.printed)
        assert (figure.value is None) == bool(text), figure


@pytest.mark.parametrize("label", sorted({figure.encoding for figure in every()} - {""}))
def test_every_encoding_builds(label: str) -> None:
    at_base_size(label)


def doubled(all_figures: Iterable[Figure]) -> list[tuple[object, ...]]:
    """Return the numbers that are stored twice: same column, same model and same encoding."""
    labelled = [(figure, parse(figure.encoding)) for figure in all_figures if figure.encoding]
    keys = Counter(
        (
            *(figure.paper, figure.column, encoding.name),
            *(tuple(sorted(facts.items())) for facts in (options_of(encoding, PRETRAINED), figure.conditions)),
        )
        for figure, encoding in labelled
    )
    return [key for key, count in keys.items() if count > 1]


def test_no_figure_stands_twice() -> None:
    assert doubled(every()) == []
    (again,) = figures("M1-M4", column="SQuAD1.1 EM", encoding="m4", length=512)
    written_otherwise = replace(again, table="Table 4", row="512", encoding="m4[clip=512]")
    assert len(doubled([*every(), written_otherwise])) == 1


#: Printed averages that are not the averages of the printed numbers; docs/choosing.md mentions them.
DISAGREE = {
    ("diet-rel[share=head-wise]", "head"): ("54.7", 54.9),
    ("diet-rel[share=layer-wise]", "head"): ("57.3", 57.4),
}


@pytest.mark.parametrize("model", ["BERT-base, English", "BERT-base, 100 languages"])
def test_averages_of_diet_are_those_of_seven_numbers(model: str) -> None:
    averages = figures("DIET", column="average", model=model)
    assert len(averages) > 10
    for average in averages:
        segments = average.conditions["segments"]
        row = figures("DIET", table=average.table, encoding=average.encoding, model=model, segments=segments)
        numbers = [figure.value or 0 for figure in row if figure.column != "average"]
        assert len(numbers) == 7
        known = DISAGREE.get((average.encoding, segments)) if "languages" in model else None
        assert (average.printed, round(fmean(numbers), 1)) == (known or (average.printed, average.value)), average


def test_values_leave_out_margins_and_units() -> None:
    assert [figure.value for figure in figures("LFHC", table="Table 2", encoding="xl")] == [47.21, 60.33]
    assert [figure.value for figure in figures("DIET", table="Table 1", encoding="tupe")] == [1, 19, 4, 27]
    assert [figure.value for figure in figures("LFHC", row="lr rate", column="WT103")] == [2.5e-4]
    assert figures("DIET", table="Table 1", encoding="m4") == figures("Diet") == []


def value(rows: list[Figure], label: str, unset: dict[str, object] | None = None) -> float | None:
    figure = published(rows, label, unset)
    return figure.value if figure else None


def test_options_are_matched_as_they_work() -> None:
    rows = figures("DIET", column="QQP", segments="head")
    for label in ("diet-abs[share=layer-wise,rank=128]", "diet-abs[rank=128]"):
        assert value(rows, label) == 90.8
    assert value(rows, "diet-abs") is None
    assert value(rows, "diet-abs", {"rank": 64}) == 91.1
    assert value(figures("M4M", table="Section 5.6"), "learned") is None  # not of an encoding of ours


def test_recipes_read_the_same_tables_without_torch() -> None:
    code = "import sys; from fairseq_posenc.papers.reading import figures; "
    code += "print(len(figures('DIET')), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(figures("DIET"))), "False"]
