"""Test that the tables of the documentation repeat the papers' numbers."""

from __future__ import annotations

from collections.abc import Iterator

from support_choosing import PAGES, cells

from fairseq_posenc.papers.matching import PRETRAINED
from fairseq_posenc.papers.reading import figures
from recipes.lib.encodings import published

CHOOSING, F1 = "choosing", "SQuAD1.1 F1"


def rows(page: str, head: str) -> Iterator[tuple[str, list[str]]]:
    """Return the first cell of each row of a page's table with the numbers of the row."""
    for first, *others in cells(PAGES[page], head):
        yield first, others


def shown(paper: str, encoding: str, column: str, digits: int = 2, **conditions: object) -> str:
    """Return a number of the paper as the page writes it."""
    figure = published(figures(paper, column=column, **conditions), encoding, PRETRAINED)
    assert figure
    return f"{figure.value:.{digits}f}"


def test_m4s_ranges_and_sharing() -> None:
    columns = ("MNLI-m", "SST-2", F1)
    scales = [[shown("M4M", f"m4[scale={scale}]", column) for column in columns] for scale in (1, 2, 3, 4, 6, 9)]
    ranges = dict(rows(CHOOSING, "M4M Table 3"))
    assert ranges == {name: [*map(of, zip(*scales, strict=True))] for name, of in (("lowest", min), ("highest", max))}
    sharing = {first: cell for first, (cell, _) in rows(CHOOSING, "about")}["heads that share"]
    shared, own = ([shown("M4M", f"m4[share={share}]", name) for name in columns] for share in ("head-wise", "none"))
    assert "MNLI-m {}, SST-2 {}, F1 {}; with separate heads {}, {}, {}".format(*shared, *own) in sharing


# --- where the papers disagree


def test_disagreements() -> None:
    cells_of = dict(rows(CHOOSING, "about"))
    shaw = shown("DIET", "shaw", "average", 1, model="BERT-base, 100 languages")
    assert cells_of["`shaw` on XTREME"][0].startswith(shaw)
    assert cells_of["`shaw` on XTREME"][1].startswith(shown("DIET", "shaw", "XTREME", 1))
    text, table = (figure.printed for figure in figures("M4M", column="SQuAD2.0 F1") if figure.row == "RoBERTa-ABS")
    assert [cell.split()[0] for cell in cells_of["RoBERTa-ABS on SQuAD2.0"]] == [text, table]
    assert cells_of["parameters of `shaw`"][0].startswith(
        figures("M4M", column="parameters", encoding="shaw")[0].printed
    )


def test_the_order_of_m4m_on_the_page_of_masked_language_models() -> None:
    names = {"M4": "m4", "Shaw": "shaw", "M2": "m2", "absolute": "learned"}
    order = ", ".join(f"{name} {shown('M4M', encoding, F1, model='RoBERTa-base')}" for name, encoding in names.items())
    assert f"Table 2: {order} F1 on SQuAD 1.1" in " ".join(PAGES["masked-lm"].split())
