"""Write comparison.json and submission/.

comparison.json compares the best score of each model and task with the baseline and with the paper.
submission/ has the test predictions of each model for GLUE.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from recipes.lib.package import Divergence, read_divergence, whole_folder
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.reported import Reported
from recipes.lib.significance import PRECISE, compare_with_first, summary
from recipes.lib.stages import read_json

from ..comparison import comparable, encoding_of, write_rows
from ..models import Model
from ..trials import Grid, Group, Trial, Variant, add_options
from . import xnli
from .averages import averages
from .plan import RECORD
from .published import BERT, MISMATCHED, ROBERTA, WARM, paper
from .tasks import HEADLINE, TASKS, metrics
from .xnli import Scores

NAMES = {"f1": "F1", "matthews": "Matthews", "pearson": "Pearson", "spearman": "Spearman"}
#: The papers' other models. A checkpoint does not say whether its training started from another model.
OTHERS = {
    ROBERTA: "roberta-base itself",
    WARM: "started from roberta-base",
    BERT: "BERT as published, test sets",
}
BASE = {"layers": 12, "dim": 768}  # the sizes of all models in the papers' tables


@dataclass(frozen=True)
class Results:
    """Read the results of all training runs, with all hyperparameters that were tried."""

    output: Path
    protocol: str
    grid: Grid
    differs: Sequence[str] = ()  # how the run departs from the protocol

    def first(self, variant: Variant) -> str:
        """Return the metric that chooses the best training run and is shown in the table."""
        return metrics(variant.task, self.protocol)[0]

    def scores(self, trial: Trial) -> Scores:
        """Return the scores by split; for XNLI, these include the means over languages."""
        scores: Scores = read_json(self.output / "scores" / f"{trial.slug}.json")["scores"]
        return xnli.with_means(scores) if trial.variant.task == xnli.XNLI else scores

    def score(self, trial: Trial) -> float:
        """Return the development score (for XNLI: the English one) by which learning rate and epochs are chosen."""
        return self.scores(trial)["valid"][self.first(trial.variant)]

    def medians(self, runs: Sequence[Trial]) -> dict[str, dict[str, float]]:
        """Return the median over the runs, separately for each split and metric."""
        scores = [self.scores(run) for run in runs]
        if not scores:
            return {}
        return {
            split: {name: median(values[split][name] for values in scores) for name in names}
            for split, names in scores[0].items()
        }

    def divergence(self, trial: Trial) -> Divergence | None:
        return read_divergence(self.output / "logs" / f"{trial.slug}.train.log")

    def reported(self, variant: Variant) -> list[Group]:
        """Return the group of trials with the best hyperparameters, then all other groups in which a trial diverged."""
        return self.grid.reported(variant, self.score, self.divergence)

    def best(self, variant: Variant) -> list[Trial]:
        """Return the runs with the best learning rate and number of epochs, the lowest score first."""
        return sorted(self.reported(variant)[0].finished, key=self.score)


def middle(runs: list[Trial]) -> Trial:
    """Return the run with the median score; for an even number of runs, the lower of the two middle runs."""
    return runs[(len(runs) - 1) // 2]


def rows_of(variant: Variant, results: Results) -> list[Row]:
    """Return a row for the best hyperparameters, and a row for every other combination in which a run diverged."""
    return [result(variant, results, group) for group in results.reported(variant)]


def result(variant: Variant, results: Results, group: Group) -> Row:
    """Return a row of the table, in which every score is the median over the runs that did not diverge."""
    output, first = results.output, results.first(variant)
    runs = sorted(group.finished, key=results.score)
    scores = results.medians(runs)
    run = middle(runs) if runs else group.trials[0]
    facts = read_json(output / "scores" / f"{run.slug}.json") if runs else {}
    model = read_json(output / "models" / f"{variant.model.slug}.json")
    record = read_json(output / "data-bin" / f"{variant.task}.{variant.model.slug}" / RECORD)
    baseline = read_json(output / "baselines" / f"{variant.task}.json")["valid"][first]
    headline = HEADLINE.get(variant.task, "valid")
    # rounded like the baseline, because a model may answer with the constant
    score = round(scores[headline][first], 2) if runs else None
    over_seeds = summary("score", [results.scores(trial)[headline][first] for trial in runs])
    other, differs = other_data(record, scores), [*differences(model, record), *results.differs]
    reported = [] if other else figures(variant, model, results.protocol)
    trials = [trial for trial in results.grid.trials(variant) if results.divergence(trial) is None]
    return {
        "task": variant.task,
        "model": variant.label,
        **over_seeds,
        "mean": over_seeds["score"],
        "score": score,
        "of": NAMES.get(first, first),
        "also": also(scores, metrics(variant.task, results.protocol)),
        "baseline": baseline["score"],
        "constant": baseline["constant"],
        "beats baseline": score is not None and score > baseline["score"] + baseline["margin"],
        "diverged": group.diverged,
        "paper": reported or None,
        "comparable": comparable(differs) if reported else None,
        "lr": run.lr,
        "epochs": run.epochs,
        "updates": facts.get("updates"),
        "parameters": facts.get("parameters"),
        **cost(output, f"train:{run.slug}"),
        "trials": {trial.hyperparameters: round(results.score(trial), 2) for trial in trials},
        "segments": variant.row,
        "pretrained": {name: model[name] for name in ("encoding", "updates", "layers", "dim")},
        "scores": rounded(scores, 2),
        "scores of seeds": {str(trial.seed): rounded(results.scores(trial), PRECISE) for trial in group.finished},
        "other data": other,
        "differs": differs,
    }


def rounded(scores: Scores, digits: int) -> dict[str, dict[str, float]]:
    """Return the scores of all splits and metrics, rounded to `digits` decimals."""
    return {split: {name: round(value, digits) for name, value in values.items()} for split, values in scores.items()}


def also(scores: Scores, names: list[str]) -> str:
    """Return the further metrics on the development set, and the first metric on all other splits, as text."""
    if not scores:
        return ""
    parts = [f"{NAMES.get(name, name)} {scores['valid'][name]:.2f}" for name in names[1:]]
    others = {split: values for split, values in scores.items() if split not in ("valid", xnli.MEAN, xnli.OTHERS)}
    parts += [f"{split.removeprefix('valid-')} {values[names[0]]:.2f}" for split, values in others.items()]
    return ", ".join(parts)


def figures(variant: Variant, model: Mapping[str, Any], protocol: str) -> list[Reported]:
    """Return the paper's scores for this encoding; MNLI has scores on the matched and then on the mismatched set.

    The M4M paper has three kinds of models: models trained from scratch, roberta-base itself, and models that started
    from roberta-base. If several segment encodings are tried, a task of single sentences has the paper's score for each
    segment encoding.
    """
    encoding, segments = encoding_of(model["encoding"]), variant.row.split("/")
    sets = [variant.task, *([MISMATCHED] if variant.task == "MNLI" else [])]
    names = (protocol, *(row for row in OTHERS if row.startswith(f"{protocol}, ")))
    return [
        Reported(score=score, model=OTHERS.get(name, ""), segments=kind if len(segments) > 1 else "")
        for name, kind, task in product(names, segments, sets)
        if (score := paper(name, encoding, kind, task)) is not None
    ]


def differences(model: Mapping[str, Any], record: Mapping[str, Any]) -> list[str]:
    """Return the known differences between the run and the papers' experiments, as short texts.

    Args:
        model: Facts about the pretrained model, such as `layers` and `dim`.
        record: Contents of glue.json, which describes the prepared rows.
    """
    sized = all(model[name] == size for name, size in BASE.items())
    parts = [] if sized else [f"{model['layers']} layers of width {model['dim']}"]
    left_out = sum(done.get("left out", 0) for done in record["problems"].values())
    return parts + ([f"{left_out:,} rows left out"] if left_out else [])


def other_data(record: Mapping[str, Any], scores: Scores) -> list[str]:
    """Return notes on how the rows and, for XNLI, the scored sets differ from the published ones.

    Args:
        record: Contents of glue.json, which describes the prepared rows.
        scores: Scores, keyed by split and by metric; empty if all training runs diverged.
    """
    return other_rows(record) + (xnli.differences(scores) if scores and record["task"] == xnli.XNLI else [])


def other_rows(record: Mapping[str, Any]) -> list[str]:
    """Return a note about each labelled split whose number of rows differs from the published number."""
    published, others = TASKS[record["task"]].rows, dict[str, tuple[int, int]]()
    for split, facts in record["splits"].items():
        number = published.get(split, published.get(split.partition("-")[0]))  # XNLI has one number for all languages
        if facts["labelled"] and number and facts["given"] != number:
            others[split] = facts["given"], number
    ours, theirs = others.pop("train", (0, 0))
    parts = [f"{ours:,} training rows, not {theirs:,}"] if theirs else []
    return parts + ([f"the number of rows in {', '.join(others)} differs from the published number"] if others else [])


def submission(variants: list[Variant], results: Results) -> None:
    """For each model and task, copy the predictions of the run with the median score into submission/."""
    with whole_folder(results.output / "submission") as partial:
        for variant in variants:
            into = partial / variant.model_slug
            into.mkdir(exist_ok=True)
            if not (runs := results.best(variant)):  # all training runs diverged
                continue
            answers = results.output / "predictions" / middle(runs).slug
            for file in TASKS[variant.task].submissions.values():
                if (answers / file).is_file():
                    shutil.copyfile(answers / file, into / file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protocol", required=True, metavar="NAME", help="Fine-tuning protocol, such as m1-m4.")
    add_options(parser, "TASK", "MODEL", "SEGMENTS", "ROW")
    arguments = parser.parse_args()
    results = Results(arguments.output, arguments.protocol, Grid.from_flags(arguments), arguments.differs)
    variants = [Variant(task, Model(label, Path()), kind, row) for task, label, kind, row in arguments.variant]
    submission(variants, results)
    rows = [row for variant in variants for row in rows_of(variant, results)]
    rows += averages(rows, variants, arguments.output, arguments.protocol)
    compare_with_first(rows, "score", "task")
    write_rows(rows, arguments.output, arguments.table)


if __name__ == "__main__":
    main()
