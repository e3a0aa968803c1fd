"""comparison.json of questions: by model, set and language EM and F1, the baseline's, and of means the paper's.

Of several learning rates or epochs those count whose median F1 on the English questions of --dev-file is best; of
several runs the median of each number.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from fairseq_posenc.metrics.squad import margin
from recipes.finetune_glue.compare import encoding_of
from recipes.finetune_glue.settings import Trial, Variant
from recipes.finetune_squad.files import unreachable
from recipes.finetune_squad.plan import RECORD
from recipes.finetune_squad.settings import GOLD
from recipes.lib.finetuning import Model
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.stages import read_json, write_atomically

from . import published
from .sets import ENGLISH, SETS, TRAINING

MEAN, OTHERS = "mean", "mean but en"
Scores = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Results:
    """Where the trainings are, and what they were."""

    output: Path
    lrs: list[float]
    epochs: list[int]
    seeds: list[int]
    differs: Sequence[str] = ()  # in what the run departs from the paper's

    def best(self, variant: Variant) -> list[Trial]:
        """The runs of the learning rate and the epochs that are best in English."""
        grid = [
            [Trial(variant, lr, epochs, seed) for seed in self.seeds] for lr, epochs in product(self.lrs, self.epochs)
        ]
        return grid[0] if len(grid) == 1 else max(grid, key=self.english)

    def english(self, runs: Sequence[Trial]) -> float:
        return statistics.median(read_json(self.output / "scores" / f"{slug(one)}.json")["f1"] for one in runs)

    def scores(self, trial: Trial, task: str) -> Scores:
        """By language, and the means."""
        found: Scores = read_json(self.output / "scores" / f"{slug(trial)}.{SETS[task].name}.json")
        return found | means(found)

    def baseline(self, task: str) -> Scores:
        found: dict[str, Scores] = read_json(self.output / "baselines" / f"{SETS[task].name}.json")
        best = {
            language: max((one for name, one in some.items() if name != GOLD), key=lambda one: float(one["f1"]))
            for language, some in found.items()
        }
        return best | means(best)


def slug(trial: Trial) -> str:
    """As SQuAD's recipe has it: it has one task."""
    return trial.slug.removeprefix(f"{TRAINING}.")


def means(found: Scores) -> Scores:
    """Over all languages, and over those that were not trained on."""
    others = {language: one for language, one in found.items() if language != ENGLISH}
    made = {MEAN: found} | ({OTHERS: others} if 0 < len(others) < len(found) else {})
    return {name: _mean(some) for name, some in made.items()}


def _mean(some: Scores) -> dict[str, Any]:
    made: dict[str, Any] = {name: statistics.fmean(one[name] for one in some.values()) for name in ("em", "f1")}
    return made | {"total": sum(one["total"] for one in some.values())}


def _beats(f1: float, baseline: Scores, language: str) -> bool:
    """By two standard errors; questions that are translated are the same: a mean over languages is not surer."""
    groups = {MEAN: set(baseline) - {MEAN, OTHERS}, OTHERS: set(baseline) - {MEAN, OTHERS, ENGLISH}}
    some = [baseline[name] for name in sorted(groups.get(language, {language}))]
    theirs = float(baseline[language]["f1"])
    return f1 > theirs + statistics.fmean(margin(f1, theirs, one["total"]) for one in some)


def rows(task: str, variant: Variant, results: Results) -> list[Row]:
    """The means, then the languages."""
    runs = results.best(variant)
    found, baseline = [results.scores(one, task) for one in runs], results.baseline(task)
    model, theirs = compared(task, variant, results, found[0])
    order = [name for name in (MEAN, OTHERS) if name in found[0]]
    order += [name for name in found[0] if name not in order]
    return [
        {
            "task": task,
            "model": variant.label,
            "language": language,
            **medians(found, language),
            "baseline EM": round(baseline[language]["em"], 2),
            "baseline F1": round(baseline[language]["f1"], 2),
            "beats baseline": _beats(statistics.median(one[language]["f1"] for one in found), baseline, language),
            **(theirs if language == MEAN else dict.fromkeys(theirs)),
            "questions": int(found[0][language]["total"]),
            "out of reach": missed(runs[0], task, language, results),
            "rules": SETS[task].rules(language) if language in SETS[task].languages else None,
            "lr": runs[0].lr,
            "epochs": runs[0].epochs,
            "runs": [round(one[language]["f1"], 2) for one in found],
            **cost(results.output, f"train:{slug(runs[0])}"),
            "pretrained": model,
        }
        for language in order
    ]


def missed(trial: Trial, task: str, language: str, results: Results) -> int | None:
    """Questions whose answers no prediction can be; of means none."""
    folder = results.output / "predictions" / f"{slug(trial)}.{SETS[task].name}" / language
    return unreachable(folder) if language in SETS[task].languages else None


def medians(found: Sequence[Scores], language: str) -> Row:
    em, f1 = (statistics.median(one[language][name] for one in found) for name in ("em", "f1"))
    return {"EM": round(em, 2), "F1": round(f1, 2)}


def compared(task: str, variant: Variant, results: Results, scored: Scores) -> tuple[dict[str, Any], Row]:
    """The pretrained model, and the paper's mean beside what keeps it from being compared.

    Args:
        scored: what the mean is of; of a language whose file has no answers there are predictions only.
    """
    name = variant.slug.removeprefix(f"{TRAINING}.")
    facts = read_json(results.output / "checked" / f"{name}.json")
    model = {"encoding": facts["pretrained"], "layers": facts["layers"], "dim": facts["dim"]}
    theirs = published.figures(task, encoding_of(model["encoding"]), variant.row)
    data = results.output / "data-bin"
    english = read_json(data / variant.model.slug / RECORD)["splits"]["train"]
    splits = read_json(data / f"{variant.model.slug}.{SETS[task].name}" / RECORD)["splits"]
    splits = {language: one for language, one in splits.items() if language in scored}
    given = {language: one["given"] for language, one in splits.items()}
    left = {name: one["given"] - one["questions"] for name, one in {"training": english, **splits}.items()}
    why = differences(task, model, english["given"], given)
    why += [f"{number:,} questions left out of {name}" for name, number in left.items() if number]
    why += results.differs
    told = f"no: {'; '.join(why)}" if why else "if pretrained as the paper's"
    exact, f1 = theirs or (None, None)
    return model, {"paper's EM": exact, "paper's F1": f1, "comparable": told if theirs else None}


def differences(task: str, model: dict[str, Any], training: int, questions: dict[str, int]) -> list[str]:
    """What is other than in the paper, in a few words each."""
    known, told = SETS[task].questions, list[str]()
    if (model["layers"], model["dim"]) != (published.LAYERS, published.DIM):
        told.append(f"{model['layers']} layers of {model['dim']}")
    if training != published.TRAINING:
        told.append(f"{training:,} questions of training")
    if len(questions) < len(known):
        told.append(f"{len(questions)} of {len(known)} languages")
    parts = [language for language, number in questions.items() if number != known[language]]
    return told + ([f"other questions in {', '.join(parts)}"] if parts else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="the recipe's folder")
    parser.add_argument("--task", action="append", required=True, choices=list(SETS))
    told = ("MODEL", "SEGMENTS", "ROW")
    parser.add_argument("--variant", action="append", nargs=3, required=True, metavar=told)
    parser.add_argument("--lr", type=float, action="append", required=True)
    parser.add_argument("--epochs", type=int, action="append", required=True)
    parser.add_argument("--seed", type=int, action="append", required=True)
    parser.add_argument("--differs", action="append", default=[], help="in what the run departs from the paper's")
    asked = parser.parse_args()
    results = Results(asked.output, asked.lr, asked.epochs, asked.seed, asked.differs)
    variants = [Variant(TRAINING, Model(label, Path()), *rest) for label, *rest in asked.variant]
    found = [row for task in asked.task for variant in variants for row in rows(task, variant, results)]
    write_atomically(asked.output / "comparison.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
