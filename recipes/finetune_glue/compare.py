"""comparison.json and submission/: of each model and task the best settings, the baseline, the paper's figure."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from recipes.lib.encodings import Encoding, parse
from recipes.lib.finetuning import Model
from recipes.lib.folders import whole
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.stages import read_json, write_atomically
from recipes.lib.values import Refused

from . import xnli
from .grid import Grid, middle
from .plan import RECORD
from .published import MISMATCHED, ROBERTA, WARM, paper
from .settings import Trial, Variant
from .tasks import HEADLINE, TASKS, metrics
from .xnli import Scores

NAMES = {"f1": "F1", "matthews": "Matthews", "pearson": "Pearson", "spearman": "Spearman"}
VARIANT = ("TASK", "MODEL", "SEGMENTS", "ROW")
#: what stands behind a paper's figures; a checkpoint does not say whether it went on from another
BEHIND = {ROBERTA: " (roberta-base itself)", WARM: " (gone on from roberta-base)"}
BASE = {"layers": 12, "dim": 768}  # of all models in the papers' tables


def encoding_of(label: str) -> Encoding | None:
    """None where a label is none of an encoding."""
    try:
        return parse(label)
    except Refused:
        return None


def result(variant: Variant, grid: Grid, differs: Sequence[str] = ()) -> Row:
    """Scores are medians of the runs, each by itself.

    Args:
        differs: in what the run departs from the protocol.
    """
    runs = grid.best(variant)
    one, names, scores = middle(runs), metrics(variant.task, grid.protocol), grid.medians(runs)
    first = names[0]
    facts = read_json(grid.output / "scores" / f"{one.slug}.json")
    model = read_json(grid.output / "models" / f"{variant.model.slug}.json")
    record = read_json(grid.output / "data-bin" / f"{variant.task}.{variant.model.slug}" / RECORD)
    baseline = read_json(grid.output / "baselines" / f"{variant.task}.json")["valid"][first]
    score = round(scores[HEADLINE.get(variant.task, "valid")][first], 2)  # as the baseline, which it may be
    theirs = figures(variant, model, grid.protocol)
    why = [*differences(model, record, scores), *differs]
    return {
        "task": variant.task,
        "model": variant.label,
        "score": score,
        "of": NAMES.get(first, first),
        "also": also(scores, names),
        "baseline": baseline["score"],
        "constant": baseline["constant"],
        "beats baseline": score > baseline["score"] + baseline["margin"],
        "paper": theirs,
        "comparable": comparable(why) if theirs else None,
        "lr": one.lr,
        "epochs": one.epochs,
        "runs": [round(grid.headline(run), 2) for run in runs],
        "updates": facts["updates"],
        "parameters": facts["parameters"],
        **cost(grid.output, f"train:{one.slug}"),
        "trials": trials(variant, grid, first),
        "pretrained": {name: model[name] for name in ("encoding", "updates", "layers", "dim")},
        "scores": {split: {name: round(found, 2) for name, found in some.items()} for split, some in scores.items()},
    }


def trials(variant: Variant, grid: Grid, first: str) -> dict[str, float]:
    """What each training scored."""
    chosen = [Trial(variant, *one) for one in product(grid.lrs, grid.epochs, grid.seeds)]
    return {one.slug.removeprefix(f"{variant.slug}."): round(grid.score(one)[first], 2) for one in chosen}


def also(scores: Scores, names: list[str]) -> str:
    """The task's other scores."""
    told = [f"{NAMES.get(name, name)} {scores['valid'][name]:.2f}" for name in names[1:]]
    others = {split: found for split, found in scores.items() if split not in ("valid", xnli.MEAN, xnli.OTHERS)}
    told += [f"{split.removeprefix('valid-')} {found[names[0]]:.2f}" for split, found in others.items()]
    return ", ".join(told)


def figures(variant: Variant, model: dict[str, Any], protocol: str) -> str | None:
    """The paper's, of this encoding; of MNLI both sets. M4M's has models from scratch, roberta-base, and from that."""
    encoding = encoding_of(model["encoding"])
    sets = [variant.task, *([MISMATCHED] if variant.task == "MNLI" else [])]
    told = []
    for name in (protocol, *(BEHIND if protocol == "m4m" else [])):
        numbers = [paper(name, encoding, variant.row, one) for one in sets]
        if some := "/".join(f"{number:g}" for number in numbers if number is not None):
            told.append(some + BEHIND.get(name, ""))
    return "; ".join(told) or None


def differences(model: dict[str, Any], record: dict[str, Any], scores: Scores) -> list[str]:
    """What is other than in the papers, as far as can be told, in a few words each.

    Args:
        model: its sizes. record: of the rows.
    """
    sized = all(model[name] == size for name, size in BASE.items())
    told = [] if sized else [f"{model['layers']} layers of {model['dim']}"]
    told += other_rows(record)
    left_out = sum(done.get("left out", 0) for done in record["problems"].values())
    told += [f"{left_out:,} rows left out"] if left_out else []
    told += xnli.differences(scores) if record["task"] == xnli.XNLI else []
    return told


def other_rows(record: dict[str, Any]) -> list[str]:
    """Splits that are trained on or scored and have not as many rows as were published."""
    wanted, given = TASKS[record["task"]].rows, dict[str, tuple[int, int]]()
    for split, facts in record["splits"].items():
        theirs = wanted.get(split, wanted.get(split.partition("-")[0]))  # XNLI's: of each language
        if facts["labelled"] and theirs and facts["given"] != theirs:
            given[split] = facts["given"], theirs
    told = [f"{ours:,} rows of training, not {theirs:,}" for ours, theirs in [given.pop("train", (0, 0))] if theirs]
    return told + ([f"other rows in {', '.join(given)}"] if given else [])


def comparable(why: list[str]) -> str:
    return f"no: {'; '.join(why)}" if why else "if pretrained as the paper's"


def submission(variants: list[Variant], grid: Grid) -> None:
    """GLUE's files of each model: those of the run that counts."""
    with whole(grid.output / "submission") as partial:
        for variant in variants:
            name = variant.slug.removeprefix(f"{variant.task}.")
            into = partial / name
            into.mkdir(exist_ok=True)
            made = grid.output / "predictions" / middle(grid.best(variant)).slug
            for file in TASKS[variant.task].submissions.values():
                if (made / file).is_file():
                    shutil.copyfile(made / file, into / file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the recipe's folder")
    parser.add_argument("--protocol", required=True)
    parser.add_argument("--variant", action="append", nargs=4, required=True, metavar=VARIANT)
    parser.add_argument("--lr", type=float, action="append", required=True)
    parser.add_argument("--epochs", type=int, action="append", required=True)
    parser.add_argument("--seed", type=int, action="append", required=True)
    parser.add_argument("--differs", action="append", default=[], help="in what the run departs from the protocol")
    asked = parser.parse_args()
    grid = Grid(asked.output, asked.protocol, asked.lr, asked.epochs, asked.seed)
    variants = [Variant(task, Model(label, Path()), segments, row) for task, label, segments, row in asked.variant]
    rows = [result(variant, grid, asked.differs) for variant in variants]
    submission(variants, grid)
    write_atomically(asked.output / "comparison.json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
