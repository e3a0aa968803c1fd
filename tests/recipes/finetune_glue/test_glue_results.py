"""Test the results of the GLUE recipe: the scores that count, medians, margins, and the papers' numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from recipes.lib.encodings import parse
from recipes.lib.finetuning.models import Model
from recipes.lib.finetuning.sentences import compare, report, xnli
from recipes.lib.finetuning.sentences.averages import averages
from recipes.lib.finetuning.sentences.compare import Results, middle
from recipes.lib.finetuning.sentences.published import MISMATCHED, MODELS, ROBERTA, WARM, paper
from recipes.lib.finetuning.sentences.tasks import TASKS, metrics
from recipes.lib.finetuning.sentences.xnli import Scores
from recipes.lib.finetuning.trials import Grid, Trial, Variant
from recipes.lib.package import figures
from recipes.lib.recipe import Row
from recipes.lib.reported import text

SIZE = {"updates": 1, "parameters": 2}  # next to the scores


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def scored(results: Results, variant: Variant, lr: float, **numbers: tuple[float, ...]) -> None:
    """Return the scores of the runs with one learning rate."""
    for at, seed in enumerate(results.grid.seeds):
        some = {name: found[at] for name, found in numbers.items()}
        write_json(
            results.output / "scores" / f"{Trial(variant, lr, 3, seed).slug}.json", {"scores": {"valid": some}, **SIZE}
        )


def test_the_best_median_counts(tmp_path: Path) -> None:
    """Compare two learning rates with three runs each: one has the best run, 5, but the other has the higher median."""
    variant = Variant("RTE", Model("m4", Path()), "none")
    results = Results(tmp_path, "m1-m4", Grid([1e-5, 2e-5], [3], [1, 2, 3]))
    scored(results, variant, 1e-5, accuracy=(0.1, 0.2, 5.0))
    scored(results, variant, 2e-5, accuracy=(3.0, 0.0, 1.0))
    assert middle(results.best(variant)) == Trial(variant, 2e-5, 3, 3)
    assert metrics("QQP", "diet") == ["accuracy", "f1"]
    assert metrics("QQP", "m4m") == ["f1", "accuracy"]


def test_a_row_has_the_median_of_each_number_and_a_correlation_a_margin(tmp_path: Path) -> None:
    variant = Variant("CoLA", Model("m4", Path()), "none")
    results = Results(tmp_path, "diet", Grid([1e-5], [3], [1, 2, 3]), ["--lr 1, not 2"])
    scored(results, variant, 1e-5, matthews=(1.0, 5.0, 3.001), accuracy=(70.0, 69.0, 68.0))
    for seed in results.grid.seeds:
        name = Trial(variant, 1e-5, 3, seed).slug
        write_json(tmp_path / ".stages" / f"train.{name}.done", {"seconds": 60, "command": "c", "commit": "d"})
    write_json(tmp_path / "models" / "m4.json", {"encoding": "diet-rel", "updates": 1, "layers": 12, "dim": 768})
    splits = {split: {"labelled": True, "given": count} for split, count in TASKS["CoLA"].rows.items()}
    rows = {"task": "CoLA", "splits": splits, "problems": {"label": {"left out": 2, "kept": 1}}}
    write_json(tmp_path / "data-bin" / "CoLA.m4" / "glue.json", rows)
    for score, margin, beats in ((0.0, 3.5, False), (0.0, 2.5, True), (3.0, 0.0, False)):
        constant = {"constant": "1", "score": score, "margin": margin}
        write_json(tmp_path / "baselines" / "CoLA.json", {"valid": {"matthews": constant}})
        (row,) = compare.rows_of(replace(variant, row="head"), results)
        assert row["beats baseline"] == beats
    assert (row["score"], row["also"], row["score of seeds"]) == (3.0, "accuracy 69.00", [1.0, 3.001, 5.0])
    assert (row["mean"], row["sd"], row["seeds"]) == (3.0, 2.0, 3)
    assert row["paper"] == [{"score": 60.3, "model": "", "segments": ""}]
    assert row["comparable"] == "no: 2 rows left out; --lr 1, not 2"
    splits["valid"]["given"] -= 1  # not the paper's development set
    write_json(tmp_path / "data-bin" / "CoLA.m4" / "glue.json", rows)
    (row,) = compare.rows_of(replace(variant, row="head"), results)
    assert (row["paper"], row["comparable"]) == (None, None)
    assert row["other data"] == ["the number of rows in valid differs from the published number"]
    assert row["differs"] == ["2 rows left out", "--lr 1, not 2"]
    by_seed = {seed: scores["valid"]["matthews"] for seed, scores in row["scores of seeds"].items()}
    assert by_seed == {"1": 1.0, "2": 5.0, "3": 3.001}


def test_rows_are_compared_with_the_published_by_their_number() -> None:
    """Count rows wherever the files are. For XNLI, count the training rows and the scored rows of each language."""

    def notes_on(task: str, **counts: int) -> list[str]:
        splits = {name.replace("_", "-"): {"given": count, "labelled": True} for name, count in counts.items()}
        return compare.other_rows({"task": task, "splits": {**splits, "test-ax": {"given": 1, "labelled": False}}})

    assert notes_on("MNLI", train=392_702, valid=9_815, valid_mismatched=9_832, test=3) == []
    assert notes_on("RTE", train=2_490, valid=276) == ["the number of rows in valid differs from the published number"]
    assert notes_on("RTE", train=30, valid=277) == ["30 training rows, not 2,490"]
    assert notes_on("XNLI", train=392_702, valid=2_490, test_en=5_010, test_de=5_010) == []
    differences = notes_on("XNLI", train=1_500, valid=990, valid_de=990, test_de=5_009)
    assert differences == [
        "1,500 training rows, not 392,702",
        "the number of rows in valid, valid-de, test-de differs from the published number",
    ]


def test_xnlis_mean_is_the_papers_only_over_the_test_sets_of_all_languages() -> None:
    def other(languages: Sequence[str], split: str = "test") -> list[str]:
        names = [f"{split}-{language}" for language in languages]
        splits = {name: {"given": TASKS["XNLI"].rows[split], "labelled": True} for name in names}
        return compare.other_data({"task": "XNLI", "splits": splits}, {name: {"accuracy": 50.0} for name in names})

    assert other(xnli.LANGUAGES) == []
    assert other(xnli.LANGUAGES[:2]) == ["2 of 15 languages"]
    assert other(xnli.LANGUAGES, "valid") == ["scores of development sets"]


def test_what_a_model_of_robertas_size_may_be_is_named() -> None:
    """A checkpoint does not say whether it was trained from scratch, is roberta-base, or started from roberta-base."""

    def figures(encoding: str, protocol: str = "m4m", task: str = "MNLI") -> str:
        return text(compare.figures(Variant(task, Model("x", Path()), "none"), {"encoding": encoding}, protocol))

    assert figures("learned") == "81.25; 87.32/87.31 (roberta-base itself); 87.35/86.99 (started from roberta-base)"
    assert figures("learned", task="RTE") == "71.84 (roberta-base itself); 72.92 (started from roberta-base)"
    assert figures("m4m", task="CoLA") == "47.02 (started from roberta-base)"
    assert figures("learned", "m1-m4") == "83.57/83.65"
    assert figures("learned+segments-input", "m1-m4") == "84.6/83.4 (BERT as published, test sets)"
    assert figures("raffel", "diet") == ""


def test_a_single_sentence_is_compared_with_each_row_of_the_segment_ablation() -> None:
    """DIET's Table 8 prints SST-2 and CoLA for both kinds of segments; a single sentence has no segments here."""
    variant = Variant("CoLA", Model("x", Path()), "none", "input/head")
    assert (
        text(compare.figures(variant, {"encoding": "diet-rel"}, "diet"))
        == "59.6 (segments: input); 60.3 (segments: head)"
    )


def test_the_report_counts_cut_rows_and_unknown_pieces(tmp_path: Path) -> None:
    facts = {"items": 4, "given": 5, "cut": 0, "unknown": 0, "pieces": 100}
    splits = {
        "train": {**facts, "cut": 3, "in file": 2490},
        "valid": {**facts, "unknown": 5},
        "valid-zh": {**facts, "unknown": 6},
    }
    record = {"longest": 16, "strange": 0.05, "splits": splits, "problems": {"label": {"left out": 1}}}
    write_json(tmp_path / "XNLI.m4" / "glue.json", record)
    counts = report.counted(tmp_path / "XNLI.m4")
    assert counts.startswith(
        "rows used: train 4 of 5 (the file has 2,490), valid 4 of 5, valid-zh 4 of 5; rows cut to 16 pieces: train 3; "
    )
    assert "pieces unknown to the model: valid 5.00%, valid-zh 6.00%; label" in counts
    (line,) = report.strange([tmp_path / "XNLI.m4"])
    assert line.startswith("XNLI.m4, valid-zh: more than 5% of the pieces are unknown")


def test_the_papers_figures() -> None:
    assert paper("m1-m4", parse("m3"), "none", MISMATCHED) == 84.68
    assert (paper("m4m", parse("m4m"), "none", "MNLI"), paper("m4m", parse("m4m"), "none", "RTE")) == (83.58, None)
    assert paper(WARM, parse("m4m"), "none", "CoLA") == 47.02
    assert paper(ROBERTA, parse("learned"), "none", "STS-B") == 90.33
    assert paper("m4m", parse("m4m"), "input", "MNLI") is None
    assert paper("m1-m4", parse("m4[clip=512]"), "none", "QQP") == paper("m1-m4", parse("m4"), "none", "QQP") == 87.41
    assert paper("m1-m4", parse("m4[share=none]"), "none", "QQP") == 87.41  # the paper prints this form
    assert paper("m1-m4", parse("m4[share=layer-wise]"), "none", "QQP") is None
    assert paper("m4m", parse("m4[share=none]"), "none", "MNLI") == 82.88


def test_the_papers_figures_of_diet() -> None:
    def qqp(label: str, segments: str = "head") -> float | None:
        return paper("diet", parse(label), segments, "QQP")

    assert qqp("diet-abs[share=layer-wise,rank=128]") == 90.8
    assert qqp("diet-rel", "none") is None
    assert qqp("diet-abs") == qqp("diet-abs[rank=64,share=layer-wise]") == 91.1
    assert qqp("diet-abs[share=head-wise]") is None
    for protocol, task, slots in (("diet", "QQP", 32), ("diet-xtreme", "XNLI", 256)):
        # The row Raffel is T5, and Linformer has learned positions.
        assert paper(protocol, parse("raffel"), "input", task) is None
        assert paper(protocol, parse("t5"), "input", task)
        for label in ("learned+linformer", "diet-abs-lin"):
            assert paper(protocol, parse(f"{label}[slots={slots}]"), "input", task)
            assert paper(protocol, parse(f"{label}[slots=64]"), "input", task) is None
            assert paper(protocol, parse(label), "input", task) is None  # n / 4 = 128 slots
    assert paper("diet", parse("diet-rel"), "head", "XNLI") is None


def test_every_protocol_names_models_of_the_papers() -> None:
    for name, model in MODELS.values():
        columns = {figure.column for figure in figures(name, model=model)}
        assert columns & {"MNLI-m", "XNLI"}


def test_the_average_has_seven_numbers_as_in_the_paper(tmp_path: Path) -> None:
    """Recompute an average of DIET's Table 2; single sentences count for each segment encoding."""
    numbers = {"QQP": 91.0, "QNLI": 90.5, "SST-2": 92.9, "CoLA": 60.3, "STS-B": 89.3}
    scores = {task: {"valid": dict.fromkeys(metrics(task, "diet"), number)} for task, number in numbers.items()}
    scores["MNLI"] = {"valid": {"accuracy": 86.3}, "valid-mismatched": {"accuracy": 86.3}}
    variants = [
        Variant(task, Model("diet-rel", Path()), "head" if TASKS[task].pair else "none", "head") for task in scores
    ]
    write_json(tmp_path / "models" / "diet-rel.json", {"encoding": "diet-rel"})
    rows = [{"task": one.task, "model": one.label, **scored_alike(scores[one.task])} for one in variants]
    (row,) = averages(rows, variants, tmp_path, "diet")
    assert (row["task"], row["model"], row["of"]) == ("average", "diet-rel, segments per head", "7 numbers")
    assert (round(row["score"], 1), row["paper"]) == (85.2, 85.2)
    assert row["comparable"] == "yes, if pretrained like the paper's model"
    (other,) = averages(rows, variants, tmp_path, "m4m")  # the paper of another protocol has no such average
    assert other.get("paper") is None
    assert averages([*rows[1:], {**rows[0], "scores": {}}], variants, tmp_path, "diet") == []
    cut = {**rows[0], "other data": ["30 training rows, not 363,846"]}
    (row,) = averages([cut, *({**row, "differs": ["2 seeds, not 5"]} for row in rows[1:])], variants, tmp_path, "diet")
    differs = "30 training rows, not 363,846 (QQP); 2 seeds, not 5 (QNLI, SST-2, CoLA, STS-B, MNLI)"
    assert (row["paper"], row["comparable"]) == (None, f"no: {differs}")
    (row,) = averages(rows, variants[2:], tmp_path, "diet")
    assert (row["paper"], row["comparable"]) == (None, "no: no score on QQP, QNLI")


def scored_alike(scores: Scores, seeds: int = 1) -> Row:
    """Return the part of a row that averages read, for training runs that all have the same scores."""
    by_seed = {str(seed): scores for seed in range(1, seeds + 1)}
    return {"scores": scores, "scores of seeds": by_seed, "other data": [], "differs": []}


def test_an_average_has_the_mean_and_deviation_over_seeds(tmp_path: Path) -> None:
    """The score comes from medians, as in the paper, and the mean from the seeds that have all tasks."""
    write_json(tmp_path / "models" / "m4.json", {"encoding": "m4"})
    variants = [Variant(task, Model("m4", Path()), "none") for task in ("RTE", "SST-2")]
    by_seed = {"RTE": {"3": 50.0, "1": 60.0, "2": 64.0}, "SST-2": {"1": 80.0, "2": 70.0, "4": 90.0}}
    medians = {"RTE": 60.0, "SST-2": 80.0}
    rows = []
    for task, scores in by_seed.items():
        of_seeds = {seed: {"valid": {"accuracy": score}} for seed, score in scores.items()}
        row = scored_alike({"valid": {"accuracy": medians[task]}}) | {"scores of seeds": of_seeds}
        rows.append({"task": task, "model": "m4", **row})
    (row,) = averages(rows, variants, tmp_path, "m1-m4")
    assert (row["score"], row["mean"], row["sd"], row["seeds"]) == (70.0, 68.5, 2.12, 2)
    assert row["score of seeds"] == [70.0, 67.0]
