"""Test `report`: its page shows the results of the runs, escapes HTML in them, and works without a network."""

from __future__ import annotations

import csv
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support_full_disk import no_larger_files
from support_report import row, write_run

from fairseq_posenc.analysis.report import charts, papers, tables
from fairseq_posenc.analysis.report.runs import Entry, read_runs, thinned
from fairseq_posenc.commands import report

GLUE = "finetune_glue"
CASES = tomllib.loads(Path(__file__).with_name("paper_rows.toml").read_text(encoding="utf-8"))["case"]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def build(output: Path, *runs: Path) -> str:
    """Write a page and return it without Bokeh's own code."""
    assert report.main([*map(str, runs), "--output", str(output)]) == 0
    page = output.read_text(encoding="utf-8")
    return page.replace(charts.library(), "")


def read(folder: Path, rows: list[dict[str, Any]], **facts: Any) -> list[Entry]:
    return read_runs([write_run(folder, rows, **facts)])[0].entries


def test_the_page_shows_rows_losses_figures_and_commands(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", [row("shaw[clip=4]", 27.31), row("none", 20.5)], {"shaw.clip=4.seed=2": 100})
    rows = [{"encoding": "xl", "evaluation": "memory 16", "perplexity": 24.3}]
    second = write_run(tmp_path / "second", rows, recipe="lm_wikitext103", settings={"corpus": "/data/of mine/WIKI"})
    page = build(tmp_path / "report.html", first, second / "results.json")
    texts = ["27.31", " ± 0.9", "clip=4", "abc123def", "65,000,000", "4,321", "WIKI, memory 16", "24.3", "3.11.7"]
    texts += ["fairseq-train data --pos-enc none", "translation_wmt18: validation loss", 'id="scores"']
    assert [text for text in texts if text not in page] == []
    assert page.count("data:image/png;base64,") == 2
    assert len(page) < 300_000


def test_the_page_loads_nothing_and_shows_hostile_text_as_text(tmp_path: Path) -> None:
    texts = dict.fromkeys(("encoding", "model", "direction", "copy mechanism", "command", "commit"), HOSTILE)
    facts = {"recipe": HOSTILE, "command": HOSTILE, "commit": HOSTILE, "seed": HOSTILE}
    facts |= {"versions": {HOSTILE: HOSTILE}, "machine": {HOSTILE: [HOSTILE]}, "settings": {"corpus": HOSTILE}}
    rows = [row("none", 1.0) | texts, row("none", 2.0) | texts]
    page = build(
        tmp_path / "report.html", write_run(tmp_path / "<script>alert(3)<", rows, {"<img src=x>": 99}, **facts)
    )
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("<script") == page.count("</script>") == 4
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    (data,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    assert HOSTILE in json.dumps(json.loads(data), ensure_ascii=False).replace('\\"', '"')
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?\s*(?:https?:)?//|@import|url\(", page)
    assert "default-src &#39;none&#39;" in page


def test_rows_may_lack_columns(tmp_path: Path) -> None:
    odd = {"encoding": None, "BLEU": "high", "parameters": True, "seeds": "many", "minutes": float("nan"), "task": 7}
    page = build(tmp_path / "report.html", write_run(tmp_path / "run", [odd, {}], settings=None, versions=7))
    assert page.count("unknown") >= 2
    assert "high" not in page


# -- the papers' numbers ---------------------------------------------------------------------------------------


def test_a_number_of_a_paper_has_our_score_with_what_differs_or_a_command(tmp_path: Path) -> None:
    rows = [row("diet-rel", 39.0, paper=39.47, **{"differs from the paper": ["updates", "model"]})]
    rows += [row("diet-rel", 39.0, direction="cs-en", paper=23.93, **{"differs from the paper": []})]
    rows += [row("sinusoidal", 38.0, paper=None, **{"differs from the paper": ["text", "updates"]})]
    (table,) = papers.paper_tables(read(tmp_path / "run", rows))
    cells = [(name, column, cell) for name, line in table.rows.items() for column, cell in line.items()]
    ours = {(name.partition(",")[0], column): cell.differs for name, column, cell in cells if cell.ours}
    assert ours == {("DIET-REL: diet-rel", "en-de"): "updates, model", ("DIET-REL: diet-rel", "cs-en"): "comparable"}
    command = "recipes/translation_wmt18/run.sh --preset table4-vaswani --direction en-de --pos-enc sinusoidal"
    assert command in {cell.command for *_, cell in cells}
    assert "39.47" in build(tmp_path / "report.html", tmp_path / "run")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["row"]["encoding"])
def test_our_score_stands_in_the_rows_of_the_same_model(case: dict[str, Any], tmp_path: Path) -> None:
    row = {"score": 80.0, **case["row"]}
    entries = read(tmp_path, [row], recipe=case["recipe"], settings=case.get("settings", {}))
    rows = [line for table in papers.paper_tables(entries) for line in table.rows.items()]
    filled = {(name, column) for name, cells in rows for column, cell in cells.items() if cell.ours}
    assert {name for name, _ in filled} == {*case["names"]}
    assert "column" not in case or {column for _, column in filled} == {case["column"]}
    assert {cell.reason for _, cells in rows for cell in cells.values() if "test sets" in cell.reason} or (
        case["recipe"] != GLUE
    )


# -- runs, scores and charts -----------------------------------------------------------------------------------


def test_losses_belong_to_the_row_with_the_longest_name(tmp_path: Path) -> None:
    rows = [row("shaw", 1.0), row("shaw[clip=4]", 2.0)]
    runs = read_runs([write_run(tmp_path / "run", rows, {"shaw.clip=4.s1": 50, "shaw.s2": 50, "other": 50})])
    losses = {item.name: item.entries for item in runs[0].losses}
    assert losses == {"shaw.clip=4.s1": [1], "shaw.s2": [0], "other": [0, 1]}
    points = [(update, 1.0) for update in range(1000)]
    assert len(thinned(points)) <= 151
    assert thinned(points)[-1] == points[-1]


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / part / "run", [row("none", 1.0)]) for part in "ab"]
    assert [run.name for run in read_runs([*folders, folders[0]])] == ["a/run", "b/run"]


def test_a_median_remains_the_score_and_only_a_mean_has_an_interval(tmp_path: Path) -> None:
    mean = row("none", 27.0, seeds=[1, 2, 3], **{"BLEU of seeds": [26.0, 27.0, 28.0]})
    median = {"task": "CoLA", "score": 93.0, "mean": 90.0, "score of seeds": [84.0, 93.0, 93.0]}
    median |= {"encoding": "diet-rel+segments", "paper": "60.3", "seeds": 3}
    (first,), (second,) = read(tmp_path / "mean", [mean]), read(tmp_path / "median", [median], recipe=GLUE)
    assert first.main
    assert second.main
    assert first.main.seeds == 3
    assert first.main.within == pytest.approx(2.4841, abs=1e-4)
    assert second.main[1:] == (93.0, None, 3, True)
    assert "<b>93 (median of 3)</b>" in build(tmp_path / "report.html", tmp_path / "median")


def test_the_axis_shows_options_and_settings_with_several_values(tmp_path: Path) -> None:
    short, long = [row("m4[clip=4]", 20.0), row("none", 18.0)], [row("m4[clip=64,share=none]", 22.0)]
    entries = read(tmp_path / "short", short, settings={"epochs": 3, "longest": 128, "corpus": "x"})
    entries += read(tmp_path / "long", long, settings={"epochs": 3, "longest": 512, "corpus": "x"})
    assert charts.axes(entries) == [*charts.COSTS, "longest", "clip"]
    (chart,) = charts.cost_charts(entries)
    assert '["x clip", [4.0, {"type": "number", "value": "nan"}, 64.0]]' in json.dumps(chart.item)


def test_csv_and_latex_are_escaped(tmp_path: Path) -> None:
    rows = [row("=1+1", 27.3), row("a&b_c%[x\\y{z}]", 20.0, direction="#$~^<>\n|"), row("none", 1.0, **{"±": None})]
    entries = read(tmp_path / "run", rows)
    table = list(csv.DictReader(tables.to_csv(entries).splitlines()))
    assert [line["Encoding"] for line in table] == ["'=1+1", "a&b_c%[x\\y{z}]", "none"]
    assert [line["BLEU ±"] for line in table] == ["0.9", "0.9", ""]
    latex = tables.to_latex(entries)
    assert r"a\&b\_c\%[x\textbackslash{}y\{z\}] & " in latex
    assert r"\#\$\textasciitilde{}\textasciicircum{}\textless{}\textgreater{} |" in latex
    assert "27.3 $\\pm$ 0.9" in latex
    assert latex.count("\n") == len(rows) + 7


# -- errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("results.json", None, "does not exist"),
        ("results.json", '{"recipe": "x", "results": [7]}', "is not the result"),
        ("logs/none.train.log", 'x | train_inner | {"loss": "1"}\n', "none.train.log is not a log"),
    ],
)
def test_bad_files_are_named_in_one_line(
    name: str, content: str | None, text: str, tmp_path: Path, capsys: Any
) -> None:
    path = write_run(tmp_path / "run", [row("none", 1.0)], {"none": 50}) / name
    path.write_text(content, encoding="utf-8") if content else path.unlink()
    assert report.main([str(tmp_path / "run"), "--output", str(tmp_path / "out" / "report.html")]) == 1
    error = capsys.readouterr().err
    assert text in error
    assert str(path) in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_without_bokeh_the_error_says_what_to_install(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.resources", None)
    run = write_run(tmp_path / "run", [row("none", 1.0)], {"none": 50})
    assert report.main([str(run), "--output", str(tmp_path / "report.html")]) == 1
    assert "pip install bokeh" in capsys.readouterr().err
    assert not list(tmp_path.glob("report.*"))


def test_a_full_disk_keeps_the_old_page_and_its_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the page is larger than the limit, so its tables could be written."""
    run, output = write_run(tmp_path / "run", [row("none", 20.5)]), tmp_path / "pages" / "report.html"
    build(output, run)
    old = {path: path.read_bytes() for path in output.parent.iterdir()}
    write_run(tmp_path / "other", [row("shaw", 27.3)])
    with no_larger_files(50_000):
        assert report.main([str(tmp_path / "other"), "--output", str(output)]) == 1
    problem = (
        rf"report: {output}: the disk is full \(File too large\)\. .* needs [\d,]{{6,}} bytes, and [\d,]+ bytes are"
    )
    assert re.fullmatch(rf"{problem} free in {output.parent}\. .*\n", capsys.readouterr().err)
    assert {path: path.read_bytes() for path in output.parent.iterdir()} == old
