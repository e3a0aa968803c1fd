"""Find the training runs that diverged: their models are not evaluated, and the report shows when they diverged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .logs import training_log
from .package import read_divergence


class Runs(NamedTuple):
    """Hold the names of a model's training runs that finished, and a text about the diverged runs.

    Args:
        finished: Names of the training runs that did not diverge.
        diverged: How the other runs diverged, as text; None if no run diverged.
    """

    finished: list[str]
    diverged: str | None


def runs(output: Path, seeds: Mapping[str, int]) -> Runs:
    """Read a model's training logs, and return which training runs finished and which diverged.

    Args:
        output: Folder of the run.
        seeds: Seed of each training run, keyed by the name of the training run, as `Seeds.slugs` returns them.
    """
    divergences = {name: read_divergence(training_log(output, name)) for name in seeds}
    texts = {name: str(divergence) for name, divergence in divergences.items() if divergence}
    if len(seeds) > 1:
        texts = {name: f"seed {seeds[name]}: {text}" for name, text in texts.items()}
    return Runs([name for name in seeds if name not in texts], "; ".join(texts.values()) or None)
