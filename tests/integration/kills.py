"""Kill a small training at many moments, and start it again until it ends."""

from __future__ import annotations

import contextlib
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

#: Three epochs of a dozen updates each, with a checkpoint after every second update.
TRAINING = ["--pos-enc", "shaw", "--max-epoch", 3, "--valid-subset", "valid", "--save-interval-updates", 2]
TRAINING += ["--keep-interval-updates", 2, "--max-tokens", 300]
MOST_SECONDS = 60


@dataclass(frozen=True)
class Moment:
    """Say when to kill: so many seconds after so many checkpoints, or copies of them, have begun to be written."""

    writing: int
    seconds: float = 0.0


def moments(number: int, seed: int) -> Iterator[Moment]:
    """Yield random moments of a training; every second one is inside the writing of a checkpoint."""
    generator = random.Random(seed)
    for trial in range(number):
        yield Moment(generator.randint(1, 6), generator.uniform(0, 0.1) if trial % 2 else 0)


def train(data: Path, folder: Path) -> None:
    """Run the training to its end, or continue it, in this process."""
    support.train(data, *TRAINING, "--save-dir", folder)


def killed(run: Callable[[], Any], folder: Path, moment: Moment) -> bool:
    """Run a function in a fork, kill the fork at this moment, and return whether it was still running."""
    child = os.fork()
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
    return code != 0


def wait(child: int, folder: Path, moment: Moment) -> None:
    """Wait for the moment, or for the end of the child."""
    end, begun, before = time.monotonic() + MOST_SECONDS, 0, set[Path]()
    while time.monotonic() < end and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        now = set(folder.glob("*.partial"))
        begun, before = begun + len(now - before), now
        if begun >= moment.writing:
            time.sleep(moment.seconds)
            return
        time.sleep(0.0002)


def state(folder: Path) -> dict[str, Any]:
    """Return what a training leaves in its last checkpoint, without the times that it took."""
    checkpoint = safe_load(folder / "checkpoint_last.pt")
    return {
        "model": checkpoint["model"],
        "optimizer": checkpoint["last_optimizer_state"],
        "updates": checkpoint["optimizer_history"][-1],  # each start adds an entry
        "position": checkpoint["extra_state"]["train_iterator"],
    }
