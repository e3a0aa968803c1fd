"""Define the grid of a model's training runs (learning rates, numbers of epochs and seeds), and choose the best run."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from recipes.lib.planning import flags

from .comparison import COMPARISON
from .models import Model


@dataclass(frozen=True)
class Variant:
    """Name a pretrained model and the task on which it is fine-tuned.

    Attributes:
        task: Name of the task; empty if all training runs have the same task.
        segments: Segment encoding of the model: none, input or head.
        row: Segment encodings of the paper's rows with which this variant is compared, joined by "/". A task of
            single sentences is compared with the rows of all segment encodings of the run, because each of these rows
            reports the task.
    """

    task: str
    model: Model
    segments: str
    row: str = "none"

    @property
    def label(self) -> str:
        texts = {"none": "", "input": ", segments at the input", "head": ", segments per head"}
        return self.model.label + texts[self.segments]

    @property
    def model_slug(self) -> str:
        """Return the part of the variant's name that says which model and segment encoding it has, without the task."""
        return self.model.slug + ("" if self.segments == "none" else f".{self.segments}")

    @property
    def slug(self) -> str:
        """Return the name that the variant has in paths and stage names."""
        return f"{self.task}.{self.model_slug}" if self.task else self.model_slug


@dataclass(frozen=True)
class Trial:
    """Describe one training run of a variant."""

    variant: Variant
    lr: float
    epochs: int
    seed: int

    @property
    def hyperparameters(self) -> str:
        """Return the end of the trial's name: the learning rate, the number of epochs and the seed."""
        return f"lr{self.lr:g}.e{self.epochs}.s{self.seed}"

    @property
    def slug(self) -> str:
        """Return the name that the training run has in paths and stage names."""
        return f"{self.variant.slug}.{self.hyperparameters}"


@dataclass(frozen=True)
class Group:
    """Hold the training runs of a variant with one learning rate and one number of epochs.

    Attributes:
        trials: All training runs, which differ in their seeds.
        finished: The training runs that did not diverge.
        diverged: How the other runs diverged, as text; None if no run diverged.
    """

    trials: list[Trial]
    finished: list[Trial]
    diverged: str | None

    @classmethod
    def of(cls, trials: list[Trial], divergence: Callable[[Trial], object]) -> Group:
        divergences = {trial: divergence(trial) for trial in trials}
        texts = [f"seed {trial.seed}: {text}" for trial, text in divergences.items() if text is not None]
        return cls(trials, [trial for trial in trials if divergences[trial] is None], "; ".join(texts) or None)


@dataclass(frozen=True)
class Grid:
    """Hold the learning rates, numbers of epochs and seeds that are tried."""

    lrs: list[float]
    epochs: list[int]
    seeds: list[int]

    def groups(self, variant: Variant) -> list[list[Trial]]:
        """Return one group of trials for each learning rate and number of epochs; within a group only seeds differ."""
        pairs = product(self.lrs, self.epochs)
        return [[Trial(variant, lr, epochs, seed) for seed in self.seeds] for lr, epochs in pairs]

    def trials(self, variant: Variant) -> list[Trial]:
        return [trial for group in self.groups(variant) for trial in group]

    def reported(
        self, variant: Variant, score: Callable[[Trial], float], divergence: Callable[[Trial], object]
    ) -> list[Group]:
        """Return the group of trials with the highest median score, then all groups in which a training run diverged.

        Args:
            variant: Model and task of the trials.
            score: Function that returns the score of a trial. The function is not called if there is only one group of
                trials.
            divergence: Function that returns how a trial diverged, or None.
        """
        groups = [Group.of(trials, divergence) for trials in self.groups(variant)]
        finished = [group for group in groups if group.finished]
        best = finished[:1]
        if len(finished) > 1:
            best = [max(finished, key=lambda group: statistics.median(map(score, group.finished)))]
        return best + [group for group in groups if group.diverged and group not in best]

    def flags(self) -> list[str]:
        """Return the grid as the command-line options that `from_flags` reads."""
        return flags(lr=[f"{lr:g}" for lr in self.lrs], epochs=self.epochs, seed=self.seeds)

    @classmethod
    def from_flags(cls, arguments: argparse.Namespace) -> Grid:
        return cls(arguments.lr, arguments.epochs, arguments.seed)


def add_options(parser: argparse.ArgumentParser, *variant: str) -> None:
    """Add the options of a command that compares variants and writes the rows of the comparison.

    Args:
        parser: Parser that receives the options.
        variant: Metavars of the values that describe a variant.
    """
    option = parser.add_argument
    option("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    text = "Model to compare, and the task and segment encoding if several are compared; the option may be repeated."
    option("--variant", action="append", nargs=len(variant), required=True, metavar=variant, help=text)
    option("--lr", type=float, action="append", required=True, metavar="LR", help="Learning rate that was tried.")
    option("--epochs", type=int, action="append", required=True, metavar="N", help="Number of epochs that was tried.")
    option("--seed", type=int, action="append", required=True, metavar="N", help="Random seed of a training run.")
    text = f"Name of the file in --output for the rows of the comparison (default: {COMPARISON})."
    option("--table", default=COMPARISON, metavar="NAME", help=text)
    text = "Difference between the run and the paper's protocol; the option may be repeated."
    option("--differs", action="append", default=[], metavar="TEXT", help=text)
