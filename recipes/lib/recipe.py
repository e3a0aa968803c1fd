"""What a recipe is: settings, the stages planned from them, and what it found."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from .stages import Stage, read_json
from .values import Refused

ROOT = Path(__file__).resolve().parents[2]  # commands run here, so that they can be copied from any report
Row = dict[str, object]
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

    seed: int = field(default=1, metadata=about("of the data and of the trainings"))
    jobs: int = field(default=1, metadata=about("commands side by side, where they do not need each other"))

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


def no_rows(settings: Settings, output: Path) -> list[Row]:
    return []


def compared(settings: Settings, output: Path) -> list[Row]:
    """The rows that a stage `compare` left."""
    rows: list[Row] = read_json(output / "comparison.json")
    return rows


def always_good(settings: Settings, output: Path) -> int:
    return 0


def nothing_to_tell(stage: Stage) -> str:
    return ""


def no_hints(settings: Settings, output: Path, shown: str) -> Hints:
    return {}


def no_remarks(settings: Settings, output: Path) -> list[str]:
    return []


def one_a_job(settings: Settings) -> list[Mapping[str, str]]:
    return [{} for _ in range(settings.jobs)]


def no_variables(settings: Settings) -> dict[str, str]:
    return {}


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
    environment: Callable[[S], Mapping[str, str]] = no_variables  # for every command
    examples: tuple[str, ...] = ()  # arguments, for --help
    own_report: str | None = None  # the Markdown that a stage writes, where that says more than report.md
    columns: tuple[str, ...] = ()  # of the results, those in the report's table; unless given, all
    forms: Mapping[str, str] = field(default_factory=dict)  # of a column's numbers, `.2f` say; others have four digits
    figure: str | None = None  # an image among the outputs, shown in the report
    hints: Callable[[S, Path, str], Hints] = no_hints  # what to do with the outputs: a title and a command each
    files: tuple[str, ...] = ()  # what else of the output is worth naming at the end
    anew: str = "--force"  # what does everything anew
    default_output: Callable[[S], str] | None = None  # its folder in results/, where the recipe's name is too little
    slots: Callable[[S], list[Mapping[str, str]]] = one_a_job  # for the environment of commands side by side
    remarks: Callable[[S, Path], list[str]] = no_remarks  # what a reader of the report must know
    # The presets that plain.py writes as shell; of each, the settings that are the reader's, as variables of the shell.
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
