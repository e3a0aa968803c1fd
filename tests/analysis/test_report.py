"""Test `report`: its page shows the results of the runs, escapes HTML in them, and works without a network."""

from __future__ import annotations

import csv
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support_full_disk import no_larger_files
from support_readonly import read_only
from support_report import row, write_many, write_run

from fairseq_posenc.analysis import results
from fairseq_posenc.analysis.report import charts, papers, tables
from fairseq_posenc.analysis.report.runs import read_runs, thinned
from fairseq_posenc.commands import report

GLUE = "finetune_glue"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def build(output: Path, *runs: Path) -> str:
    """Write a page and return it without Bokeh's own code."""
    assert report.main([*map(str, runs), "--output", str(output)]) == 0
    page = output.read_text(encoding="utf-8")
    return page.replace(charts.library(), "")


def test_the_page_shows_rows_losses_figures_and_commands(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", [row("shaw[clip=4]", 27.31), row("none", 20.5)], {"shaw.clip=4.seed=2": 100})
    lm = {"encoding": "xl", "memory": 16, "perplexity": 24.3, "tokens/s": 900}
    second = write_run(tmp_path / "second", [lm], recipe="lm_wikitext103")
    page = build(tmp_path / "report.html", first, second / "results.json")
    for text in (
        "27.31",
        " ± 0.9",
        "clip=4",
        "abc123def",
        "65,000,000",
        "4,321 words/s",
        "memory 16",
        "24.3",
        "3.11.7",
    ):
        assert text in page
    assert page.count("data:image/png;base64,") == 2
    assert "fairseq-train data --pos-enc none" in page
    assert "translation_wmt18: validation loss" in page
    assert 'id="scores"' in page
    assert len(page) < 300_000


def test_papers_numbers_stand_beside_ours_if_the_text_is_the_papers(tmp_path: Path) -> None:
    rows = [row("diet-rel", 39.0, paper=39.47, **{"differs from the paper": ["updates", "model"]})]
    rows += [row("sinusoidal", 38.0, paper=None, **{"differs from the paper": ["text", "updates"]})]
    same = row("diet-rel", 39.0, direction="cs-en", paper=23.93, **{"differs from the paper": []})
    (again,) = papers.paper_tables(read_runs([write_run(tmp_path / "same", [same])])[0].entries)
    assert [cell.differs for cells in again.rows.values() for cell in cells.values() if cell.ours] == ["comparable"]
    (table,) = papers.paper_tables(read_runs([write_run(tmp_path / "run", rows)])[0].entries)
    ours = {(name, column): cell for name, cells in table.rows.items() for column, cell in cells.items() if cell.ours}
    ((place, cell),) = ours.items()
    assert place[0].startswith("DIET-REL: diet-rel")
    assert place[1] == "en-de"
    assert cell.differs == "updates, model"
    commands = {cell.command for cells in table.rows.values() for cell in cells.values()}
    assert "recipes/translation_wmt18/run.sh --preset table4-vaswani --direction en-de --pos-enc sinusoidal" in commands
    page = build(tmp_path / "report.html", tmp_path / "run")
    assert "39.47" in page
    assert "--direction cs-en" in page


def test_a_score_of_a_task_stands_in_its_column(tmp_path: Path) -> None:
    lm = {"evaluation": "memory 640", "encoding": "lfhc[clip=16]", "perplexity": 24.0, "paper": 23.72}
    settings = {"corpus": "wikitext103"}
    run = write_run(tmp_path / "lm", [lm], recipe="lm_wikitext103", settings=settings)
    tables = papers.paper_tables(read_runs([run])[0].entries)
    filled = [column for table in tables for row in table.rows.values() for column, cell in row.items() if cell.ours]
    assert filled
    assert set(filled) == {"memory 640"}


def test_a_task_is_named_by_the_folder_of_its_corpus(tmp_path: Path) -> None:
    run = write_run(tmp_path / "lm", [{"perplexity": 24.0}], settings={"corpus": "/data/of mine/WIKITEXT-2"})
    assert read_runs([run])[0].entries[0].task == "WIKITEXT-2"


def filled(run: Path) -> set[str]:
    """Return the names of the papers' rows that have a score of ours."""
    tables = papers.paper_tables(read_runs([run])[0].entries)
    return {name for table in tables for name, cells in table.rows.items() for cell in cells.values() if cell.ours}


@pytest.mark.parametrize(("clip", "names"), [(4, ["4: lfhc[clip=4]"]), (16, ["16: lfhc[clip=16]"]), (2, [])])
def test_rows_of_a_paper_with_equal_numbers_are_told_apart_by_options(
    clip: int, names: list[str], tmp_path: Path
) -> None:
    """LFHC prints 73.96 on MNLI for k = 4 and for k = 16."""
    ours = {"task": "MNLI", "encoding": f"lfhc[clip={clip}]", "score": 70.0, "paper": 73.96}
    run = write_run(tmp_path / "run", [ours], recipe="text_classification")
    assert {name.removesuffix(", 8 layers of 512, 8 heads") for name in filled(run)} == set(names)


@pytest.mark.parametrize("segments", ["input", "head", "none"])
def test_rows_of_a_paper_with_equal_numbers_are_told_apart_by_segments(segments: str, tmp_path: Path) -> None:
    """DIET prints 91.0 on QQP for diet-rel with segments at the input and per head, and has no row without segments."""
    # share=none is the default, which the paper's row does not list
    labels = {"none": "", "input": "+segments-input", "head": "+segments"}
    label = f"diet-rel[share=none]{labels[segments]}"
    run = write_run(tmp_path / "run", [{"task": "QQP", "encoding": label, "score": 90.0, "paper": "91.0"}], recipe=GLUE)
    expected = [f"DIET-REL: diet-rel, BERT-base, English, {segments}, 128"] if labels[segments] else []
    assert filled(run) == set(expected)


def test_a_number_of_several_models_stands_in_the_rows_of_both(tmp_path: Path) -> None:
    """A checkpoint does not say whether its training started from another model; the recipe names the models."""
    paper = "87.31 (roberta-base); 86.99 (from roberta-base)"
    rows = [{"task": "MNLI-mm", "encoding": "learned", "score": 80.0, "paper": paper}]
    run = write_run(tmp_path / "run", rows, recipe=GLUE)
    assert {name.rpartition(", none")[0] for name in filled(run)} == {
        "RoBERTa: learned, roberta-base",
        "RoBERTa-ABS: learned, from roberta-base",
    }


def test_the_average_of_a_paper_has_our_average(tmp_path: Path) -> None:
    rows = [{"task": "average", "encoding": "t5+segments-input", "score": 80.0, "paper": "85.2"}]
    run = write_run(tmp_path / "run", rows, recipe=GLUE)
    assert filled(run) == {"Raffel et al. (2020): t5, BERT-base, English, input, 128"}


def test_numbers_of_test_sets_have_their_reason(tmp_path: Path) -> None:
    label = "learned+segments-input"
    rows = [
        {"task": "QQP", "encoding": label, "score": 80.0, "paper": "71.2 (BERT-base (Devlin et al., 2018), test set)"}
    ]
    run = write_run(tmp_path / "run", rows, recipe=GLUE)
    assert filled(run) == set()
    assert "whose labels only GLUE&#x27;s server has" in build(tmp_path / "report.html", run)


def test_training_losses_of_pretraining_stand_beside_the_papers(tmp_path: Path) -> None:
    losses = {"none": (5.9, 5.8), "sentence-restart": (4.2, 4.3), "shaw": (1.5, None)}
    rows = [
        {"task": "", "encoding": name, "perplexity": 90.0, "training loss": ours, "paper's training loss": paper}
        for name, (ours, paper) in losses.items()
    ]
    entries = read_runs([write_run(tmp_path / "run", rows, recipe="pretrain_mlm")])[0].entries
    (table,) = papers.paper_tables(entries)
    assert table.title == "M4M, Section 5.2 (loss)"
    cells = {name: cells["loss"] for name, cells in table.rows.items()}
    ours = {name: cell.ours and cell.ours.value for name, cell in cells.items()}
    assert ours == {
        "without any position embedding: none, RoBERTa-base": 5.9,
        "real absolute positions: sentence-restart, RoBERTa-base": 4.2,
        "a RoBERTa-base model normally: learned, RoBERTa-base": None,
    }
    (command,) = {cell.command for cell in cells.values() if cell.command}
    assert command == "recipes/pretrain_mlm/run.sh --preset m4m-unsuccessful --books BOOKS --pos-enc learned"
    assert [entry.main and entry.main.column for entry in entries] == ["perplexity"] * 3


def test_losses_belong_to_the_row_with_the_longest_name(tmp_path: Path) -> None:
    rows = [row("shaw", 1.0), row("shaw[clip=4]", 2.0)]
    runs = read_runs([write_run(tmp_path / "run", rows, {"shaw.clip=4.s1": 50, "shaw.s2": 50, "other": 50})])
    assert {item.name: item.entries for item in runs[0].losses} == {
        "shaw.clip=4.s1": [1],
        "shaw.s2": [0],
        "other": [0, 1],
    }


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / part / "run", [row("none", 1.0)]) for part in "ab"]
    assert [run.name for run in read_runs([*folders, folders[0]])] == ["a/run", "b/run"]


def test_hostile_text_is_shown_as_text(tmp_path: Path) -> None:
    texts = dict.fromkeys(("encoding", "model", "direction", "language", "command", "commit"), HOSTILE)
    facts = {"recipe": HOSTILE, "command": HOSTILE, "commit": HOSTILE, "seed": HOSTILE}
    facts |= {"versions": {HOSTILE: HOSTILE}, "machine": {HOSTILE: [HOSTILE]}, "settings": {"task": HOSTILE}}
    rows = [row("none", 1.0) | texts, row("none", 2.0) | texts]
    run = write_run(tmp_path / "<script>alert(3)<", rows, {"<img src=x>": 100}, **facts)
    page = build(tmp_path / "report.html", run)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("<script") == page.count("</script>") == 4
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    (data,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    assert HOSTILE in json.dumps(json.loads(data), ensure_ascii=False).replace('\\"', '"')


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    page = build(tmp_path / "report.html", write_run(tmp_path / "run", [row("none", 1.0)], {"none": 100}))
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?\s*(?:https?:)?//|@import|url\(", page)
    assert "default-src 'none'" in page


def test_rows_may_lack_columns(tmp_path: Path) -> None:
    odd = {"encoding": None, "BLEU": "high", "parameters": True, "seeds": "many", "minutes": float("nan"), "task": 7}
    page = build(tmp_path / "report.html", write_run(tmp_path / "run", [odd, {}], settings=None, versions=7))
    assert page.count("unknown") >= 2
    assert "high" not in page


def test_names_of_points_read_towards_the_middle_of_the_chart(tmp_path: Path) -> None:
    names = ["none", "learned", "shaw", "rope", "t5", "alibi", "m4[clip=64]+segments"]
    rows = [row(name, 20.0, minutes=number + 1.0) for number, name in enumerate(names)]
    (chart,) = charts.cost_charts(read_runs([write_run(tmp_path / "run", rows)])[0].entries)
    assert charts._sides([1.0, float("nan"), 2.0, 3.0]) == ["left", "left", "left", "right"]
    assert charts._sides([float("nan")]) == ["left"]
    text = json.dumps(chart.item)
    assert '"minutes side"' in text
    colours = list(chart.legend.values())
    assert colours[0] == colours[6]
    page = build(tmp_path / "report.html", tmp_path / "run")
    assert page.count('class="swatch again"') == 1


def test_the_axis_shows_options_and_settings_with_several_values(tmp_path: Path) -> None:
    short, long = [row("m4[clip=4]", 20.0), row("none", 18.0)], [row("m4[clip=64,share=none]", 22.0)]
    runs = [
        write_run(tmp_path / "short", short, settings={"epochs": 3, "longest": 128, "corpus": "x"}),
        write_run(tmp_path / "long", long, settings={"epochs": 3, "longest": 512}),
    ]
    entries = [entry for run in read_runs(runs) for entry in run.entries]
    assert charts.axes(entries) == {
        **charts.COSTS,
        "number longest": "longest",
        "number clip": "clip",
    }
    (chart,) = charts.cost_charts(entries)
    assert '["number clip", [4.0, {"type": "number", "value": "nan"}, 64.0]]' in json.dumps(chart.item)


def main_score(run: Path) -> results.Score:
    (entry,) = read_runs([run])[0].entries
    assert entry.main
    return entry.main


def test_csv_and_latex_are_escaped(tmp_path: Path) -> None:
    rows = [row("=1+1", 27.3), row("a&b_c%[x\\y{z}]", 20.0, direction="#$~^<>\n|"), row("none", 1.0, **{"±": None})]
    runs = read_runs([write_run(tmp_path / "run", rows)])
    table = list(csv.DictReader(tables.to_csv(runs[0].entries).splitlines()))
    assert [line["Encoding"] for line in table] == ["'=1+1", "a&b_c%[x\\y{z}]", "none"]
    assert [line["BLEU ±"] for line in table] == ["0.9", "0.9", ""]
    assert table[0]["Speed unit"] == "words/s"
    latex = tables.to_latex(runs[0].entries)
    assert r"a\&b\_c\%[x\textbackslash{}y\{z\}] & " in latex
    assert r"\#\$\textasciitilde{}\textasciicircum{}\textless{}\textgreater{} |" in latex
    assert "27.3 $\\pm$ 0.9" in latex
    assert latex.count("\n") == len(rows) + 7


def test_several_trainings_have_the_interval_of_their_mean(tmp_path: Path) -> None:
    seeds = {"seeds": [1, 2, 3], "BLEU of seeds": [26.0, 27.0, 28.0]}
    score = main_score(write_run(tmp_path / "run", [row("none", 27.0, **seeds)]))
    assert score.seeds == 3
    assert score.within == pytest.approx(2.4841, abs=1e-4)


def test_a_median_remains_the_score_and_has_no_interval_of_the_mean(tmp_path: Path) -> None:
    row = {"task": "CoLA", "score": 93.0, "mean": 90.0, "score of seeds": [84.0, 93.0, 93.0]}
    row |= {"encoding": "diet-rel+segments", "paper": "60.3", "seeds": 3}
    run = write_run(tmp_path / "run", [row], recipe="finetune_glue")
    score = main_score(run)
    assert (score.value, score.within, score.seeds, score.median) == (93.0, None, 3, True)
    assert "<b>93 (median of 3)</b>" in build(tmp_path / "report.html", run)


def test_long_curves_are_thinned_to_their_end() -> None:
    points = [(update, 1.0) for update in range(1000)]
    assert len(thinned(points)) <= 151
    assert thinned(points)[-1] == points[-1]
    assert thinned(points[:3]) == points[:3]


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, "does not exist"), ("{", "is not the result"), ('{"recipe": "x", "results": [7]}', "is not the result")],
)
def test_bad_results_are_named_in_one_line(content: str | None, text: str, tmp_path: Path, capsys: Any) -> None:
    if content is not None:
        (tmp_path / "results.json").write_text(content, encoding="utf-8")
    assert report.main([str(tmp_path), "--output", str(tmp_path / "out" / "report.html")]) == 1
    error = capsys.readouterr().err
    assert text in error
    assert str(tmp_path) in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_broken_log_is_named(tmp_path: Path, capsys: Any) -> None:
    run = write_run(tmp_path / "run", [row("none", 1.0)], {"none": 50})
    (run / "logs" / "none.train.log").write_text('x | train_inner | {"loss": "1"}\n', encoding="utf-8")
    assert report.main([str(run), "--output", str(tmp_path / "report.html")]) == 1
    assert "none.train.log is not a log" in capsys.readouterr().err


def test_a_read_only_folder_keeps_its_page_and_is_named(tmp_path: Path, capsys: Any) -> None:
    run, folder = write_run(tmp_path / "run", [row("none", 1.0)], {"none": 50}), tmp_path / "out"
    folder.mkdir()
    (folder / "report.csv").write_text("of an earlier run")
    with read_only(folder):
        assert report.main([str(run), "--output", str(folder / "report.html")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("report: ")
    assert str(folder) in error
    assert error.count("\n") == 1
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"report.csv": "of an earlier run"}


def test_without_bokeh_the_error_says_what_to_install(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.resources", None)
    run = write_run(tmp_path / "run", [row("none", 1.0)], {"none": 50})
    assert report.main([str(run), "--output", str(tmp_path / "report.html")]) == 1
    assert "pip install bokeh" in capsys.readouterr().err
    assert not list(tmp_path.glob("report.*"))


def test_the_output_is_a_page(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        report.main([str(tmp_path), "--output", "report.pdf"])
    assert "Try report.html" in capsys.readouterr().err


def test_fifty_runs_take_seconds(tmp_path: Path) -> None:
    runs = write_many(tmp_path / "runs")
    began = time.process_time()
    page = build(tmp_path / "report.html", *runs)
    assert time.process_time() - began < 10
    assert page.count("<tr data-entry=") == 100
    assert len(page) < 2_000_000


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
