"""Test the scores of the question generation recipe: those of models, of baselines, and their comparison."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import prepare_questions
import pytest

from fairseq_posenc import metrics
from recipes.lib import report
from recipes.lib.curves import figures
from recipes.lib.encodings import parse
from recipes.lib.invented import questions as builtin
from recipes.lib.recipe import shown
from recipes.lib.settings import load
from recipes.question_generation import baselines, compare, score
from recipes.question_generation.__main__ import COLUMNS, QUESTION_GENERATION
from recipes.question_generation.settings import Variant
from recipes.question_generation.sources import PUBLISHED


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare the built-in questions as the preset smoke does."""
    folder = tmp_path_factory.mktemp("questions")
    run(builtin, "--output", folder / "builtin", "--seed", 1)
    plan = QUESTION_GENERATION.plan(load(QUESTION_GENERATION, "smoke"), folder, shown(folder))
    command = next(stage.command for stage in plan.stages() if stage.kind == "prepare")
    words = command[command.index("--bad") :]
    files = ["--corpus", str(folder / "builtin"), "--output", str(folder / "data")]
    assert prepare_questions.main([*files, *words]) == 0
    return folder / "data"


def lines(data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / "valid.surface.jsonl").read_text("utf-8").splitlines()]


def run(module: Any, *words: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module.__name__, *map(str, words)])
        module.main()


def test_the_built_in_questions_need_copies(data: Path) -> None:
    record = json.loads((data / "questions.json").read_text())
    assert record["splits"]["train"]["items"] == 600
    assert record["splits"]["valid"]["items"] == 60
    assert record["splits"]["valid"]["target copied"] > 50
    assert record["problems"] == {}


def test_an_item_without_a_question_is_not_scored_as_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "generate-valid.txt"
    path.write_text("H-0\t-1\twho ?\nH-2\t-1\twhen ?\n")
    with pytest.raises(SystemExit, match=r"questions of 1 items are missing \(the first are 1"):
        score.generated(path)


def test_generated_pieces_become_text_and_scores(data: Path, tmp_path: Path) -> None:
    items = lines(data)
    # the words of each reference as fairseq-generate prints them, in another order; copies are printed as words
    pieces = ["when was the mill of zorn built ?"] * len(items)
    pieces[0] = f"who is {items[0]['unknown'][0]} ?"
    text = "".join(f"S-{n}\tx\nH-{n}\t-0.5\t{item}\nD-{n}\t-0.5\tx\n" for n, item in reversed(list(enumerate(pieces))))
    (tmp_path / "generate-valid.txt").write_text(text)
    files = ["--questions", tmp_path / "q.txt", "--output", tmp_path / "s.json"]
    run(score, "--data", data, "--generated", tmp_path / "generate-valid.txt", *files)
    scores = json.loads((tmp_path / "s.json").read_text())
    questions = (tmp_path / "q.txt").read_text().splitlines()
    assert questions[0] == f"who is {items[0]['unknown'][0]}?"
    assert questions[1] == "when was the mill of zorn built?"
    expected = metrics.score(questions, [item["references"] for item in items], [item["source"] for item in items])
    assert scores["rouge_l"] == pytest.approx(expected.rouge_l)
    assert 0 < scores["unknown words copied"] < 0.01
    perfect = tmp_path / "perfect.txt"
    perfect.write_text("".join(f"{item['question']}\n" for item in items))
    run(score, "--data", data, "--hypotheses", perfect, "--output", tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["rouge_l"] == 1.0


def test_a_missing_question_is_reported(data: Path, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("what ?\n")
    with pytest.raises(SystemExit, match="1 questions, but the split has 60 items"):
        run(score, "--data", data, "--hypotheses", tmp_path / "few.txt", "--output", tmp_path / "s.json")
    with pytest.raises(SystemExit, match=r"test\.surface\.jsonl: this file does not exist"):
        run(score, "--data", data, "--split", "test", "--hypotheses", tmp_path / "few.txt", "--output", "s.json")


NAME = "shaw[clip=8,share=none]"
VARIANTS = [Variant(parse(NAME), copy) for copy in (True, False)]


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the results of the earlier stages, for a perfect model and for one that repeats one question."""
    folder = tmp_path_factory.mktemp("trained")
    run(baselines, "--data", data, "--output", folder / "baselines.json")
    for variant, texts in zip(VARIANTS, ([item["question"] for item in lines(data)], ["what?"] * 60), strict=True):
        scores, questions = folder / "scores" / f"{variant.slug}.json", folder / "questions" / f"{variant.slug}.txt"
        written(questions, "".join(f"{text}\n" for text in texts))
        run(score, "--data", data, "--hypotheses", questions, "--output", scores)
        record = json.loads(scores.read_text()) | {"unknown words copied": 0.1, "unknown words left": 0}
        scores.write_text(json.dumps(record))
        written(folder / ".stages" / f"train.{variant.slug}.done", '{"seconds": 60, "command": "c", "commit": "d"}')
        written(folder / "logs" / f"{variant.slug}.train.log", logged())
    return folder


def written(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def logged() -> str:
    """Return the log of two validations, of which the first is better."""
    entries = [f"x | train_inner | {json.dumps({'loss': '3', 'wps': '10', 'num_updates': '40'})}\n"]
    for update, rouge, gate in ((20, "0.25", "0.4"), (40, "0.21", "0.7")):
        facts = {"valid_loss": "3", "valid_num_updates": str(update), "valid_rouge_l": rouge, "valid_copied": gate}
        entries.append(f"x | valid | {json.dumps(facts)}\n")
    return "".join(entries)


def compared(folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the rows of the comparison if checkpoint_best.pt is that of update 20."""
    monkeypatch.setattr(compare, "updates", lambda path: 20 if path.name == "checkpoint_best.pt" else 40)
    arguments = f"--output {folder} --data {data} --split valid --copy both --pos-enc {NAME} --seed 1 --seeds 1"
    run(compare, *arguments.split())
    rows: list[dict[str, Any]] = json.loads((folder / "comparison.json").read_text())
    return rows


def test_the_comparison_has_models_baselines_and_a_gallery(
    data: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = json.loads((trained / "baselines.json").read_text())
    first, constant = base
    assert first == "first 10 words of the sentence"
    assert constant.startswith("always '")
    assert base[constant]["distinct"] < 0.05
    rows = compared(trained, data, monkeypatch)
    assert [row["model"] for row in rows] == [NAME, f"{NAME}, no copy", first, constant]
    assert [row["beats baselines"] for row in rows] == [True, False, None, None]
    assert [rows[0][f"{when} ROUGE-L"] for when in ("first", "last")] == [25.0, 21.0]
    assert rows[0]["ROUGE-L"] == 100.0
    assert (trained / "curves.png").stat().st_size > 1000
    assert figures(trained / "logs" / f"{VARIANTS[0].slug}.train.log", "valid_else") == []
    text = (trained / "gallery.md").read_text("utf-8")
    assert text.count("- answer: ") == 20
    assert text.count(f"- {NAME}, no copy: what?") == 20


def test_the_copy_gate_is_that_of_the_model_that_was_scored(
    data: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = compared(trained, data, monkeypatch)[0]
    assert (row["copy gate"], row["best update"], row["updates"]) == (0.4, 20, 40)


def test_the_numbers_of_the_paper_are_shown_for_its_data_only(
    data: Path, trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = compared(trained, data, monkeypatch)
    assert not any("paper" in row for row in rows)
    assert "| paper " not in report.results(rows, COLUMNS)
    other = tmp_path / "data"
    shutil.copytree(data, other)
    record = json.loads((other / "questions.json").read_text())
    record["files"] = {"train": {"name": "train-v1.1.json"}, "valid": {"name": "dev-v1.1.json"}}
    for split, number in PUBLISHED["squad"].items():
        record["splits"][split]["given"] = number
    (other / "questions.json").write_text(json.dumps(record))
    rows = compared(trained, other, monkeypatch)
    assert [row["paper"] for row in rows] == [47.26, None, None, None]
    assert "| paper " in report.results(rows, COLUMNS)


def test_a_gallery_shows_all_outputs() -> None:
    items = [
        {"source": 0, "sentence": "<s> a", "references": ["b", "c"]},
        {"source": 0, "sentence": "a", "references": []},
    ]
    text = compare.gallery(items, {"xl": ["d", "e"]})
    assert "**&lt;s> a**\n- reference: b\n- reference: c\n- xl: d" in text
    assert "- xl: e" not in text
