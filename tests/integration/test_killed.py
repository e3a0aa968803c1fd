"""Test that a training that is killed at any moment continues from its last checkpoint, with the same final result."""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from . import kills

SEEDS = range(3, 13)


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the state that the training ends in."""
    folder = tmp_path_factory.mktemp("undisturbed")
    kills.train(data, folder)
    return kills.state(folder)


@pytest.fixture(scope="module")
def seconds(data: Path, undisturbed: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> float:
    """Return the time of a fork that is not killed; the first training also imports modules, and takes longer."""
    folder, begin = tmp_path_factory.mktemp("timed"), time.monotonic()
    assert not kills.killed(lambda: kills.train(data, folder), folder, kills.Moment(0, kills.MOST_SECONDS)).was_running
    taken = time.monotonic() - begin
    assert_equal(kills.state(folder), undisturbed)
    return taken


def assert_equal(one: Any, other: Any) -> None:
    """Check that two states are equal, bit by bit."""
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_equal(*pair)
    else:
        assert one == other


def assert_continued(before: list[int], after: list[int], undisturbed: dict[str, Any]) -> None:
    """Check that a run continued from the checkpoint that was there, unless the training had ended before."""
    if before[-1:] == [undisturbed["updates"]["num_updates"]]:
        assert after == before
    else:
        assert after[:-1] == before
        assert before == sorted(before)


def finish(data: Path, folder: Path, undisturbed: dict[str, Any]) -> None:
    """Start the killed training again, and check that it continues and ends like the undisturbed one."""
    before = kills.starts(folder)
    kills.train(data, folder)
    assert_continued(before, kills.starts(folder), undisturbed)
    assert_equal(kills.state(folder), undisturbed)
    assert not list(folder.glob("*.partial"))


def kill_often(
    data: Path, folder: Path, undisturbed: dict[str, Any], moments: Iterator[kills.Moment], number: int
) -> list[kills.Kill]:
    """Kill a training so often, each time in the run that continues the killed one, and compare its end.

    If a training ends before its moment comes, compare its end, and begin anew with the next moment.
    """
    hits: list[kills.Kill] = []
    while len(hits) < number:
        before = kills.starts(folder)
        kill = kills.killed(lambda: kills.train(data, folder), folder, next(moments))
        if kill.was_running:
            hits.append(kill)
            if kill.starts != before:  # the killed run has saved a checkpoint of its own
                assert_continued(before, kill.starts, undisturbed)
        else:
            finish(data, folder, undisturbed)
            shutil.rmtree(folder)
    finish(data, folder, undisturbed)
    return hits


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_killed_training_ends_like_the_undisturbed_one(
    data: Path, tmp_path: Path, undisturbed: dict[str, Any], seconds: float, seed: int
) -> None:
    kill_often(data, tmp_path / "saved", undisturbed, kills.moments(seed, seconds), 2)


Four = Callable[[int], list[kills.Kill]]


@pytest.fixture(scope="module")
def four_kills(
    data: Path, undisturbed: dict[str, Any], seconds: float, tmp_path_factory: pytest.TempPathFactory
) -> Four:
    """Return a function that kills a training four times at moments of a seed, once for each seed."""

    @functools.cache
    def hits(seed: int) -> list[kills.Kill]:
        folder = tmp_path_factory.mktemp("killed") / "saved"
        return kill_often(data, folder, undisturbed, kills.moments(seed, seconds), 4)

    return hits


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
def test_forty_kills(four_kills: Four, seed: int) -> None:
    assert len(four_kills(seed)) == 4


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_forty_kills_hit_writes_and_several_epochs(four_kills: Four) -> None:
    hits = [kill for seed in SEEDS for kill in four_kills(seed)]
    assert len(hits) >= 40
    assert all(kill.was_running for kill in hits)
    assert any(kill.in_a_write for kill in hits)
    assert any(not kill.in_a_write for kill in hits)
    assert len({kill.epoch for kill in hits}) >= 2


def test_a_training_that_forgets_is_caught(data: Path, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """After a kill, this one continues with another seed."""
    moment = kills.Moment(4)
    assert kills.killed(lambda: kills.train(data, tmp_path), tmp_path, moment).was_running
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kills, "TRAINING", [*kills.TRAINING, "--seed", 9])
        kills.train(data, tmp_path)
    with pytest.raises(AssertionError):
        assert_equal(kills.state(tmp_path), undisturbed)


def test_a_training_that_begins_anew_is_caught(data: Path, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """After a kill, this one has lost its checkpoints; as it is deterministic, it ends in the same state."""
    folder = tmp_path / "saved"
    before = kills.killed(lambda: kills.train(data, folder), folder, kills.Moment(4)).starts
    assert before
    shutil.rmtree(folder)
    kills.train(data, folder)
    assert_equal(kills.state(folder), undisturbed)
    with pytest.raises(AssertionError):
        assert_continued(before, kills.starts(folder), undisturbed)


def test_a_process_killed_before_the_first_copy_continues_from_its_only_checkpoint(
    data: Path, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    kills.killed(lambda: kills.train(data, tmp_path), tmp_path, kills.Moment(3))
    only = tmp_path / "checkpoint_1_2.pt"
    assert only.exists()
    for path in tmp_path.iterdir():
        if path != only:
            path.unlink()
    assert kills.starts(tmp_path) == [2]
    finish(data, tmp_path, undisturbed)
