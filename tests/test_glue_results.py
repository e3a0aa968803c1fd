"""What the GLUE recipe makes of its trainings: which of them count, medians, margins, the papers' figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from recipes.finetune_glue import __main__ as recipe
from recipes.finetune_glue import compare
from recipes.finetune_glue.grid import Grid, middle
from recipes.finetune_glue.published import COLUMNS, WARM, paper
from recipes.finetune_glue.settings import Trial, Variant
from recipes.finetune_glue.tasks import TASKS, metrics
from recipes.lib.encodings import parse
from recipes.lib.finetuning import Model

SIZE = {"updates": 1, "parameters": 2}  # beside scores


def written(path: Path, found: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))


def scored(grid: Grid, variant: Variant, lr: float, **numbers: tuple[float, ...]) -> None:
    """The scores of a learning rate's runs."""
    for at, seed in enumerate(grid.seeds):
        some = {name: found[at] for name, found in numbers.items()}
        written(
            grid.output / "scores" / f"{Trial(variant, lr, 3, seed).slug}.json", {"scores": {"valid": some}, **SIZE}
        )


def test_the_best_median_counts(tmp_path: Path) -> None:
    """Of two learning rates with three runs each: 5 is the highest run, but the other median is higher."""
    variant = Variant("RTE", Model("m4", Path()), "none")
    grid = Grid(tmp_path, "m1-m4", [1e-5, 2e-5], [3], [1, 2, 3])
    scored(grid, variant, 1e-5, accuracy=(0.1, 0.2, 5.0))
    scored(grid, variant, 2e-5, accuracy=(3.0, 0.0, 1.0))
    assert middle(grid.best(variant)) == Trial(variant, 2e-5, 3, 3)
    assert metrics("QQP", "diet") == ["accuracy", "f1"]
    assert metrics("QQP", "m4m") == ["f1", "accuracy"]


def test_a_row_has_the_median_of_each_number_and_a_correlation_a_margin(tmp_path: Path) -> None:
    variant = Variant("CoLA", Model("m4", Path()), "none")
    grid = Grid(tmp_path, "diet", [1e-5], [3], [1, 2, 3])
    scored(grid, variant, 1e-5, matthews=(1.0, 5.0, 3.001), accuracy=(70.0, 69.0, 68.0))
    for seed in grid.seeds:
        name = Trial(variant, 1e-5, 3, seed).slug
        written(tmp_path / ".stages" / f"train.{name}.done", {"seconds": 60, "command": "c", "commit": "d"})
    written(tmp_path / "models" / "m4.json", {"encoding": "diet-rel", "updates": 1, "layers": 12, "dim": 768})
    splits = {"train": {"labelled": True}, "valid": {"labelled": True}}
    rows = {"task": "CoLA", "splits": splits, "problems": {"label": {"left out": 2, "kept": 1}}}
    written(tmp_path / "data-bin" / "CoLA.m4" / "glue.json", rows)
    for score, margin, beats in ((0.0, 3.5, False), (0.0, 2.5, True), (3.0, 0.0, False)):
        constant = {"constant": "1", "score": score, "margin": margin}
        written(tmp_path / "baselines" / "CoLA.json", {"valid": {"matthews": constant}})
        row = compare.result(replace(variant, row="head"), grid, compare.Beside(True, ["--lr 1, not 2"]))
        assert row["beats baseline"] == beats
    assert (row["score"], row["also"], row["runs"]) == (3.0, "accuracy 69.00", [1.0, 3.0, 5.0])
    assert (row["paper"], row["comparable"]) == ("60.3", "no: 2 rows left out; --lr 1, not 2")


def test_what_is_cut_off_or_unknown_is_told(tmp_path: Path) -> None:
    facts = {"items": 4, "given": 5, "cut": 0, "unknown": 0, "pieces": 100}
    splits = {"train": {**facts, "cut": 3}, "valid": {**facts, "unknown": 5}, "valid-zh": {**facts, "unknown": 6}}
    record = {"longest": 16, "strange": 0.05, "splits": splits, "problems": {"label": {"left out": 1}}}
    written(tmp_path / "XNLI.m4" / "glue.json", record)
    told = recipe.counted(tmp_path / "XNLI.m4")
    assert told.startswith("rows train 4 of 5, valid 4 of 5, valid-zh 4 of 5; cut to 16 pieces: train 3; ")
    assert told.endswith("does not know: valid 5.00%, valid-zh 6.00%; label 1 left out")
    (line,) = recipe.strange([tmp_path / "XNLI.m4"])
    assert line.startswith("XNLI.m4: more than 5% of the pieces of valid-zh are unknown")


def test_the_papers_figures() -> None:
    assert paper("m1-m4", parse("m3"), "none")["MNLI-mm"] == 84.68
    assert paper("m4m", parse("m4m"), "none") == {"MNLI": 83.58, "SST-2": 91.62}
    assert paper(WARM, parse("m4m"), "none")["CoLA"] == 47.02
    assert paper("diet", parse("diet-abs[share=layer-wise,rank=128]"), "head")["QQP"] == 90.8
    assert paper("diet", parse("diet-rel"), "none") == {}
    plain = paper("diet", parse("diet-abs"), "head")
    assert plain == paper("diet", parse("diet-abs[rank=64,share=layer-wise]"), "head") != {}
    assert paper("diet", parse("diet-abs[share=head-wise]"), "head") == {}
    assert all(set(columns) - {"MNLI-mm"} <= set(TASKS) for columns in COLUMNS.values())
