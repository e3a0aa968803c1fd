"""Test the check of `make soak` with steps that leave something over."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults import soak

LEFT: list[Any] = []
ROUNDS = 12


def nothing(folder: Path) -> None:
    bytearray(4_000_000)


def memory(folder: Path) -> None:
    LEFT.append(b"x" * 4_000_000)


def files(folder: Path) -> None:
    LEFT.append(os.open(__file__, os.O_RDONLY))


def temporary(folder: Path) -> None:
    LEFT.append(tempfile.mkdtemp(dir=folder))


def children(folder: Path) -> None:
    LEFT.append(subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE))


def found(step: Callable[[Path], None], folder: Path, rounds: int = ROUNDS) -> list[str]:
    """Return what the check says about a number of rounds."""
    return soak.faults([soak.Left.now(folder) for _ in range(rounds) if step(folder) is None])


@pytest.fixture(autouse=True)
def tidy(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(soak, "SECONDS_TO_END", 0.01)  # threads of other tests never end
    gc.freeze()  # otherwise, each round collects the garbage of all tests before, which takes seconds
    yield
    gc.unfreeze()
    for thing in LEFT:
        if isinstance(thing, subprocess.Popen):
            thing.communicate()
        elif isinstance(thing, int):
            os.close(thing)
    LEFT.clear()


def test_a_step_that_leaves_nothing_passes(tmp_path: Path) -> None:
    assert found(nothing, tmp_path) == []


@pytest.mark.parametrize(
    ("step", "rounds", "message"),
    [
        (memory, ROUNDS, r"Memory grows by (3[5-9]|4[0-4])\d\d\.\d KiB per round\."),
        (files, 3, r"2 more files are open than after the warm-up\."),
        (temporary, 3, r"Temporary files are left: .+\."),
        (children, 3, r"2 child processes are left\."),
    ],
)
def test_a_planted_leak_is_found(step: Callable[[Path], None], rounds: int, message: str, tmp_path: Path) -> None:
    assert any(re.fullmatch(message, line) for line in found(step, tmp_path, rounds))


def test_the_warm_up_does_not_count(tmp_path: Path) -> None:
    numbers: list[int] = []
    assert len(soak.soak(numbers.append, 0, 2, tmp_path)) == 3
    assert numbers == [0, 1, 2, 3, 4]


def test_the_page_says_the_slope_and_its_interval() -> None:
    rounds = [soak.Left(1000.0 + memory, 10, 0, ()) for memory in (0, 2, 4, 6, 9)]
    text = soak.lines(rounds, 20)
    assert "| growth of resident memory per round (95 % interval) | 2.20 KiB (1.83 to 2.57) |" in text
    assert "| open files, more than after the warm-up | 0 |" in text
