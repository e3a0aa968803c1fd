"""The benchmark of a tiny layer, with a clock of our own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fairseq_posenc.commands import bench
from fairseq_posenc.commands.bench import clock, machine, scaling, settings

from .scene import TINY, Clock


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of the machine's clock."""
    made = Clock()
    monkeypatch.setattr(clock, "now", made)
    return made


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    """The exit status and the rows of a benchmark of tiny layers."""
    monkeypatch.setitem(settings.SHAPES, "tiny", TINY)
    monkeypatch.setattr(scaling, "SHAPE", TINY)
    for name, value in machine.ALLOCATOR.items():
        monkeypatch.setenv(name, value)

    def main(*argv: str) -> tuple[int, list[dict[str, Any]]]:
        status = bench.main(["--json", "--shapes", "tiny", *argv])
        return status, json.loads(capsys.readouterr().out)

    return main
