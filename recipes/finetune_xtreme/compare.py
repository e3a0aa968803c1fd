"""Write comparison.json for the question datasets, with the EM and F1 of models, baselines and the paper.

The paper reports only means over languages. If several learning rates or numbers of epochs were tried, the table shows
the combination with the best median F1 on English development questions. With several seeds, each score is the median
over the seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from fairseq_posenc.metrics.squad import margin
from recipes.lib.finetuning.comparison import comparable, encoding_of, write_rows
from recipes.lib.finetuning.models import Model
from recipes.lib.finetuning.questions.files import CHECKED, GOLD, RECORD, unreachable
from recipes.lib.finetuning.trials import Grid, Group, Trial, Variant, add_options
from recipes.lib.package import Divergence, read_divergence, read_parameters
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.significance import PRECISE, compare_with_first, summary
from recipes.lib.stages import read_json

from . import published
from .sets import ENGLISH, SETS

MEAN, OTHERS = "mean", "mean but en"
Scores = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Results:
    """Read the results in the folder of the training runs, for all hyperparameters that were tried."""

    output: Path
    grid: Grid
    differs: Sequence[str] = ()  # how the run departs from the paper

    def reported(self, variant: Variant) -> list[Group]:
        """Return the group of runs with the best English score, then the groups in which a run diverged."""
        return self.grid.reported(variant, self.english, self.divergence)

    def english(self, trial: Trial) -> float:
        return float(read_json(self.output / "scores" / f"{trial.slug}.json")["f1"])

    def divergence(self, trial: Trial) -> Divergence | None:
        return read_divergence(self.log(trial))

    def log(self, trial: Trial) -> Path:
        return self.output / "logs" / f"{trial.slug}.train.log"

    def scores(self, trial: Trial, task: str) -> Scores:
        """Return the scores by language, and their means over languages."""
        scores: Scores = read_json(self.output / "scores" / f"{trial.slug}.{SETS[task].name}.json")
        return scores | means(scores)

    def baseline(self, task: str) -> Scores:
        """Return the scores of the best baseline by language, and their means over languages."""
        baselines: dict[str, Scores] = read_json(self.output / "baselines" / f"{SETS[task].name}.json")
        best = {
            language: max(
                (score for name, score in named.items() if name != GOLD), key=lambda score: float(score["f1"])
            )
            for language, named in baselines.items()
        }
        return best | means(best)


def means(scores: Scores) -> Scores:
    """Return the mean over all languages and, if English is one of several languages, the mean without English."""
    others = {language: score for language, score in scores.items() if language != ENGLISH}
    groups = {MEAN: scores} | ({OTHERS: others} if 0 < len(others) < len(scores) else {})
    return {name: _mean(group) for name, group in groups.items()}


def _mean(scores: Scores) -> dict[str, Any]:
    means: dict[str, Any] = {name: fmean(score[name] for score in scores.values()) for name in ("em", "f1")}
    return means | {"total": sum(score["total"] for score in scores.values())}


def _beats(f1: float, baseline: Scores, language: str) -> bool:
    """Return whether an F1 is more than two standard errors above the F1 of the baseline.

    For a mean over languages, the margin of two standard errors is the mean of the languages' margins. Averaging over
    languages does not shrink the margin, because the questions are translations of each other and hence not
    independent.
    """
    groups = {MEAN: set(baseline) - {MEAN, OTHERS}, OTHERS: set(baseline) - {MEAN, OTHERS, ENGLISH}}
    languages = sorted(groups.get(language, {language}))
    baseline_f1 = float(baseline[language]["f1"])
    return f1 > baseline_f1 + fmean(margin(f1, baseline_f1, baseline[code]["total"]) for code in languages)


def rows(task: str, variant: Variant, results: Results) -> list[Row]:
    """Return rows for the best hyperparameters, and for all hyperparameters with which a training run diverged."""
    return [row for group in results.reported(variant) for row in rows_of(task, variant, results, group)]


def rows_of(task: str, variant: Variant, results: Results, group: Group) -> list[Row]:
    """Return the rows of the means and of the languages, in this order, or one row if all training runs diverged."""
    runs = group.finished
    trial = group.trials[0]
    same = {"diverged": group.diverged, "lr": trial.lr, "epochs": trial.epochs}
    same |= {"parameters": read_parameters(results.log(trial)), **cost(results.output, f"train:{trial.slug}")}
    if not runs:
        return [{"task": task, "model": variant.label, "language": MEAN, **summary("F1", []), **same}]
    scores, baseline = [results.scores(run, task) for run in runs], results.baseline(task)
    model, columns = compared(task, variant, results, scores[0])
    predictions = results.output / "predictions" / f"{runs[0].slug}.{SETS[task].name}"
    order = [name for name in (MEAN, OTHERS) if name in scores[0]]
    order += [name for name in scores[0] if name not in order]

    def row(language: str) -> Row:
        exact, f1 = (median(run[language][name] for run in scores) for name in ("em", "f1"))
        known = language in SETS[task].languages  # False for a mean
        return {
            "task": task,
            "model": variant.label,
            "language": language,
            **summary("F1", [run[language]["f1"] for run in scores]),
            "EM": round(exact, 2),
            "F1": round(f1, 2),
            "mean F1": round(fmean(run[language]["f1"] for run in scores), 2),
            "mean EM": round(fmean(run[language]["em"] for run in scores), 2),
            "scores of seeds": {
                str(trial.seed): {"F1": round(run[language]["f1"], PRECISE), "EM": round(run[language]["em"], PRECISE)}
                for trial, run in zip(runs, scores, strict=True)
            },
            "baseline EM": round(baseline[language]["em"], 2),
            "baseline F1": round(baseline[language]["f1"], 2),
            "beats baseline": _beats(f1, baseline, language),
            **(columns if language == MEAN else dict.fromkeys(columns)),
            "questions": int(scores[0][language]["total"]),
            "out of reach": unreachable(predictions / language) if known else None,
            "rules": SETS[task].rules(language) if known else None,
            **same,
            "segments": variant.row,
            "pretrained": model,
        }

    return [row(language) for language in order]


def compared(task: str, variant: Variant, results: Results, scored: Scores) -> tuple[dict[str, Any], Row]:
    """Return the pretrained model's encoding and sizes, the paper's means, and whether the run is comparable with them.

    Args:
        task: Name of a dataset.
        variant: The model and its segment encoding.
        results: Reader for the results of the run.
        scored: Scores by language; languages without gold answers are left out.
    """
    facts = read_json(results.output / CHECKED / f"{variant.slug}.json")
    model = {"encoding": facts["pretrained"], "layers": facts["layers"], "dim": facts["dim"]}
    data = results.output / "data-bin"
    english = read_json(data / variant.model.slug / RECORD)["splits"]["train"]
    splits = read_json(data / f"{variant.model.slug}.{SETS[task].name}" / RECORD)["splits"]
    splits = {language: split for language, split in splits.items() if language in scored}
    questions = {language: split["given"] for language, split in splits.items()}
    left = {name: split["given"] - split["questions"] for name, split in {"training": english, **splits}.items()}
    same = papers_data(task, english["given"], questions)
    reported = published.figures(task, encoding_of(model["encoding"]), variant.row) if same else None
    sized = (model["layers"], model["dim"]) == (published.LAYERS, published.DIM)
    texts = [] if sized else [f"{model['layers']} layers of width {model['dim']}"]
    texts += [f"{number:,} questions left out of {name}" for name, number in left.items() if number]
    exact, f1 = reported or (None, None)
    differs = [*texts, *results.differs]
    text = comparable(differs) if reported else None
    return model, {"paper's EM": exact, "paper's F1": f1, "comparable": text, "differs": differs}


def papers_data(task: str, training: int, questions: Mapping[str, int]) -> bool:
    """Return whether a run has the paper's data: all training questions, and all questions in all languages.

    Args:
        task: Name of a dataset.
        training: Number of training questions.
        questions: Number of questions in each scored language.
    """
    return training == published.TRAINING and questions == SETS[task].questions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", action="append", required=True, choices=list(SETS), help="Name of the dataset.")
    add_options(parser, "MODEL", "SEGMENTS", "ROW")
    arguments = parser.parse_args()
    results = Results(arguments.output, Grid.from_flags(arguments), arguments.differs)
    variants = [Variant("", Model(label, Path()), *rest) for label, *rest in arguments.variant]
    table = [row for task in arguments.task for variant in variants for row in rows(task, variant, results)]
    compare_with_first(table, "F1", "task", "language")
    write_rows(table, arguments.output, arguments.table)


if __name__ == "__main__":
    main()
