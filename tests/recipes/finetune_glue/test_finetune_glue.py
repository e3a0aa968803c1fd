"""Test fine-tuning on GLUE: what is refused, how the best training is chosen, and the papers' numbers beside ours."""

from __future__ import annotations

import json
import random
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import prepare_glue
from integration import support
from support_exchange import imported, random_model, saved
from support_glue import prepare, task_files
from support_recipes import ROOT, called
from support_scripts import hashes

from fairseq_posenc.papers.reading import every, figures
from recipes.lib.finetuning import baselines, builtin, check, evaluate, published, schedule, sentences, tasks
from recipes.lib.finetuning.columns import main_columns, more_columns, xnli_splits
from recipes.lib.finetuning.table import Outcome, Table, Trial, counted

NUMBERS = tomllib.loads(Path(__file__).with_name("numbers.toml").read_text("utf-8"))["number"]


# --- a run on invented rows


def toy_mnli(folder: Path) -> Path:
    """Write rows whose second sentence is the word of the first sentence, the word of its class, or another word."""
    rng, word = random.Random(1), ("entailment", "neutral", "contradiction")

    def rows(count: int) -> list[tuple[str, ...]]:
        examples = [(rng.randrange(3), rng.randrange(8, 20)) for _ in range(count)]
        return [(str(n), f"w{noise} w{3 + kind}", f"w{noise}", word[kind]) for n, (kind, noise) in enumerate(examples)]

    header = ("index", "sentence1", "sentence2", "gold_label")
    changed = {"train": 150, "dev_matched": 20, "dev_mismatched": 20}
    return task_files(folder, "MNLI", **{name: [header, *rows(count)] for name, count in changed.items()})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a classifier on toy data for MNLI in the folder `out` of a run with two learning rates, and two seeds.

    Seed 1 diverges with the second learning rate, and seed 2 did not train with it.
    """
    folder = tmp_path_factory.mktemp("glue")
    source = saved(random_model("bert", "tiny"), folder / "bert")
    model = imported(source, folder / "shaw", "--pos-enc", "shaw") / "checkpoint.pt"
    rows, out = toy_mnli(folder / "glue_data" / "MNLI").parent, folder / "out"
    data, first = out / "data" / "MNLI", "MNLI.shaw+segments.s1.lr0.01.e4"
    data.parent.mkdir(parents=True)
    assert prepare("MNLI", rows, model, data, "--separators", "1") == 0
    flags = (
        "--task posenc_sentence_prediction --criterion posenc_sentence_prediction --num-classes 3 --metrics accuracy "
    )
    flags += "--init-token 0 --arch posenc_roberta_pretrained --segments head --optimizer adam --lr 0.01 --cpu "
    flags += "--batch-size 8 --max-update 76 --dropout 0 --attention-dropout 0 --no-epoch-checkpoints"
    places = ["--pretrained", model, "--user-dir", support.PLUGIN, "--save-dir", out / "checkpoints" / first]
    support.trained([str(word) for word in (data, *flags.split(), *places)])
    second = first.replace(".s1.", ".s2.")
    shutil.copytree(out / "checkpoints" / first, out / "checkpoints" / second)
    (out / "logs").mkdir()
    diverged = f"{first.replace('lr0.01', 'lr9')}.train.log"
    (out / "logs" / diverged).write_text("FloatingPointError: the loss is not finite\n")
    lines = [f"MNLI.shaw+segments.s{seed}\tshaw+segments\t{seed}\tMNLI\n" for seed in (1, 2)]
    (out / "models.tsv").write_text("".join(lines))
    (out / ".done").mkdir()
    for name in (first, second):
        (out / ".done" / f"train:{name}").write_text("key\n1\ncommit\ncommand\n")
    (out / "steps.txt").write_text(f"train:{first}\ntrain:{second}\n")
    return folder


def test_a_model_becomes_scores_a_submission_and_notes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, model = place / "out", place / "shaw" / "checkpoint.pt"
    words = ("--model", "shaw+segments", model, "head", "--length", 16, "--output", out / "models.json")
    called(check, *words)
    papers = ("--papers", "M1-M4/BERT-base")
    called(baselines, "--run", out, "--items", "MNLI", *papers, "--output", out / "baselines.json")
    tried = ("--learning-rates", "0.01,9", "--epochs", "4", "--cpu", "--output", out / "evaluated")
    called(evaluate, "--run", out, *tried, *papers)
    found = out / "evaluated"
    lines = [line.split("\t")[1:] for line in (found / "models.tsv").read_text().splitlines()]
    other = "shaw+segments, learning rate 9, 4 epochs"
    assert lines[:2] == [["shaw+segments", "1", "MNLI-m"], ["shaw+segments", "1", "MNLI-mm"]]
    assert lines[4] == [other, "1", "MNLI-m"]
    scores = {path.stem: json.loads(path.read_text())["score"] for path in (found / "scores").glob("*.json")}
    names = [f"MNLI.shaw+segments.s{seed}.lr0.01.e4{end}" for seed in (1, 2) for end in ("", ".MNLI-mm")]
    assert sorted(scores) == names
    assert min(scores.values()) > 90
    reasons = {path.name: path.read_text() for path in (found / "scores").glob("*.failed")}
    assert len(reasons) == 4
    assert reasons["MNLI.shaw+segments.s1.lr9.e4.failed"].startswith("diverged: update 0")
    assert reasons["MNLI.shaw+segments.s2.lr9.e4.MNLI-mm.failed"].startswith("it did not train to its end")
    files = {path.name: path.read_text().splitlines() for path in (found / "submission" / "shaw+segments").iterdir()}
    assert set(files) == {"MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"}
    assert files["AX.tsv"][0] == "index\tprediction"
    assert [line.split("\t")[0] for line in files["AX.tsv"][1:]] == ["0", "1"]
    assert files["MNLI-m.tsv"][1].split("\t")[1] in ("contradiction", "entailment", "neutral")
    notes = (found / "notes.md").read_text()
    assert "MNLI: train: 150 of 150 used; valid: 20 of 20 used" in notes
    assert "shaw+segments on MNLI-m, MNLI-mm: learning rate 0.01, 4 epochs" in notes
    assert "do not beat" not in notes
    differs = (found / "differs.txt").read_text()
    assert "1 layers of width 16, not 12 of width 768\n" in differs
    assert "MNLI-m\t150 rows of train, not 392,702\n" in differs
    monkeypatch.setattr(evaluate, "of_sentences", None)  # an interrupted evaluation does not begin again
    before = hashes(found)
    shutil.rmtree(found)
    called(evaluate, "--run", out, *tried, *papers)
    assert hashes(found) == before


def test_a_model_that_is_too_short_or_another_is_refused(place: Path) -> None:
    learned = imported(place / "bert", place / "learned", "--pos-enc", "learned") / "checkpoint.pt"
    words = ("--output", place / "x.json", "--model")
    message = r"is defined up to 20 positions\. Give --length 20, or .* --train\.pos-enc-args extend=repeat"
    with pytest.raises(SystemExit, match=message):
        called(check, *words, "learned", learned, "none", "--length", 64)
    longer = ("--length", 64, "--pos-enc-args", "extend=repeat")
    called(check, *words, "learned", learned, "none", *longer)
    with pytest.raises(SystemExit, match=r"has the encoding learned, but --pos-enc asks for shaw\[clip=8\]"):
        called(check, *words, "shaw[clip=8]", learned, "none", "--length", 16)


# --- choosing


def outcomes(**scores: tuple[float | None, ...]) -> list[Outcome]:
    return [
        Outcome(
            Trial(f"{name}.s{seed}", "m4", seed, "RTE", name), {"valid": {"accuracy": score or 0}}, "" if score else "x"
        )
        for name, own in scores.items()
        for seed, score in enumerate(own, 1)
    ]


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ({"a": (1, 2, 50), "b": (30, 1, 10)}, "b"),  # a has the best run, but b has the higher median
        ({"a": (90, None), "b": (95, 80)}, "a"),  # the median over the finished runs
        ({"a": (None, None), "b": (1, None)}, "b"),
        ({"a": (None, None), "b": (None, None)}, "a"),
    ],
)
def test_the_best_median_is_chosen(scores: dict[str, Any], best: str) -> None:
    (groups,) = evaluate.groups(outcomes(**scores)).values()
    assert evaluate.chosen(groups, "")[0].trial.hyperparameters == best


def test_a_result_within_the_margin_of_the_best_baseline_is_named(tmp_path: Path) -> None:
    baseline = {"scores": {"yes": {"valid": {"accuracy": 50.0}}}, "margins": {"valid": {"accuracy": 5.0}}}
    (tmp_path / "baselines.json").write_text(json.dumps({"RTE": baseline}))
    (tmp_path / "out").mkdir()
    table = Table(tmp_path / "out", tmp_path, "")
    for label, score in (("m4", 54.0), ("t5", 56.0)):
        table.add("RTE", label, outcomes(a=(score,)))
    assert table.behind == ["m4 on RTE"]


def test_diet_scores_qqp_by_accuracy() -> None:
    assert tasks.metrics("QQP", "DIET/BERT-base, English") == ["accuracy", "f1"]
    assert tasks.metrics("QQP", "M4M/roberta-base") == ["f1", "accuracy"]


def test_the_last_update_of_the_schedule_has_the_rest_of_the_rows() -> None:
    assert schedule.schedule(65, 32, 2, 0.1)[3::2] == [6, 6, 0]
    assert schedule.schedule(640, 32, 2, 0.1)[1::2] == [2, 40, 40, 4]


# --- the papers


@pytest.mark.parametrize("case", NUMBERS, ids=lambda case: f"{case['papers']} {case['label']}")
def test_a_paper_has_numbers_of_its_own_models(case: dict[str, Any]) -> None:
    own = {"encoding": case["label"], "segments": case.get("segments", "none")}
    columns = ["MNLI-m", "MRPC"]
    number = published.cell(case["papers"], own, case["label"], case["column"], columns, case["length"])
    assert number == case["number"]


def test_every_score_of_the_papers_stands_in_the_report_of_a_preset() -> None:
    texts = (path.read_text() for path in ROOT.glob("recipes/finetune_*/conf/*.sh"))
    known = {entry for text in texts for each in re.findall("^papers='(.*?)'", text, re.M) for entry in each.split(";")}
    scores = [figure for figure in every() if figure.unit == "percent" and figure.paper != "LFHC" and figure.encoding]
    assert len(scores) == 466
    for figure in scores:
        entry, segments = f"{figure.paper}/{figure.conditions['model']}", figure.conditions.get("segments", "none")
        assert entry in known
        columns = [other.column for other in figures(figure.paper, table=figure.table) if other.column != "average"]
        own, length = {"encoding": figure.encoding, "segments": segments}, int(figure.conditions.get("length", 0))
        expected = f"{figure.printed}{' (test set)' * figure.of_test_set}"
        assert published.cell(entry, own, figure.encoding, figure.column, columns, length) == expected


def test_other_rows_than_the_published_are_named(tmp_path: Path) -> None:
    def differences(task: str, **counts: int) -> list[str]:
        splits = {name.replace("_", "-"): {"given": count, "labelled": True} for name, count in counts.items()}
        facts = {"splits": {**splits, "test-ax": {"given": 1, "labelled": False}}, "problems": {"bad": {"left out": 0}}}
        (tmp_path / "glue.json").write_text(json.dumps(facts))
        return published.of_rows(task, tmp_path)

    assert differences("MNLI", train=392_702, valid=9_815, valid_mismatched=9_832, test=3) == []
    assert differences("RTE", train=30, valid=277) == ["30 rows of train, not 2,490"]
    assert differences("XNLI", train=392_702, valid=2_490, test_en=5_010, test_de=5_010) == ["2 of 15 languages"]
    different = differences("XNLI", train=392_702, valid=2_490, valid_de=990)
    assert different == ["990 rows of valid-de, not 2,490", "2 of 15 languages", "scores of development sets"]


def test_xnli_is_scored_on_test_sets_if_they_have_labels(tmp_path: Path) -> None:
    scores = {name: {"accuracy": 10.0 * n} for n, name in enumerate(("valid", "valid-de", "test-en", "test-de"))}
    assert main_columns(tmp_path, "XNLI", scores, "") == {"XNLI": 25}
    assert more_columns("XNLI", scores, "") == {"XNLI en": 20, "XNLI de": 30}
    assert xnli_splits(dict.fromkeys(("valid", "valid-de", "test-en"))) == {"en": "valid", "de": "valid-de"}
    assert xnli_splits(dict.fromkeys(("valid", "test-en"))) == {"en": "test-en"}


def test_the_notes_count_cut_rows_and_unknown_pieces(tmp_path: Path) -> None:
    split = {"items": 9, "given": 10, "pieces": 100, "unknown": 7, "cut": 2}
    facts = {"longest": 8, "splits": {"train": split}, "problems": {"empty": {"left out": 1}}}
    (tmp_path / "glue.json").write_text(json.dumps(facts))
    expected = "train: 9 of 10 used, 2 cut to 8 pieces, 7.00% of the pieces unknown to the model (too many: the score "
    assert counted(tmp_path) == f"{expected}means little); empty: 1 left out"


# --- formats


def test_numbers_are_answered_within_their_bounds() -> None:
    texts = sentences.as_text([-0.4, 2.23456, 7.0], {"labels": [], "bounds": [0.0, 5.0]})
    assert texts == ["0.000", "2.235", "5.000"]


@pytest.mark.parametrize("task", builtin.COLUMNS)
def test_the_built_in_rows_are_of_every_task(task: str, tmp_path: Path) -> None:
    called(builtin, "--output", tmp_path / "rows", "--tasks", task, "--seed", 1)
    form = prepare_glue.TASKS[task]
    for split, path in prepare_glue.find(tmp_path / "rows", task).items():
        rows = list(prepare_glue.read(path, form, split))
        assert {prepare_glue.defect_of(form, split, row) for row in rows} == {None}
        if split == "train" and form.labels:
            assert {row.label for row in rows} == set(form.labels)
