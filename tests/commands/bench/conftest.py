"""Fixtures that run the benchmark on a tiny layer with a simulated clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fairseq_posenc.commands import bench, clock
from fairseq_posenc.commands.bench import machine, scaling, settings

from .scene import TINY, Clock


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replace the machine's clocks by a simulated one."""
    simulated = Clock()
    monkeypatch.setattr(clock, "now", simulated)
    monkeypatch.setattr(clock, "busy", simulated)
    return simulated


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    """Return a function that benchmarks tiny layers and returns the exit status and the rows."""
    monkeypatch.setitem(settings.SHAPES, "tiny", TINY)
    monkeypatch.setattr(scaling, "SHAPE", TINY)
    for name, value in machine.ALLOCATOR.items():
        monkeypatch.setenv(name, value)

    def main(*argv: str) -> tuple[int, list[dict[str, Any]]]:
        status = bench.main(["--json", "--shapes", "tiny", *argv])
        return status, json.loads(capsys.readouterr().out)

    return main
