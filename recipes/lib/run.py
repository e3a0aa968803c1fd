"""Run a recipe: execute the stages that are not done, then write the report and check the results."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Generic

from . import outputs, report
from .choose import refuse_open
from .machine import version_of
from .package import locked, visible
from .recipe import ROOT, Phase, Plan, Recipe, S
from .runner import ENDED, Failed, Runner
from .screen import Screen
from .stages import Ledger, Stage
from .values import Refused

INTERRUPTED = 130
PATIENCE = 5.0  # seconds to wait until the commands of a killed run have ended (see tied.py)
AGAIN = "Run the same command again to continue from here."


@dataclass
class Run(Generic[S]):
    """Run a recipe in an output folder."""

    recipe: Recipe[S]
    settings: S
    plan: Plan
    ledger: Ledger
    output: Path
    arguments: list[str]
    screen: Screen = field(default_factory=Screen)

    def do(self, chosen: list[Stage], force: bool) -> int:
        """Run the chosen stages, and return the exit status.

        If the chosen stages are done but other stages are not, the exit status is 0. If all stages of the recipe are
        done, the recipe's own check determines the exit status.
        """
        try:
            with self._alone() as lock:
                refuse_open(chosen, self.ledger)
                if force:
                    self.ledger.forget(chosen, self.plan.stages())
                return self._do(chosen, lock)
        except Failed as failure:
            self.screen.error(f"error: {failure}")
            return 1
        except OSError as error:
            self.screen.error(f"error: {visible(error)}. {AGAIN}")
            return 1
        except KeyboardInterrupt:
            self.screen.error(f"interrupted. {AGAIN}")
            return INTERRUPTED
        except SystemExit as stop:
            if stop.code == ENDED:
                self.screen.error(f"ended by the signal SIGTERM. {AGAIN}")
            raise

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Lock the output folder, and yield the file descriptor of the lock.

        The processes of tied.py, which watch the commands, inherit the descriptor. The folder of a killed run therefore
        stays locked until the run's commands have ended.

        Raises:
            Refused: Another run uses the folder, or the folder cannot be written.
        """
        problem = "another run is using this folder. Wait until the other run ends, or choose another --output"
        busy = Refused(f"--output {self.output}: {problem}.")
        with ExitStack() as stack:
            with outputs.making(self.output):
                self.output.mkdir(parents=True, exist_ok=True)
                descriptor = stack.enter_context(locked(self.output / ".lock", PATIENCE, busy))
            yield descriptor

    def _do(self, chosen: list[Stage], lock: int) -> int:
        started = time.monotonic()
        idle = self._are_done(chosen)
        if not idle:
            outputs.claim(self.output, self.recipe.name, asdict(self.settings))
            for path in outputs.put_aside(self.output, (self.recipe.report, outputs.RESULT)):
                self.screen.line(f"renamed the earlier {path.stem} to {os.path.relpath(path)}")
            self._run(chosen, lock)
        if not self._are_done(self.plan.stages()):
            begin = "The chosen stages were already done. " if idle else ""
            self.screen.line(f"{begin}Other stages are not done yet; list them with --list.")
            return 0
        if not (self.output / outputs.RESULT).exists():
            report.write(self.recipe, self.settings, self.plan, self.ledger, self.output, self.arguments)
        if idle:
            self.screen.line(f"All stages are already done. The report is {self._shown(self.recipe.report)}")
            self._tell_if_changed()
        else:
            minutes = (time.monotonic() - started) / 60
            names = ", ".join([self._shown(self.recipe.report), *self.recipe.files, outputs.RESULT])
            self.screen.line(f"Done in {minutes:.1f} minutes. Results: {names}")
        for title, command in self.recipe.hints(self.settings, self.output).items():
            print(f"{title}\n    {command}")
        return self.recipe.check(self.settings, self.output)

    def _are_done(self, stages: list[Stage]) -> bool:
        return all(self.ledger.is_done(stage) for stage in stages)

    def _run(self, chosen: list[Stage], lock: int) -> None:
        names = {stage.name for stage in chosen}
        phases: list[Phase] = [
            [[stage for stage in chain if stage.name in names] for chain in phase] for phase in self.plan.phases
        ]
        recipe = self.recipe
        for note in self.plan.notes:
            self.screen.line(note)
        variables = self.settings.variables()
        slots = [{**variables, **slot} for slot in self.settings.slots()]
        Runner(self.output, self.ledger, self.screen, lock, slots, recipe.tell).run(phases)

    def _tell_if_changed(self) -> None:
        """Tell the user if the code has changed since training. A new commit alone is no reason to train again."""
        stages = [stage for stage in self.plan.stages() if stage.kind == "train"] or self.plan.stages()
        commits = report.commits(stages, self.ledger)
        if commits != [version_of(ROOT)]:
            used = f"training, which used the commit {', '.join(commits)}"
            self.screen.line(f"The code has changed since {used}. To train again, use {self.recipe.anew}.")

    def _shown(self, name: str) -> str:
        return os.path.relpath(self.output / name)
