"""Test the text classification recipe: its plan, its presets, and a run from invented rows to a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from integration import support
from support_recipes import Planned, value

from fairseq_posenc.papers.reading import figures
from recipes.lib.recipe import ROOT, Row
from recipes.lib.stages import Stage, read_json
from recipes.lib.values import Refused
from recipes.text_classification import baselines, builtin, compare, evaluate, scores
from recipes.text_classification.__main__ import TEXT_CLASSIFICATION, remarks
from recipes.text_classification.settings import TASKS

PLANNED = Planned(TEXT_CLASSIFICATION, output=ROOT / "results" / "text_classification" / "test")
settings, stages = PLANNED.settings, PLANNED.stages


# --- the plan


@pytest.mark.parametrize("preset", TEXT_CLASSIFICATION.presets())
def test_every_preset_trains_each_encoding_with_each_seed(preset: str) -> None:
    chosen, planned = settings(preset), stages(preset)
    trained = [name for name in planned if name.startswith("train:")]
    assert len(trained) == len(chosen.encodings) * len(chosen.seeds)
    assert [name.replace("evaluate", "train") for name in planned if name.startswith("evaluate:")] == trained
    assert list(planned)[-1] == "compare"


@pytest.mark.parametrize("task", ["imdb", "sst2", "snli", "qnli", "qqp", "mnli"])
def test_the_papers_hyperparameters(task: str) -> None:
    train = next(stage for name, stage in stages("paper", task=task).items() if name.startswith("train:"))
    printed = {figure.row: figure.value for figure in figures("LFHC", table="Table 4", column=TASKS[task])}
    ours = {
        "batch size": "--batch-size",
        "lr rate": "--lr",
        "dropout": "--dropout",
        "clip norm": "--clip-norm",
        "warmup steps": "--warmup-updates",
        "maximum steps": "--max-update",
        "eval interval": "--validate-interval-updates",
    }
    assert {row: float(value(train, flag)) for row, flag in ours.items()} == {row: printed[row] for row in ours}


def test_pairs_begin_with_cls_and_have_segments() -> None:
    train = stages("paper", task="mnli", pos_enc="shaw[clip=4]", seeds="1")["train:shaw.clip=4.s1"]
    assert value(train, "--pos-enc") == "shaw+segments-input"
    assert value(train, "--pooling") == "cls"
    assert value(train, "--init-token") == "0"
    single = stages("paper", task="sst2", pos_enc="shaw[clip=4]", seeds="1")["train:shaw.clip=4.s1"]
    assert value(single, "--pos-enc") == "shaw"
    assert value(single, "--pooling") == "max"
    assert "--init-token" not in single.command


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("title\ttopic\n")
    prepare = stages("small", task=str(tmp_path), text="title", label="topic")["prepare"]
    assert (value(prepare, "--text"), value(prepare, "--label")) == ("title", "topic")
    assert value(prepare, "--data") == str(tmp_path)
    assert tmp_path / "train.tsv" in prepare.inputs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "sst"}, "did you mean sst2"),
        ({"seeds": "1,1"}, "--seeds"),
        ({"train__max-update": "3"}, "--updates"),
        ({"train__num-classes": "3"}, "--task"),
        ({"batch": "10", "batches": "4"}, "cannot be split"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        stages("small", **options)


def test_settings_without_effect_are_named(tmp_path: Path) -> None:
    assert set(settings("small").unused()) == {"text", "pair", "label", "segments"}
    assert set(settings("small", task=str(tmp_path)).unused()) == {"segments", "data", "raw"}
    with pytest.raises(Refused, match="--data"):
        settings("small", data=str(tmp_path / "nowhere")).refuse_missing()


# --- scores


def test_scores_are_means_as_the_paper_has_them() -> None:
    answers, gold = {"test": [1, 1, 0, 0]}, {"test": [1, 0, 0, 0]}
    assert scores.score(answers, gold, ["accuracy"]) == 75
    assert scores.score(answers, gold, ["accuracy", "f1"]) == pytest.approx((75 + 200 / 3) / 2)
    two = {"test": [1, 1, 0, 0], "test-mismatched": [0, 0]}
    assert scores.score(two, {"test": [1, 0, 0, 0], "test-mismatched": [0, 1]}, ["accuracy"]) == (75 + 50) / 2


def test_accuracy_by_length() -> None:
    rows = [[[9] * 3], [[9] * 5], [[9] * 4, [9] * 2], [[9] * 300]]
    groups = scores.by_length(rows, [1, 0, 1, 1], [1, 1, 1, 0])
    assert groups == {
        "1-5": {"accuracy": 50, "rows": 2},
        "6-10": {"accuracy": 100, "rows": 1},
        "201+": {"accuracy": 0, "rows": 1},
    }


@pytest.mark.parametrize(
    ("label", "task", "printed"),
    [
        ("gcdf", "IMDB", 88.98),
        ("lfhc[clip=4]", "SST-2", 83.26),
        ("lfhc[clip=2]", "SST-2", 83.14),
        ("t5", "SST-2", None),
        ("gcdf", "RTE", None),
    ],
)
def test_the_papers_number(label: str, task: str, printed: float | None) -> None:
    assert compare.published(compare.paper(task), compare.parse(label)) == printed


@pytest.mark.parametrize(
    ("task", "splits", "left_out", "expected"),
    [
        ("IMDB", {"train": 22_500, "valid": 2_500, "test": 25_000}, 0, True),
        ("IMDB", {"train": 22_500, "valid": 2_499, "test": 25_000}, 0, False),
        ("IMDB", {"train": 22_500, "valid": 2_499, "test": 25_000}, 1, True),
        ("SNLI", {"train": 549_367, "valid": 9_842, "test": 9_824}, 0, True),
        ("SST-2", {"train": 60_000, "valid": 7_349, "test": 872}, 0, True),
        ("SST-2", {"train": 60_000, "valid": 7_350, "test": 871}, 0, False),
        ("MNLI", {"train": 390_000, "valid": 2_702, "test": 9_815, "test-mismatched": 9_832}, 0, True),
        ("MNLI", {"train": 390_000, "valid": 2_702, "test": 9_815}, 0, False),
        ("RTE", {"train": 2_000, "valid": 490, "test": 277}, 0, False),  # the paper does not have this task
    ],
)
def test_only_all_published_rows_have_the_papers_number(
    task: str, splits: dict[str, int], left_out: int, expected: bool
) -> None:
    record = {
        "splits": {split: {"items": number} for split, number in splits.items()},
        "problems": {"empty text": {"left out": left_out}},
    }
    assert compare.papers_rows(task, record) == expected


# --- a run


def call(module: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a stage's module in this process."""
    words = [str(ROOT / word) if word.startswith("..") else word for word in stage.command[3:]]
    monkeypatch.setattr(sys, "argv", ["x", *words])
    module.main()


def test_a_run_from_rows_to_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import prepare_text_classification

    options = {"pos_enc": "shaw", "seeds": "1,2", "device": "cpu", "updates__others": "40", "interval__others": "20"}
    chosen, planned = settings("smoke", **options), stages("smoke", tmp_path, **options)
    monkeypatch.setattr(builtin, "ROWS", {"train": 600, "dev": 60, "test": 60})
    call(builtin, planned["builtin"], monkeypatch)
    words = [str(ROOT / word) if word.startswith("..") else word for word in planned["prepare"].command[2:]]
    assert prepare_text_classification.main(words) == 0
    call(baselines, planned["baselines"], monkeypatch)
    for seed in (1, 2):
        train = planned[f"train:shaw.s{seed}"].command
        flags = [str(ROOT / word) if word.startswith("..") else word for word in train[1:]]
        support.trained([*flags, "--log-file", str(tmp_path / "log")])
        call(evaluate, planned[f"evaluate:shaw.s{seed}"], monkeypatch)
    call(compare, planned["compare"], monkeypatch)
    (row,) = TEXT_CLASSIFICATION.results(chosen, tmp_path)
    check_row(row, tmp_path)
    assert "train 600, valid 60, test 60 rows" in remarks(chosen, tmp_path)[1]
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")


def check_row(row: Row, output: Path) -> None:
    runs = [read_json(output / "scores" / f"shaw.s{seed}.json") for seed in (1, 2)]
    scores = [run["score"] for run in runs]
    assert row["score of seeds"] == [round(score, 4) for score in scores]
    assert row["score"] == pytest.approx(sum(scores) / 2, abs=0.01)
    assert row["sd"] == pytest.approx(abs(scores[0] - scores[1]) / 2**0.5, abs=0.01)
    assert (row["seeds"], row["p"], row["diverged"]) == (2, None, None)
    assert 40 <= row["majority"] <= 60
    for seed, run in zip((1, 2), runs, strict=True):
        lines = (output / "predictions" / f"shaw.s{seed}" / "test.tsv").read_text(encoding="utf-8").splitlines()
        answers = [line.split("\t") for line in lines[1:]]
        assert len(answers) == 60
        assert run["score"] == pytest.approx(100 * sum(label == answer for _, label, answer in answers) / 60)
