"""Test the curves of a recipe: nothing is cut off, no two look alike, and the data are next to the figure."""

from __future__ import annotations

import csv
from pathlib import Path
from unittest import mock

import pytest
from support_figures import cut, looks

from recipes.lib import curves

NAMES = ["none", "learned", "sinusoidal", "shaw[clip=16,share=layer-wise]+segments", "rope", "t5", "m4[clip=64]"]
NAMES += ["gcdf", "alibi", "lfhc[clip=2]"]


def test_no_two_curves_look_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = mock.Mock(wraps=curves.save)
    monkeypatch.setattr(curves, "save", saved)
    points = {name: [(update, 7.0 - number / 10) for update in (1, 2)] for number, name in enumerate(NAMES * 2)}
    path = tmp_path / "curves.png"
    curves.draw(points, "perplexity", path, log=True, floor=("a model of frequencies", 9.0))
    figure = saved.call_args.args[0]
    assert cut(figure) == []
    assert len(set(looks(figure))) == len(NAMES)
    assert figure.axes[0].get_ylabel() == "perplexity (logarithmic)"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    with path.with_suffix(".csv").open(encoding="utf-8") as file:
        assert next(csv.DictReader(file)) == {"curve": "none", "updates": "1", "perplexity": "6.0"}
