"""The trainings of a model on a task, and those that count."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from recipes.lib.stages import read_json

from . import xnli
from .settings import Trial, Variant
from .tasks import HEADLINE, metrics
from .xnli import Scores


@dataclass(frozen=True)
class Grid:
    """Where the trials are, and what they were."""

    output: Path
    protocol: str
    lrs: list[float]
    epochs: list[int]
    seeds: list[int]

    def scores(self, trial: Trial) -> Scores:
        """By split; of XNLI the means too."""
        found: Scores = read_json(self.output / "scores" / f"{trial.slug}.json")["scores"]
        return xnli.with_means(found) if trial.variant.task == xnli.XNLI else found

    def score(self, trial: Trial) -> Mapping[str, float]:
        """What chooses learning rates and epochs: of the development set, of XNLI the English one."""
        return self.scores(trial)["valid"]

    def headline(self, trial: Trial) -> float:
        """The number that stands in the table."""
        first = metrics(trial.variant.task, self.protocol)[0]
        return self.scores(trial)[HEADLINE.get(trial.variant.task, "valid")][first]

    def medians(self, runs: Sequence[Trial]) -> dict[str, dict[str, float]]:
        """Of each number by itself."""
        found = [self.scores(one) for one in runs]
        return {
            split: {name: statistics.median(one[split][name] for one in found) for name in some}
            for split, some in found[0].items()
        }

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
