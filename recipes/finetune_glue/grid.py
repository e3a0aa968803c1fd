"""The trainings of a model on a task, and those that count."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from recipes.lib.stages import read_json

from .settings import Trial, Variant
from .tasks import headline, metrics


@dataclass(frozen=True)
class Grid:
    """Where the trials are, and what they were."""

    output: Path
    protocol: str
    lrs: list[float]
    epochs: list[int]
    seeds: list[int]

    def score(self, trial: Trial, split: str = "valid") -> dict[str, float]:
        found: dict[str, float] = read_json(self.output / "scores" / f"{trial.slug}.json")["scores"][split]
        return found

    def headline(self, trial: Trial) -> float:
        """The number that stands in the table."""
        scores = read_json(self.output / "scores" / f"{trial.slug}.json")["scores"]
        return headline(trial.variant.task, scores, metrics(trial.variant.task, self.protocol)[0])

    def best(self, variant: Variant) -> list[Trial]:
        """The runs of the learning rate and the epochs whose median is highest, worst first."""
        first = metrics(variant.task, self.protocol)[0]
        grid = [
            [Trial(variant, lr, epochs, seed) for seed in self.seeds] for lr, epochs in product(self.lrs, self.epochs)
        ]
        runs = max(grid, key=lambda some: statistics.median(self.score(one)[first] for one in some))
        return sorted(runs, key=lambda one: self.score(one)[first])


def middle(runs: list[Trial]) -> Trial:
    """The run of the median; of an even number, the lower one of the two."""
    return runs[(len(runs) - 1) // 2]
