"""Test that the page on cost contains all results next to the paper's numbers, and that bad results are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.commands.bench import page

from .scene import Clock


def test_the_page_has_every_row_and_the_numbers_of_the_paper(run: Any, time: Clock, tmp_path: Path) -> None:
    arguments = "--encodings", "shaw", "diet-rel", "--rounds", "1", "--output", str(tmp_path)
    _, rows = run("--parts", "layer,model,memory,decode", *arguments)
    for number, row in enumerate(
        rows
    ):  # pretend that the shape is that of the DIET paper, and give each row its own ratio
        row["shape"], row["ratio"] = "base", 1 + number / 100
    results = tmp_path / "bench.json"
    results.write_text(json.dumps(rows))
    assert page.main([str(results), "--output", str(tmp_path / "cost.md")]) == 0
    text = re.sub(" +", " ", (tmp_path / "cost.md").read_text())
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")
    for row in rows:
        assert f"{row['ratio']:.3f}" in text
    shaw = {r["what"]: r["ratio"] for r in rows if (r["encoding"], r["mode"], r["length"]) == ("shaw", "infer", 512)}
    layer, model = shaw["layer"], shaw["model"]
    assert layer != model
    assert f"| base, infer | 1.33 | {layer:.2f} | {model:.2f} | 1.19 | not measured | not measured |" in text
    assert "| Shaw | 1.07 |" in text
    assert "were not measured on a GPU" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "bench.json that bench --output wrote"),
        ('[{"encoding": "shaw"}]', "the measurements lack .*Run bench again with the installed version"),
    ],
)
def test_invalid_results_are_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(SystemExit, match=rf"bad.json: .*{message}"):
        page.main([str(tmp_path / "bad.json"), "--output", str(tmp_path / "cost.md")])
    assert not (tmp_path / "cost.md").exists()


def test_results_without_layers_have_no_figure(run: Any, time: Clock, tmp_path: Path) -> None:
    run("--parts", "memory", "--encodings", "shaw", "--output", str(tmp_path))
    assert page.main([str(tmp_path / "bench.json"), "--output", str(tmp_path / "cost.md")]) == 1
