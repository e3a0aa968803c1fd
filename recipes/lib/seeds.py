"""Name the training runs that differ only in their random seed."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Seeds:
    """Hold the random seeds with which each model of a run is trained.

    Args:
        seeds: Random seeds of the training runs.
        own: Random seed of the whole run. The name of a training run with this seed does not contain the seed.
    """

    seeds: tuple[int, ...]
    own: int

    def slug(self, name: str, seed: int) -> str:
        """Return the name of a training run in paths and stages: `shaw`, or `shaw.seed=2` if the seed is not `own`."""
        return name if seed == self.own else f"{name}.seed={seed}"

    def slugs(self, name: str) -> dict[str, int]:
        """Return the seed of each training run of a model, keyed by the name of the training run."""
        return {self.slug(name, seed): seed for seed in self.seeds}

    def label(self, name: str, seed: int) -> str:
        """Return the name of a training run in figures: the model's name, and the seed if the run has several seeds."""
        return name if len(self.seeds) == 1 else f"{name}, seed {seed}"

    def flags(self) -> list[str]:
        """Return the seeds as the command-line options that `from_arguments` reads."""
        return ["--seed", str(self.own), "--seeds", ",".join(map(str, self.seeds))]

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> Seeds:
        return cls(tuple(map(int, arguments.seeds.split(","))), arguments.seed)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `Seeds.flags` writes."""
    text = "Random seed of the run; a file name contains a seed if the seed differs from this one."
    parser.add_argument("--seed", type=int, required=True, metavar="N", help=text)
    text = "Random seeds with which each model was trained."
    parser.add_argument("--seeds", required=True, metavar="N,...", help=text)
