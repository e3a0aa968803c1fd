"""What a recipe is: settings, the stages planned from them, and what it found."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from .stages import Stage, read_json
from .values import Refused

ROOT = Path(__file__).resolve().parents[2]  # commands run here, so that they can be copied from any report
Row = dict[str, Any]  # a result: columns with text, numbers, truth values or None, as JSON has them
Chain = list[Stage]
Phase = list[Chain]
Hints = dict[str, str]
FILES = "of files only"


def about(text: str) -> dict[str, str]:
    """A setting's line of `--help`: `lr: float = field(metadata=about("peak learning rate"))`."""
    return {"help": text}


def of_files(text: str) -> dict[str, str]:
    """As `about`, of a setting that presets and --config have, and no command line: it describes what they ask for."""
    return {"help": text, FILES: "yes"}


@dataclass(kw_only=True)
class Settings:
    """The settings that every recipe has. Those without a default have to be in every preset."""

    seed: int = field(default=1, metadata=about("Random seed for data preparation and training."))
    jobs: int = field(default=1, metadata=about("Number of commands that may run at the same time."))

    preset = ""  # whose numbers they began with: told by `load`, and no setting

    def refuse_unused(self, named: Set[str]) -> None:
        """Refuse settings that the user named, and that nothing would come of; a preset may say more than is used.

        Args:
            named: those of --config and of the command line; a table by its own name.
        Raises:
            Refused: with the option, and why.
        """
        for name, why in self.unused().items():
            if name in named:
                raise Refused(f"--{name.replace('_', '-')} has no effect: {why}; leave it out")

    def refuse_missing(self) -> None:
        """Refuse files of the user's that are not there, before anything is done: what a later stage reads, too.

        Neither `--dry-run` nor `--list` asks for it: commands can be printed before there is a model.
        """

    def unused(self) -> dict[str, str]:
        """The settings that are in no command, and why."""
        return {}

    def variables(self) -> dict[str, str]:
        """Return variables for the environment of every command."""
        return {}

    def slots(self) -> list[Mapping[str, str]]:
        """Return more variables, for each of the commands that run side by side."""
        return [{} for _ in range(self.jobs)]


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Plan:
    """Phases follow each other; the chains of one phase do not need each other and may run side by side."""

    phases: list[Phase]
    notes: tuple[str, ...] = ()  # what the user should know of it before it runs, and a reader afterwards

    def stages(self) -> list[Stage]:
        return [stage for phase in self.phases for chain in phase for stage in chain]


def shown(output: Path) -> str:
    """The output folder as commands name it, from the root of the repository."""
    return os.path.relpath(output, ROOT)


def compared(settings: Settings, output: Path) -> list[Row]:
    """The rows that a stage `compare` left."""
    rows: list[Row] = read_json(output / "comparison.json")
    return rows


@dataclass(frozen=True, kw_only=True)
class Recipe(Generic[S]):
    """What a recipe is: its settings, what runs, and what comes of it.

    Args:
        name: The recipe's folder in recipes/.
        conf: The folder of the presets; `preset` is the one that runs unless another is asked for.
        plan: Makes the plan from settings, the output folder, and that folder as commands name it.
        results: One flat row for each result, for result.json and the report.
        check: The exit status: whether the recipe shows what it claims.
        tell: What the line of a finished stage says besides its time.
        examples: Arguments, for --help.
        own_report: The Markdown file that a stage writes, where that says more than report.md.
        columns: Columns of the results that the report's table shows; all unless given.
        forms: How the numbers of a column are printed (`.2f`); others have four digits.
        figure: An image among the outputs that the report shows.
        hints: What can be done with the outputs: a title and a command each.
        files: What else of the output is worth naming at the end.
        anew: What does everything anew.
        default_output: The run's folder in results/, where the recipe's name says too little.
        remarks: What a reader of the report must know.
        plain: The presets that plain.py writes as shell. For each, the settings for which the reader has files, with
            the shell variables that name them.
    """

    name: str
    description: str
    settings: type[S]
    conf: Path
    preset: str
    plan: Callable[[S, Path, str], Plan]
    results: Callable[[S, Path], list[Row]] = lambda settings, output: []
    check: Callable[[S, Path], int] = lambda settings, output: 0
    tell: Callable[[Stage], str] = lambda stage: ""
    examples: tuple[str, ...] = ()
    own_report: str | None = None
    columns: tuple[str, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict)
    figure: str | None = None
    hints: Callable[[S, Path, str], Hints] = lambda settings, output, shown: {}
    files: tuple[str, ...] = ()
    anew: str = "--force"
    default_output: Callable[[S], str] | None = None
    remarks: Callable[[S, Path], list[str]] = lambda settings, output: []
    plain: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {"smoke": {}})

    def presets(self) -> list[str]:
        return sorted(path.stem for path in self.conf.glob("*.toml"))

    def folder(self, settings: S) -> str:
        return self.default_output(settings) if self.default_output else self.name

    @property
    def program(self) -> str:
        return f"recipes/{self.name}/run.sh"

    @property
    def report(self) -> str:
        return self.own_report or "report.md"
