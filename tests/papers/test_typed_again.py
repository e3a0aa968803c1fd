"""Test that the papers' numbers equal those that were typed again, and that both can be compared with the texts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from compare_papers import TEXTS, cells, differences, found, lines, main, plain, stands_in

from fairseq_posenc.papers.reading import Figure, figures

PAPERS = pytest.mark.parametrize("paper", TEXTS)


def changed(text: str) -> str:
    """Return a text with another last digit."""
    return re.sub(r"\d(?=\D*$)", lambda digit: str((int(digit[0]) + 1) % 10), text)


@PAPERS
def test_every_number_is_the_one_that_was_typed_again(paper: str) -> None:
    assert differences(paper, figures(paper)) == []
    assert len(figures(paper)) > 100


@PAPERS
def test_every_changed_digit_is_found(paper: str) -> None:
    """A ± is compared, too; a change of one number is told where the paper repeats it."""
    stored = figures(paper)
    wrong = [replace(figure, printed=changed(figure.printed)) for figure in stored]
    told = "\n".join(differences(paper, wrong))
    with_digits = [cell for cell in cells(paper) if re.search(r"\d", cell.printed)]
    for cell in with_digits:
        own = found(cell, stored)[0].table == cell.table
        assert (f"{cell}: typed again {cell.printed}, stored {changed(cell.printed)}" in told) or not own, cell
    assert len(told.splitlines()) >= len([figure for figure in stored if re.search(r"\d", figure.printed)])


def test_a_number_that_only_one_table_has_is_found() -> None:
    first, *others = figures("M4M")
    (told,) = differences("M4M", others)
    assert told.endswith("stored nowhere.")
    (told,) = differences("M4M", [first, *others, replace(first, column="invented")])
    assert told.endswith(f"invented: {first.printed} was not typed again.")


def test_a_repeated_number_is_compared_with_the_one_that_is_stored() -> None:
    """DIET's Table 9 repeats numbers of Table 2, and the LFHC paper repeats its best k without their ±."""
    wrong = [changed_if(figure, "DIET", "Table 2", "diet-rel", "CoLA") for figure in figures("DIET")]
    assert {told.partition(",")[0] for told in differences("DIET", wrong)} == {
        "DIET Table 2",
        "DIET Table 8",
        "DIET Table 9",
    }
    wrong = [changed_if(figure, "LFHC", "Table 1", "lfhc[clip=2]", "SNLI") for figure in figures("LFHC")]
    assert {told.partition(",")[0] for told in differences("LFHC", wrong)} == {"LFHC Table 1"}  # only its ± differs


def changed_if(figure: Figure, paper: str, table: str, encoding: str, column: str) -> Figure:
    wanted = (figure.paper, figure.table, figure.encoding, figure.column) == (paper, table, encoding, column)
    return (
        replace(figure, printed=changed(figure.printed))
        if wanted and figure.conditions.get("segments") != "input"
        else figure
    )


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Write texts that print every row in a line of its own."""
    for paper, pattern in TEXTS.items():
        printed = [line.sentence or f"Model   {'  '.join(line.cells)}  <b>x</b>" for line in lines(paper)]
        (tmp_path / pattern.replace("*", "-text")).write_text("\n".join(printed), "utf-8")
    return tmp_path


def test_texts_that_print_every_row_agree(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(texts)]) == 0
    shown = capsys.readouterr().out
    assert "DIET Table 6: 36 numbers; in the text: 6 of 6 rows" in shown
    assert shown.endswith("All numbers agree.\n")


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("m1-m4", "82.17", "82.18"),
        ("m4m", "around 5.8", "around 5.81"),
        ("m1-m4", "mhn^2d", "mhnd"),
        ("lfhc", "±0.08", "±0.09"),
    ],
)
def test_a_text_with_another_digit_is_told(
    name: str, right: str, wrong: str, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = texts / f"{name}-text.txt"
    text = path.read_text("utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong), "utf-8")
    assert main([str(texts)]) == 1
    assert right.split()[-1] in capsys.readouterr().out.partition("no line of the text has")[2]


def test_a_folder_without_texts_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "Name the folder of the papers' texts" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 1
    assert "has no file m4m*.txt" in capsys.readouterr().out


def test_a_cell_is_not_a_part_of_a_longer_number() -> None:
    assert stands_in(["86", "86.8", "91.1"], "DIET-ABS (dp=64)  86/86.8   91.1")
    assert not stands_in(["86"], "86.8")
    assert not stands_in(["6.8"], "86.8")
    assert not stands_in(["91.1", "86.8"], "86.8 91.1")
    formulas = ["m(2n-1)d/h + m(d/h)^2", "834K", "O(mn^2d/h)"]
    assert stands_in(formulas, plain(r"$m(2n - 1)d/h + m(d/h)^2$ 834 $\mathcal{O}(mn^2d/h)$"))
