"""The trainings of a model: each learning rate, number of epochs and seed, and those of them that count."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from recipes.lib.planning import flags

from .models import Model


@dataclass(frozen=True)
class Variant:
    """A pretrained model on a task.

    Attributes:
        task: empty where all trainings have the same one.
        segments: none, input or head.
        row: the segments of the paper's row, which has a figure for single sentences too.
    """

    task: str
    model: Model
    segments: str
    row: str = "none"

    @property
    def label(self) -> str:
        shown = {"none": "", "input": ", segments at the input", "head": ", segments per head"}
        return self.model.label + shown[self.segments]

    @property
    def of_model(self) -> str:
        """The variant's name among those of its task."""
        return self.model.slug + ("" if self.segments == "none" else f".{self.segments}")

    @property
    def slug(self) -> str:
        """The variant's name in paths and stages."""
        return f"{self.task}.{self.of_model}" if self.task else self.of_model


@dataclass(frozen=True)
class Trial:
    """One training of a variant."""

    variant: Variant
    lr: float
    epochs: int
    seed: int

    @property
    def of_variant(self) -> str:
        """The training's name among those of its variant."""
        return f"lr{self.lr:g}.e{self.epochs}.s{self.seed}"

    @property
    def slug(self) -> str:
        """The training's name in paths and stages."""
        return f"{self.variant.slug}.{self.of_variant}"


@dataclass(frozen=True)
class Grid:
    """The learning rates, numbers of epochs and seeds that are tried."""

    lrs: list[float]
    epochs: list[int]
    seeds: list[int]

    def groups(self, variant: Variant) -> list[list[Trial]]:
        """Return the trials of each learning rate and number of epochs, which differ in their seeds."""
        pairs = product(self.lrs, self.epochs)
        return [[Trial(variant, lr, epochs, seed) for seed in self.seeds] for lr, epochs in pairs]

    def trials(self, variant: Variant) -> list[Trial]:
        return [trial for group in self.groups(variant) for trial in group]

    def best(self, variant: Variant, score: Callable[[Trial], float]) -> list[Trial]:
        """Return the trials of the learning rate and the epochs with the highest median score.

        Args:
            score: called only if there is something to choose.
        """
        groups = self.groups(variant)
        return groups[0] if len(groups) == 1 else max(groups, key=lambda group: statistics.median(map(score, group)))

    def flags(self) -> list[str]:
        """Return the grid as words of a command; `from_flags` reads them."""
        return flags(lr=[f"{lr:g}" for lr in self.lrs], epochs=self.epochs, seed=self.seeds)

    @classmethod
    def from_flags(cls, arguments: argparse.Namespace) -> Grid:
        return cls(arguments.lr, arguments.epochs, arguments.seed)


def add_options(parser: argparse.ArgumentParser, *variant: str) -> None:
    """Add the options of a comparison: its folder, variants and grid, and in what the run departs from the paper.

    Args:
        variant: what is told of each variant.
    """
    parser.add_argument("--output", type=Path, required=True, help="the recipe's folder")
    parser.add_argument("--variant", action="append", nargs=len(variant), required=True, metavar=variant)
    parser.add_argument("--lr", type=float, action="append", required=True)
    parser.add_argument("--epochs", type=int, action="append", required=True)
    parser.add_argument("--seed", type=int, action="append", required=True)
    parser.add_argument("--differs", action="append", default=[], help="in what the run departs from the paper")
