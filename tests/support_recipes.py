"""Plan the stages of a recipe, and compare the results of two runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from recipes.lib.recipe import Recipe, Row, S, shown
from recipes.lib.settings import load
from recipes.lib.stages import Stage

OUTPUT = Path("/tmp/an output")
#: Parts of the names of columns that differ between two equal runs: times, memory, and values that name the folder.
MEASURED = ("minutes", "seconds", "/s", "time", "speed", "MB", "memory of", "command", "commit")


@dataclass(frozen=True)
class Planned(Generic[S]):
    """Load the settings of a recipe and plan its stages. The option --train.lr is the keyword argument `train__lr`.

    Args:
        recipe: Recipe to plan.
        preset: Preset, unless a method gets another one.
        output: Folder of the run, unless `stages` gets another one.
        needed: Function that returns the options that a preset needs; its argument is the name of the preset.
    """

    recipe: Recipe[S]
    preset: str = "small"
    output: Path = OUTPUT
    needed: Callable[[str], Mapping[str, str]] = lambda preset: {}

    def settings(self, preset: str = "", **options: str) -> S:
        preset = preset or self.preset
        texts = {**self.needed(preset), **options}
        return load(self.recipe, preset, texts={name.replace("__", "."): text for name, text in texts.items()})

    def stages(self, preset: str = "", output: Path | None = None, **options: str) -> dict[str, Stage]:
        """Return the stages, keyed by name."""
        output = output or self.output
        plan = self.recipe.plan(self.settings(preset, **options), output, shown(output))
        return {stage.name: stage for stage in plan.stages()}


def value(stage: Stage, flag: str) -> str:
    """Return the word that follows a flag in the command of a stage."""
    return stage.command[stage.command.index(flag) + 1]


def unmeasured(rows: Iterable[Row]) -> list[Row]:
    """Return the rows without what differs between two equal runs."""
    return [{key: row[key] for key in row if not any(name in key for name in MEASURED)} for row in rows]
