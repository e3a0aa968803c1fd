"""Define the parts of a recipe: settings, a plan of stages, and results."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from .seeds import Seeds
from .stages import Stage, read_json
from .values import Refused

ROOT = Path(__file__).resolve().parents[2]  # commands run here, so that they can be copied from any report
Row = dict[str, Any]  # a result by column; values are those of JSON, never text that somebody has to parse
Chain = list[Stage]
Phase = list[Chain]
Hints = dict[str, str]
FILES = "of files only"


def about(text: str) -> dict[str, str]:
    """Return metadata with the help text of a setting: `lr: float = field(metadata=about("Peak learning rate."))`."""
    return {"help": text}


def of_files(text: str) -> dict[str, str]:
    """Return metadata with the help text of a setting that only presets and --config may contain."""
    return {"help": text, FILES: "yes"}


@dataclass(kw_only=True)
class Settings:
    """Hold the settings that every recipe has. Every preset must contain the settings without a default."""

    seed: int = field(
        default=1, metadata=about("Random seed for data preparation, and for training unless --seeds is set.")
    )
    seeds: list[int] = field(
        default_factory=list,
        metadata=about(
            "Train each model once with each of these random seeds, such as 1,2,3, and report the mean (unset: --seed)."
        ),
    )
    jobs: int = field(default=1, metadata=about("Number of commands that may run at the same time."))

    #: keys that a table may have although the preset does not contain them, by the name of the table
    further_keys: ClassVar[Mapping[str, Iterable[str]]] = {}
    preset = ""  # name of the preset; `load` sets it, and it is not a setting itself

    def __post_init__(self) -> None:
        twice, negative = len(set(self.seeds)) < len(self.seeds), min(self.seeds, default=0) < 0
        if twice or negative:
            problem = "a seed occurs twice" if twice else "a seed is negative"
            raise Refused(f"--seeds {','.join(map(str, self.seeds))}: {problem}. Give different seeds such as 1,2,3.")

    @property
    def training_seeds(self) -> Seeds:
        """Return the random seeds with which each model is trained."""
        return Seeds(tuple(self.seeds or [self.seed]), self.seed)

    def refuse_unused(self, named: Set[str]) -> None:
        """Refuse settings that the user gave and that have no effect. Settings of a preset are not checked, because a
        preset may contain settings without effect.

        Args:
            named: Names of the settings in --config and on the command line, and the names of entries of their tables,
                such as `train.lr`.

        Raises:
            Refused: A setting has no effect.
        """
        for name, reason in self.unused().items():
            if name in named:
                raise Refused(f"--{name.replace('_', '-')} has no effect: {reason}. Leave this option out.")

    def refuse_missing(self) -> None:
        """Raise `Refused` if a file that the user named does not exist; this happens before the first stage runs.

        `--dry-run` and `--list` do not call this method, so commands can be printed before there is a model.
        """

    def unused(self) -> dict[str, str]:
        """Return the settings that have no effect, and the reason for each of them."""
        return {}

    def variables(self) -> dict[str, str]:
        """Return environment variables for every command."""
        return {}

    def slots(self) -> list[Mapping[str, str]]:
        """Return extra environment variables: a list with one mapping for each command that may run in parallel."""
        return [{} for _ in range(self.jobs)]


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Plan:
    """Hold the stages of a run. Phases run one after another; chains of stages in a phase may run at the same time."""

    phases: list[Phase]
    notes: tuple[str, ...] = ()  # sentences for the user before the run, and for the report

    def stages(self) -> list[Stage]:
        """Return all stages in order."""
        return [stage for phase in self.phases for chain in phase for stage in chain]


def shown(output: Path) -> str:
    """Return the path of the output folder for use in commands, relative to the root of the repository."""
    return os.path.relpath(output, ROOT)


def from_anywhere(settings: Settings, command: str) -> str:
    """Return a shell command that runs `command` with the environment variables of the recipe, from any folder.

    Paths in `command` are relative to the root of the repository. Paths in redirections are relative to the user's
    folder.
    """
    variables = [f"{name}={value}" for name, value in settings.variables().items()]
    return " ".join([shlex.join([str(ROOT / "recipes" / "lib" / "here.sh"), *variables]), command])


def compared(settings: Settings, output: Path) -> list[Row]:
    """Return the rows that the stage `compare` wrote."""
    rows: list[Row] = read_json(output / "comparison.json")
    return rows


@dataclass(frozen=True, kw_only=True)
class Recipe(Generic[S]):
    """Describe a recipe: its settings, its stages and its report.

    Args:
        name: Name of the recipe's folder in recipes/.
        description: Text at the top of --help and of the report.
        settings: Class of the settings.
        conf: Folder of the presets.
        preset: Name of the default preset.
        plan: Function that returns the plan; its arguments are the settings, the output folder and this folder's path
            in commands.
        results: Function that returns the rows of the table of results, for result.json and the report.
        check: Function that returns the exit status of a complete run: 0 if the results are as expected.
        tell: Function that returns the text that the screen shows after a finished stage's name and time.
        examples: Command-line arguments that --help shows as examples.
        own_report: Markdown file that a stage writes in place of report.md, if there is one.
        main: Headings of the report's main table in order, keyed by column; a heading names the unit.
        columns: Columns of the results in the report's table of details; empty means all.
        forms: Formats for the numbers of a column, such as `.2f`; other numbers have four digits.
        figure: Image that a stage writes and the report shows.
        hints: Function that returns commands for using the outputs, keyed by title; its arguments are the settings and
            the output folder. The commands must work from any folder: see `from_anywhere`.
        files: Further output files to name at the end of a run.
        anew: Command or option that repeats the whole run; the screen suggests it if the code has changed.
        default_output: Function that returns the run's folder in results/ (default: the recipe's name).
        remarks: Function that returns sentences for the reader of the report.
        plain: Presets that plain.py writes as shell scripts, each with a dictionary. The keys of a dictionary are the
            settings that need a file of the user, and the values are the shell variables that stand for these files.
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
    main: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict)
    figure: str | None = None
    hints: Callable[[S, Path], Hints] = lambda settings, output: {}
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
