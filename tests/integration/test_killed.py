"""Test that a training that is killed at any moment continues from its last checkpoint, with the same final result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from . import kills


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the state that the training ends in."""
    folder = tmp_path_factory.mktemp("undisturbed")
    kills.train(data, folder)
    return kills.state(folder)


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


def check(data: Path, folder: Path, undisturbed: dict[str, Any], number: int, seed: int) -> None:
    """Kill a training so often, each time in the run that continues the killed one, and compare its end."""
    was_running = [
        kills.killed(lambda: kills.train(data, folder), folder, moment) for moment in kills.moments(number, seed)
    ]
    assert was_running[0]
    kills.train(data, folder)
    assert_equal(kills.state(folder), undisturbed)
    assert not list(folder.glob("*.partial"))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_training_ends_like_the_undisturbed_one(
    data: Path, tmp_path: Path, undisturbed: dict[str, Any], seed: int
) -> None:
    check(data, tmp_path / "saved", undisturbed, 2, seed)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3, 13))
def test_forty_kills(data: Path, tmp_path: Path, undisturbed: dict[str, Any], seed: int) -> None:
    check(data, tmp_path / "saved", undisturbed, 4, seed)


def test_a_training_that_forgets_is_caught(data: Path, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """After a kill, this one continues with another seed."""
    moment = kills.Moment(4)
    assert kills.killed(lambda: kills.train(data, tmp_path), tmp_path, moment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kills, "TRAINING", [*kills.TRAINING, "--seed", 9])
        kills.train(data, tmp_path)
    with pytest.raises(AssertionError):
        assert_equal(kills.state(tmp_path), undisturbed)


def test_a_process_killed_before_the_first_copy_continues_from_its_only_checkpoint(
    data: Path, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    kills.killed(lambda: kills.train(data, tmp_path), tmp_path, kills.Moment(3))
    only = tmp_path / "checkpoint_1_2.pt"
    assert only.exists()
    for path in tmp_path.iterdir():
        if path != only:
            path.unlink()
    kills.train(data, tmp_path)
    assert_equal(kills.state(tmp_path), undisturbed)
