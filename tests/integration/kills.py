"""Kill a small training at many moments, and start it again until it ends."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_posenc.compat import safe_load

from . import support

#: Three epochs of six updates each, with a checkpoint after every second update.
TRAINING = ["--pos-enc", "shaw", "--max-epoch", 3, "--valid-subset", "valid", "--save-interval-updates", 2]
TRAINING += ["--keep-interval-updates", 2, "--max-tokens", 300]
MOST_SECONDS = 60


@dataclass(frozen=True)
class Moment:
    """Say when to kill: so many seconds after so many checkpoints, or copies of them, have begun to be written."""

    writing: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Kill:
    """Say what a kill hit, and how far the checkpoint is that it left."""

    was_running: bool
    in_a_write: bool
    epoch: int
    starts: list[int]


def moments(seed: int, seconds: float) -> Iterator[Moment]:
    """Yield random moments: by turns at the writing of a checkpoint, and at any time of a training of these seconds."""
    generator = random.Random(seed)
    for number in itertools.count(seed):
        yield Moment(generator.randint(1, 6)) if number % 2 else Moment(0, generator.uniform(0, seconds))


def train(data: Path, folder: Path) -> None:
    """Run the training to its end, or continue it, in this process."""
    support.train(data, *TRAINING, "--save-dir", folder)


def killed(run: Callable[[], Any], folder: Path, moment: Moment) -> Kill:
    """Run a function in a fork, and kill the fork at this moment."""
    earlier, child = partials(folder), os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            run()
            code = 0
        os._exit(code)
    wait(child, folder, moment)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), "the training failed before it was killed"
    checkpoint = last(folder)
    epoch = checkpoint["extra_state"]["train_iterator"]["epoch"] if checkpoint else 1
    return Kill(code != 0, bool(partials(folder) - earlier), epoch, starts(folder))


def wait(child: int, folder: Path, moment: Moment) -> None:
    """Wait for the moment, or for the end of the child."""
    end, begun, before = time.monotonic() + MOST_SECONDS, 0, set[Path]()
    while begun < moment.writing and runs_until(child, end):
        now = set(folder.glob("*.partial"))
        begun, before = begun + len(now - before), now
        time.sleep(0 if begun >= moment.writing else 0.0002)
    end = min(end, time.monotonic() + moment.seconds)
    while runs_until(child, end):
        time.sleep(0.002)


def runs_until(child: int, end: float) -> bool:
    """Return whether the child still runs, and the end has not come yet."""
    return time.monotonic() < end and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def partials(folder: Path) -> set[tuple[str, int]]:
    """Return the names and times of the files that are not completely written."""
    return {(path.name, path.stat().st_mtime_ns) for path in folder.glob("*.partial")}


def last(folder: Path) -> dict[str, Any]:
    """Return the checkpoint that the next start continues from, or an empty dictionary if there is none."""
    paths = [folder / "checkpoint_last.pt", *sorted(folder.glob("checkpoint*.pt"))]
    return next((safe_load(path) for path in paths if path.exists()), {})


def starts(folder: Path) -> list[int]:
    """Return the updates of the last checkpoint, and before them those of each checkpoint that a start continued from.

    fairseq keeps the history of starts in each checkpoint, and a start from zero loses it.
    """
    return [entry["num_updates"] for entry in last(folder).get("optimizer_history", [])]


def state(folder: Path) -> dict[str, Any]:
    """Return what a training leaves in its last checkpoint, without the times that it took and the number of starts."""
    checkpoint = safe_load(folder / "checkpoint_last.pt")
    return {
        "model": checkpoint["model"],
        "optimizer": checkpoint["last_optimizer_state"],
        "updates": checkpoint["optimizer_history"][-1],  # each start adds an entry, which `starts` returns
        "position": checkpoint["extra_state"]["train_iterator"],
    }
