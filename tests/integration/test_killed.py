"""Test that a training that is killed at any moment continues from its last checkpoint, with the same final result.

A fork runs the training and kills itself at an event: the start of an update, or the opening or renaming of a file that
becomes a checkpoint.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.compat import safe_load

from . import support
from .ranks import forked, status_of

#: Two epochs of six updates each, with a checkpoint after every second update.
TRAINING = ["--pos-enc", "shaw", "--max-epoch", 2, "--valid-subset", "valid", "--save-interval-updates", 2]
TRAINING += ["--keep-interval-updates", 2, "--max-tokens", 300]
#: The first checkpoint is complete before this event, and its copy checkpoint_last.pt is not.
BEFORE_THE_FIRST_COPY = 5
EVENTS = 48


def train(data: Path, folder: Path) -> None:
    support.train(data, *TRAINING, "--save-dir", folder)


def killed(data: Path, folder: Path, event: int) -> bool:
    """Run the training, or continue it, in a fork that kills itself at this event. Return whether the event came."""

    def run() -> None:
        kill_at(event)
        train(data, folder)

    status = status_of(forked(run))
    assert status in (0, -signal.SIGKILL), "the training failed before it was killed"
    return status != 0


def kill_at(event: int) -> None:
    """Let this process kill itself at an event."""
    events, train_step = itertools.count(1), support.Recorder.train_step

    def happen() -> None:
        if next(events) == event:
            os.kill(os.getpid(), signal.SIGKILL)

    def step(*arguments: Any) -> Any:
        happen()
        return train_step(*arguments)

    def audit(name: str, arguments: tuple[Any, ...]) -> None:
        if name in ("open", "os.rename") and str(arguments[0]).endswith(".partial"):
            happen()

    support.Recorder.train_step = step  # type: ignore[method-assign]
    sys.addaudithook(audit)


def starts(folder: Path) -> list[int]:
    """Return the updates of the last checkpoint, and before them those of each checkpoint that a start continued from.

    fairseq keeps the history of starts in each checkpoint, and a start from zero loses it.
    """
    paths = [folder / "checkpoint_last.pt", *sorted(folder.glob("checkpoint*.pt"))]
    last: dict[str, Any] = next((safe_load(path) for path in paths if path.exists()), {})
    return [entry["num_updates"] for entry in last.get("optimizer_history", [])]


def state(folder: Path) -> dict[str, Any]:
    """Return what a training leaves in its last checkpoint, without the times that it took and the number of starts."""
    checkpoint = safe_load(folder / "checkpoint_last.pt")
    return {
        "model": checkpoint["model"],
        "optimizer": checkpoint["last_optimizer_state"],
        "updates": checkpoint["optimizer_history"][-1]["num_updates"],  # `starts` returns the entries before it
        "position": checkpoint["extra_state"]["train_iterator"],
    }


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the state that the training ends in."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train(data, folder)
    return state(folder)


def assert_continued(before: list[int], after: list[int]) -> None:
    """Check that a training continued from the checkpoint that was there."""
    assert after[:-1] == before == sorted(before)


def finish(data: Path, folder: Path, undisturbed: dict[str, Any]) -> None:
    """Start the killed training again, and check that it continues and ends like the undisturbed one."""
    before = starts(folder)
    train(data, folder)
    if before[-1:] != [undisturbed["updates"]]:  # otherwise the training had ended, and makes no further start
        assert_continued(before, starts(folder))
    torch.testing.assert_close(state(folder), undisturbed, rtol=0, atol=0)
    assert not list(folder.glob("*.partial"))


def test_a_training_that_is_killed_twice_ends_like_the_undisturbed_one(
    data: Path, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    assert killed(data, tmp_path, BEFORE_THE_FIRST_COPY)
    assert not (tmp_path / "checkpoint_last.pt").exists()
    assert starts(tmp_path) == [2]
    assert killed(data, tmp_path, 16)
    assert list(tmp_path.glob("*.partial")), "this event is within the writing of a checkpoint"
    assert_continued([2], starts(tmp_path))
    finish(data, tmp_path, undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("event", range(1, EVENTS + 1))
def test_a_training_may_be_killed_at_every_event(
    data: Path, tmp_path: Path, undisturbed: dict[str, Any], event: int
) -> None:
    assert killed(data, tmp_path, event)
    finish(data, tmp_path, undisturbed)


def test_a_training_that_begins_anew_is_caught(data: Path, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """It has lost its checkpoints, and ends in the same state."""
    folder = tmp_path / "saved"
    assert killed(data, folder, BEFORE_THE_FIRST_COPY)
    before = starts(folder)
    shutil.rmtree(folder)
    train(data, folder)
    torch.testing.assert_close(state(folder), undisturbed, rtol=0, atol=0)
    with pytest.raises(AssertionError):
        assert_continued(before, starts(folder))
