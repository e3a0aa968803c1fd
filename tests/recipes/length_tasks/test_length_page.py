"""Test that the results of the length tasks are copied to the documentation: tables, differences, figures and rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from recipes.length_tasks import page
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json


def row(encoding: str, beyond: list[float], **p: float | None) -> Row:
    solved = sum(value >= 90 for value in beyond)
    mean, sd = sum(beyond) / len(beyond), 1.0 if len(beyond) > 1 else None
    scores = {
        "within": 95.0,
        "beyond": mean,
        "beyond of seeds": beyond,
        "sd": sd,
        "solved": solved,
        "seeds": len(beyond),
    }
    return {"task": "copy", "encoding": encoding, **scores, "p none": None, "p rope": None} | p


def test_the_page_shows_scores_and_what_is_significant() -> None:
    rows = [
        row("none", [20.0, 22.0], **{"p rope": 0.01}),
        row("rope", [90.0, 92.0], **{"p none": 0.01}),
        row("t5", [21.0, 30.0], **{"p none": 0.5, "p rope": 0.04}),
        row("m4", [50.0]),
    ]
    lines = page.table(rows, "beyond").splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]] == [
        ["`none`", "21.0 ± 1.0", "2"],
        ["`rope`", "91.0 ± 1.0 (2)", "2"],
        ["`t5`", "25.5 ± 1.0", "2"],
        ["`m4`", "50.0", "1"],
    ]
    assert [*page.differences(rows, "none"), *page.differences(rows, "rope")] == [
        "- `copy`: better than `none`: `rope`; no significant difference from `none`: `t5`.",
        "- `copy`: worse than `rope`: `none`, `t5`.",
    ]


def test_seeds_without_variation_are_listed() -> None:
    rows = [
        row("none", [0.0, 0.0]),
        row("shaw", [0.0, 0.0], **{"p none": 1.0}),
        row("fire", [100.0, 100.0]),
        row("m4", [50.0]),
    ]
    assert [*page.differences(rows, "none")] == [
        "- `copy`: no significant difference from `none`: `shaw`; different from `none` in every seed, but the test is "
        "undefined without variation: `fire`."
    ]


def test_what_papers_report_is_shown_for_the_tasks_of_the_run() -> None:
    heading, text = page.printed(["copy", "scan-length"])
    assert heading == "### Numbers of the papers"
    assert text.startswith("- `scan-length`, beyond (Lake and Baroni 2018): 13.8 % with")
    assert page.printed(["copy"]) == []


def test_the_results_of_a_run_are_copied_to_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs, run = tmp_path / "docs", tmp_path / "run"
    for folder in (docs / "figures", run):
        folder.mkdir(parents=True)
    for name, value in {"DOCS": docs, "PAGE": docs / "page.md", "ROWS": docs / "rows.json"}.items():
        monkeypatch.setattr(page, name, value)
    monkeypatch.setattr(sys, "argv", ["page", "--run", str(run)])
    facts = {"command": "recipes/length_tasks/run.sh", "commit": "1a2b", "versions": {"torch": "2.13"}, "seeds": [1]}
    facts |= {"machine": {"cores": 2}, "minutes": {"train:copy.none": 0.5}, "settings": {"jobs": 2}}
    (run / "result.json").write_text(json.dumps(facts | {"results": [row("none", [20.0])]}))
    for figure in page.FIGURES:
        Image.new("RGBA", (20, 10), "red").save(run / figure)
    (docs / "page.md").write_text("# Page\n")
    with pytest.raises(SystemExit, match="has 0 places between"):
        page.main()
    assert not (docs / "rows.json").exists()
    (docs / "page.md").write_text("# Page\n<!-- results -->\nold\n<!-- end -->\nafter\n")
    page.main()
    text = (docs / "page.md").read_text()
    assert "old" not in text
    assert text.endswith("<!-- end -->\nafter\n")
    assert "- `copy`: nothing is compared with `rope`." in text
    assert "took 30 seconds in the median and 30 seconds at most (`train:copy.none`), on 2 CPU cores" in text
    assert "Together they took 0.0 hours. torch 2.13, commit 1a2b." in " ".join(text.split())
    assert read_json(docs / "rows.json")["results"][0]["encoding"] == "none"
    assert {path.name for path in (docs / "figures").iterdir()} == set(page.FIGURES.values())
    for path in (docs / "figures").iterdir():
        with Image.open(path) as picture:
            assert (picture.size, picture.convert("RGB").getpixel((5, 5))) == ((20, 10), (255, 0, 0))


def test_different_numbers_of_seeds_are_shown() -> None:
    rows = [row("none", [20.0, 22.0, 24.0]), row("none", [20.0, 22.0]) | {"task": "sort"}]
    assert page.table(rows, "within").splitlines()[-1].strip("|").split("|")[-1].strip() == "2 to 3"
