"""Every table of the papers' numbers is complete and cited, and no number is stored twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from fairseq_posenc.commands.params import at_base_size, split
from fairseq_posenc.papers import reading
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
    assert {figure.row for figure in figures} == {str(row[0]) for row in raw["rows"]}  # none is empty
    assert {figure.column for figure in figures} == set(raw["columns"])


@FILES
def test_a_cell_is_a_number_or_words_a_formula_or_a_dash(path: Path) -> None:
    for figure in read(path):
        text = figure.column in ("formula", "complexity") or figure.printed == "-" or re.search("[{ ]", figure.printed)
        assert (figure.value is None) == bool(text), figure


@pytest.mark.parametrize("label", sorted({figure.encoding for figure in every()} - {""}))
def test_every_encoding_builds(label: str) -> None:
    at_base_size(*split(label))


def doubled(all_figures: Iterable[Figure]) -> list[tuple[object, ...]]:
    """Return the numbers that are stored twice: same column, same model and same encoding."""
    unset = {"clip": 512, "rank": 64}  # in the papers' base models
    keys = Counter(
        (
            *(figure.paper, figure.column, parse(figure.encoding).name),
            *(tuple(sorted(facts.items())) for facts in (options_of(parse(figure.encoding), unset), figure.conditions)),
        )
        for figure in all_figures
        if figure.encoding
    )
    return [key for key, count in keys.items() if count > 1]


def test_no_figure_stands_twice() -> None:
    assert doubled(every()) == []
    (again,) = figures("M1-M4", column="SQuAD1.1 EM", encoding="m4", length=512)
    written_otherwise = replace(again, table="Table 4", row="512", encoding="m4[clip=512]")
    assert len(doubled([*every(), written_otherwise])) == 1


#: typed from the papers' texts: paper, table, encoding, column, conditions, what stands there
CELLS: list[tuple[str, str, str, str, dict[str, Any], str]] = [
    ("M1-M4", "Table 1", "m1[share=none]", "formula", {}, "mhn"),
    ("M1-M4", "Section 3.6", "m4[share=none]", "parameters", {}, "147K"),
    ("M1-M4", "Table 2", "learned+segments-input", "SQuAD1.1 F1", {}, "88.5"),
    ("M1-M4", "Table 2", "m3", "SQuAD1.1 EM", {"model": "BERT-base"}, "83.71"),
    ("M1-M4", "Table 3", "m3", "MRPC", {}, "82.86"),
    ("M1-M4", "Table 3", "learned", "MRPC", {}, "88.40"),
    ("M1-M4", "Table 4", "m4[clip=256]", "SQuAD1.1 EM", {"length": 640}, "83.97"),
    ("M1-M4", "Table 4", "m4[clip=16]", "SQuAD1.1 F1", {"length": 512}, "90.18"),
    ("M1-M4", "Table 5", "m4+segments-input", "SQuAD1.1 F1", {"length": 576}, "93.48"),
    ("M1-M4", "README", "m4", "SQuAD1.1 F1", {"length": 384}, "90.34"),
    ("M4M", "Table 1", "tupe", "parameters", {}, "454K"),
    ("M4M", "Table 1", "deberta", "formula", {}, "m(2n-1)d/h + m(d/h)^2"),
    ("M4M", "Table 2", "learned+m4m", "MNLI-m", {}, "83.19"),
    ("M4M", "Table 2", "deberta", "SQuAD1.1 F1", {"segments": "none"}, "88.84"),
    ("M4M", "Table 3", "m4[scale=2]", "SST-2", {}, "91.97"),
    ("M4M", "Table 4", "m4[share=none]", "SST-2", {}, "91.17"),
    ("M4M", "Table 5", "m4m", "CoLA", {"model": "from roberta-base"}, "47.02"),
    ("M4M", "Table 5", "learned", "STS-B", {"model": "roberta-base"}, "90.33"),
    ("M4M", "Table 6", "m4m", "SQuAD2.0 EM", {"model": "from roberta-base, on C4"}, "81.65"),
    ("M4M", "Table 7", "learned", "SQuAD2.0 F1", {"model": "roberta-large"}, "87.62"),
    ("M4M", "Section 5.2", "sentence-restart", "loss", {}, "4.3"),
    ("M4M", "Section 5.3", "raffel", "SQuAD1.1 F1", {}, "83.43"),
    ("M4M", "Section 5.6", "", "SQuAD2.0 F1", {}, "83.29"),
    ("LFHC", "Table 1", "lfhc[clip=2]", "SNLI", {}, "86.48±0.14"),
    ("LFHC", "Table 1", "xl", "QQP", {}, "71.13±0.48"),
    ("LFHC", "Table 2", "gcdf", "CMRC", {}, "60.63±0.09"),
    ("LFHC", "Table 3", "xl[biases=tied]", "best", {}, "23.89±0.25"),
    ("LFHC", "Table 4", "", "CMRC", {"row": "eval interval"}, "300"),
    ("LFHC", "Table 5", "shaw[clip=8,share=none]", "MNLI", {}, "73.78"),
    ("LFHC", "Table 6", "lfhc[clip=4]", "CMRC", {}, "60.19"),
    ("LFHC", "Table 7", "shaw[clip=16,share=none]", "memory 640", {}, "25.76"),
    ("DIET", "Table 1", "shaw", "small, infer", {}, "+65%"),
    ("DIET", "Table 2", "t5", "STS-B", {"segments": "input"}, "90.1"),
    ("DIET", "Table 2", "diet-abs-lin[slots=32]", "average", {}, "82.7"),
    ("DIET", "Table 3", "diet-abs[rank=128,share=layer-wise]", "TyDiQA EM", {}, "51.5"),
    ("DIET", "Table 4", "shaw[clip=20,values=true]", "en-de", {}, "40.10"),
    ("DIET", "Table 5", "diet-rel[share=head-wise]", "XQuAD F1", {"segments": "head"}, "66.0"),
    ("DIET", "Table 6", "diet-abs[rank=128,share=none]", "parameters", {}, "128.6M"),
    ("DIET", "Table 6", "shaw", "XTREME", {}, "57.9"),
    ("DIET", "Table 7", "", "English, finetune", {"row": "Max Steps"}, "5 or 10 epochs"),
    ("DIET", "Table 8", "diet-abs[rank=64,share=layer-wise]", "MNLI-m", {}, "86"),
    ("DIET", "Table 9", "diet-rel[share=layer-wise]", "CoLA", {"segments": "head"}, "58.8"),
]


@pytest.mark.parametrize(("paper", "table", "encoding", "column", "conditions", "printed"), CELLS)
def test_cells_are_as_printed(
    paper: str, table: str, encoding: str, column: str, conditions: dict[str, Any], printed: str
) -> None:
    (figure,) = figures(paper, table=table, encoding=encoding, column=column, **conditions)
    assert figure.printed == printed


def test_every_table_has_a_cell_typed_by_hand() -> None:
    assert {(paper, table) for paper, table, *_ in CELLS} == {(figure.paper, figure.table) for figure in every()}


#: averages that are not those of their numbers, as docs/which-encoding.md says
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


def test_options_are_matched_as_they_work() -> None:
    rows = figures("DIET", column="QQP", segments="head")
    for label in ("diet-abs[share=layer-wise,rank=128]", "diet-abs[rank=128]"):
        assert published(rows, parse(label)) == 90.8
    assert published(rows, parse("diet-abs")) is None
    assert published(rows, parse("diet-abs"), {"rank": 64}) == 91.1
    assert published(figures("M4M", table="Section 5.6"), parse("learned")) is None  # of no encoding of ours


def test_recipes_read_the_same_tables_without_torch() -> None:
    code = "import sys; from recipes.lib.package import figures; print(len(figures('DIET')), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(figures("DIET"))), "False"]


PLACES = [Path(os.environ.get("POSENC_DATA") or "not given").parent, ROOT.parent / "shared"]
TEXTS = next((folder for place in PLACES if (folder := place / "papers").is_dir()), Path("not given"))
FILES_OF_TEXTS = {"M1-M4": "m1-m4*.txt", "M4M": "m4m*.txt", "LFHC": "lfhc*.txt", "DIET": "diet*.txt"}
#: what the text has by columns, and what is not of the paper
NOT_ROWS_OF_THE_TEXT = {"diet_table1", "m1-m4_readme"}


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text)


def stands_in(row: list[str], line: list[str]) -> bool:
    """Return whether the line contains the numbers of the row in their order."""
    rest = iter(line)
    return all(number in rest for number in row)


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the papers' texts are not there")
@FILES
def test_rows_are_lines_of_the_papers_text(path: Path) -> None:
    if path.stem in NOT_ROWS_OF_THE_TEXT:
        pytest.skip("not a row of the text")
    raw = tomllib.loads(path.read_text("utf-8"), parse_float=str)
    texts = TEXTS.glob(FILES_OF_TEXTS[raw["paper"]])
    lines = [numbers(line) for text in texts for line in text.read_text("utf-8").splitlines()]
    for cells in raw["rows"]:
        row = numbers(" ".join(map(str, cells[len(raw["keys"]) :])))
        assert any(stands_in(row, line) for line in lines), cells
