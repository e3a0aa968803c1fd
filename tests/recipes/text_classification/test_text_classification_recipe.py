"""Test the recipe for text classification: scores, predictions, and files for GLUE's server."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import prepare_text_classification
import pytest
from support_recipes import called

from recipes.lib import runs
from recipes.text_classification import evaluate


def rows(name: str, gold: dict[str, list[int]]) -> evaluate.Rows:
    """Return the rows of a data set, of which only the labels of the test sets are known."""
    known = evaluate.Rows.__new__(evaluate.Rows)
    known.name, known.tests, known.gold = name, list(gold), gold
    known.metrics = ["accuracy", "f1"] if name == "QQP" else ["accuracy"]
    return known


def test_scores_are_means_as_the_paper_has_them() -> None:
    answers, gold = {"test": [1, 1, 0, 0]}, {"test": [1, 0, 0, 0]}
    assert rows("SST-2", gold).score(answers) == 75
    assert rows("QQP", gold).score(answers) == pytest.approx((75 + 200 / 3) / 2)
    both = {"test": [1, 1, 0, 0], "test-mismatched": [0, 0]}
    assert rows("MNLI", {**gold, "test-mismatched": [0, 1]}).score(both) == (75 + 50) / 2


def test_accuracy_by_length() -> None:
    known = rows("SST-2", {"test": [1, 1, 1, 0]})
    known.groups = [evaluate.group(length) for length in (300, 5, 6, 3)]
    assert known.by_length({"test": [1, 0, 1, 0]}) == {"1-5": 50, "6-10": 100, "201+": 100}


def test_each_text_of_a_row_has_a_bag_of_its_own() -> None:
    assert evaluate.bags([[[1, 1], [2]], [[0], [1]]], 3).toarray().tolist() == [[0, 1, 0, 0, 0, 1], [1, 0, 0, 0, 1, 0]]


def write_glue(folder: Path) -> None:
    """Write a small SST-2 in GLUE's format."""
    (folder / "SST-2").mkdir(parents=True)
    texts = [(f"a {word} film number{n} .", label) for n in range(40) for word, label in (("good", 1), ("bad", 0))]
    for split, part in (("train", texts), ("dev", texts[:10])):
        lines = "".join(f"{text}\t{label}\n" for text, label in part)
        (folder / "SST-2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{lines}")
    lines = "".join(f"{n}\t{text}\n" for n, (text, _) in enumerate(texts[:6]))
    (folder / "SST-2" / "test.tsv").write_text(f"index\tsentence\n{lines}")


def test_a_run_has_scores_predictions_a_submission_and_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that always answers 1 is right for half of the development set."""
    write_glue(tmp_path / "glue")
    folder = tmp_path / "run" / "data-bin" / "SST-2"
    folder.parent.mkdir(parents=True)
    words = ["--task", "sst2", "--corpus", str(tmp_path / "glue"), "--tokenizer", "spaces", "--output", str(folder)]
    assert prepare_text_classification.main(words) == 0
    (tmp_path / "run" / "models.tsv").write_text("SST-2.xl.s1\txl\t1\tSST-2\nSST-2.xl.s2\txl\t2\tSST-2\n")
    (tmp_path / "run" / "scores").mkdir()
    (tmp_path / "run" / "scores" / "SST-2.xl.s2.failed").write_text("diverged\n")
    loaded = list[str]()
    monkeypatch.setattr(evaluate, "load", lambda path, overrides, cpu: loaded.append(path.parent.name))
    monkeypatch.setattr(evaluate, "updates", lambda path: 20)
    sizes = {"test": 10, "glue": 6}
    monkeypatch.setattr(evaluate, "predict", lambda trained, split: [1] * sizes[split])
    called(evaluate, "--run", tmp_path / "run")
    assert loaded == ["SST-2.xl.s1"]  # the other model diverged
    scores = runs.models(tmp_path / "run")[0].scores
    assert scores["score"] == scores["accuracy, test"] == scores["accuracy by length, 1-5"] == 50
    predictions = (tmp_path / "run" / "predictions" / "SST-2.xl.s1" / "test.tsv").read_text().splitlines()
    assert [line.split("\t")[1:] for line in predictions[:3]] == [["label", "answer"], ["1", "1"], ["0", "1"]]
    submission = (tmp_path / "run" / "submission" / "xl.s1" / "SST-2.tsv").read_text().splitlines()
    assert submission == ["index\tprediction", *(f"{n}\t1" for n in range(6))]
    baselines = json.loads((tmp_path / "run" / "baselines.json").read_text())
    assert baselines["bag of words"]["SST-2"]["score"] == 100
    assert baselines["most frequent label"]["SST-2"]["score"] == 50
    differs = (tmp_path / "run" / "differs.tsv").read_text()
    assert "SST-2\tGLUE's development set, while the paper does not name its set" in differs
    assert "and 10 for the test, not 67,349 and 872\n" in differs
    with (tmp_path / "run" / "lengths.SST-2.csv").open() as file:
        assert [row["accuracy in percent"] for row in csv.DictReader(file)] == ["50.0"]


def test_only_all_published_rows_are_the_papers() -> None:
    splits = {"train": 22_500, "valid": 2_500, "test": 25_000}
    record = {"splits": {split: {"items": number} for split, number in splits.items()}}
    imdb = SimpleNamespace(name="IMDB", tests=["test"], record=record)
    assert evaluate.differs(imdb) == []  # type: ignore[arg-type]
    imdb.record["splits"]["valid"]["items"] -= 1
    assert evaluate.differs(imdb) == ["24,999 rows for training and 25,000 for the test, not 25,000 and 25,000"]  # type: ignore[arg-type]
