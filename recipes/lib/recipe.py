"""What a recipe is: settings, the stages planned from them, and what it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from .stages import Stage

ROOT = Path(__file__).resolve().parents[2]  # commands run here, so that they can be copied from any report
Row = dict[str, object]
Chain = list[Stage]
Phase = list[Chain]


def about(text: str) -> dict[str, str]:
    """A setting's line of `--help`: `lr: float = field(metadata=about("peak learning rate"))`."""
    return {"help": text}


@dataclass(kw_only=True)
class Settings:
    """The settings that every recipe has. Those without a default have to be in every preset."""

    seed: int = field(default=1, metadata=about("of the data and of the trainings"))
    jobs: int = field(default=1, metadata=about("commands side by side, where they do not need each other"))


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Plan:
    """Phases follow each other; the chains of one phase do not need each other and may run side by side."""

    phases: list[Phase]

    def stages(self) -> list[Stage]:
        return [stage for phase in self.phases for chain in phase for stage in chain]


def no_rows(settings: Settings, output: Path) -> list[Row]:
    return []


def always_good(settings: Settings, output: Path) -> int:
    return 0


def nothing_to_tell(stage: Stage) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class Recipe(Generic[S]):
    name: str  # of its folder in recipes/
    description: str
    settings: type[S]
    conf: Path  # the folder of its presets
    preset: str  # the one that runs unless another is asked for
    plan: Callable[[S, Path, str], Plan]  # from settings, output folder, and that folder as commands name it
    results: Callable[[S, Path], list[Row]] = no_rows  # one flat row a result, for result.json and the report
    check: Callable[[S, Path], int] = always_good  # the exit status: whether the recipe shows what it claims
    tell: Callable[[Stage], str] = nothing_to_tell  # what the line of a finished stage says besides its time
    environment: Mapping[str, str] = field(default_factory=dict)  # for every command
    examples: tuple[str, ...] = ()  # arguments, for --help
    own_report: str | None = None  # the Markdown that a stage writes, where that says more than report.md
    files: tuple[str, ...] = ()  # what else of the output is worth naming at the end
    anew: str = "--force"  # what does everything anew

    def presets(self) -> list[str]:
        return sorted(path.stem for path in self.conf.glob("*.toml"))

    @property
    def program(self) -> str:
        return f"recipes/{self.name}/run.sh"

    @property
    def report(self) -> str:
        return self.own_report or "report.md"
