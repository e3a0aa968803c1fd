"""Test the recipes' own figures: nothing is cut off, no two curves look alike, and the data are next to each figure."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from support_figures import cut, looks

from fairseq_posenc.analysis import style
from recipes.lib import curves

LONG = "shaw[clip=16,share=layer-wise]+segments"
NAMES = ["none", "learned", "sinusoidal", LONG, "rope", "t5", "m4[clip=64]", "gcdf", "alibi", "lfhc[clip=2]"]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    """Return the figures that were saved."""
    figures, save = list[Figure](), style.save

    def kept(figure: Figure, *arguments: object) -> list[Path]:
        figures.append(figure)
        return save(figure, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(style, "save", kept)
    monkeypatch.setattr(curves, "save", kept)
    yield figures
    assert [cut(figure) for figure in figures] == [[]] * len(figures)


def table(path: Path) -> list[dict[str, str]]:
    """Return the data of a figure, which is also a PNG and a PDF."""
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    with path.with_suffix(".csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_no_two_curves_look_alike(drawn: list[Figure], tmp_path: Path) -> None:
    points = {name: [(update, 7.0 - number / 10) for update in (1, 2)] for number, name in enumerate(NAMES * 2)}
    curves.draw(points, "perplexity", tmp_path / "curves.png", log=True, floor=("a model of frequencies", 9.0))
    assert len(set(looks(drawn[0]))) == len(NAMES)
    assert drawn[0].axes[0].get_ylabel() == "perplexity (logarithmic)"
    assert table(tmp_path / "curves.png")[0] == {"curve": "none", "updates": "1", "perplexity": "6.0"}
