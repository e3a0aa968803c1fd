"""Help to write the commands and stages of a recipe's plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from . import launch
from .flags import PLUGIN, QUIET, WHOLE
from .recipe import ROOT, S
from .stages import Stage

LIB = ROOT / "recipes" / "lib"
PACKAGE = ROOT / "fairseq_posenc"
SCRIPTS = ROOT / "data-bin-scripts"


def flags(**named: object) -> list[str]:
    """Return options as words of a command: `limit=3, cpu=True` become `--limit 3 --cpu`.

    A list repeats its option for each value, and a tuple gives one option several values. None, False and the empty
    string leave the option out.
    """
    words: list[str] = []
    for name, values in named.items():
        for value in values if isinstance(values, list) else [values]:
            if value is None or value is False or value == "":
                continue
            arguments = () if value is True else value if isinstance(value, tuple) else (value,)
            words += [f"--{name.replace('_', '-')}", *map(str, arguments)]
    return words


def module(name: str) -> list[str]:
    """Return the command that runs a module of recipes/, without its options."""
    return ["python", "-m", f"recipes.{name}"]


@dataclass(frozen=True)
class Planner(Generic[S]):
    """Define the stages of a recipe.

    Attributes:
        settings: The settings of the run.
        output: The folder of the run.
        shown: Path of the output folder, relative to the repository; commands contain this path.
    """

    settings: S
    output: Path
    shown: str

    def unplaced(self, command: Iterable[str]) -> tuple[str, ...]:
        """Return the words of a command that determine its result.

        Subclasses replace paths that do not affect the result with placeholders.
        """
        return tuple(command)

    def stage(
        self,
        name: str,
        command: Sequence[str],
        outputs: Sequence[str],
        after: Iterable[Stage] = (),
        inputs: Iterable[Path] = (),
        *,
        on_device: bool = False,
        free: Sequence[str] = (),
    ) -> Stage:
        """Return a stage.

        Args:
            name: Name of the stage.
            command: Words of the command.
            outputs: Paths that the stage writes, relative to the folder of the run.
            after: Stages that must run before this stage.
            inputs: Files that the stage reads; if one changes, the stage runs again.
            on_device: Whether the command uses a GPU if there is one.
            free: Further words of the command that do not change its result, such as the number of processes.
        """
        words: tuple[str, ...] = (*command, *free)
        if on_device:
            words = launch.on_one_device([*words], self.training_settings)
        return Stage(
            name,
            words,
            tuple(self.output / path for path in outputs),
            tuple(after),
            tuple(inputs),
            identity=self.unplaced(command),
        )

    @property
    def training_settings(self) -> launch.Training:
        """Return the settings of a recipe that can train with several processes."""
        assert isinstance(self.settings, launch.Training)
        return self.settings

    def training_stage(
        self,
        slug: str,
        data: str,
        words: Iterable[str],
        after: Iterable[Stage] = (),
        inputs: Iterable[Path] = (),
        *,
        best: str = "",
        keep: Iterable[str] = (),
        log_interval: int = 20,
    ) -> Stage:
        """Return the stage of a training run.

        Args:
            slug: Name of the training run in paths and stage names.
            data: Folder with the binarised data.
            words: Flags of fairseq-train, including the user's flags.
            after: Stages that must run before this stage.
            inputs: Files that the training reads; if one changes, the stage runs again.
            best: Name of the validation score that chooses the best checkpoint (empty: the validation loss).
            keep: Flags that choose which checkpoints are kept; they do not change the result.
            log_interval: Number of updates between two lines of the log.
        """
        settings, folder = self.training_settings, f"checkpoints/{slug}"
        # fairseq takes the last of two equal flags, so the user's flags override the first ones.
        command = [data, *WHOLE, *QUIET, "--log-interval", str(log_interval), *PLUGIN, *words]
        command += flags(save_dir=f"{self.shown}/{folder}", best_checkpoint_metric=best)
        command += flags(maximize_best_checkpoint_metric=bool(best))
        return Stage(
            f"train:{slug}",
            launch.train_command([*command, *keep], settings),
            (self.output / folder,),
            tuple(after),
            tuple(inputs),
            resumes=True,
            identity=launch.identity(list(self.unplaced(command)), settings),
        )
