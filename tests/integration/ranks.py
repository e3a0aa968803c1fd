"""Run a training in two processes on one CPU."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import support_warm
import torch

from . import support

TWO = """--ddp-backend legacy_ddp --distributed-no-spawn --distributed-world-size 2 --distributed-backend gloo
    --distributed-init-method""".split()

TESTS = Path(__file__).resolve().parents[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def two_processes(folder: Path, words: Sequence[str]) -> list[dict[str, Any]]:
    """Run a training in two processes, and return what each of them saved."""
    folder.mkdir(exist_ok=True)
    address = f"tcp://127.0.0.1:{free_port()}"
    outputs = [folder / f"rank{rank}.pt" for rank in range(2)]
    ranks = []
    for rank, output in enumerate(outputs):
        mine = [*words, *TWO, address, "--distributed-rank", str(rank)]
        command = [sys.executable, "-m", "integration.rank", str(output), *mine]
        # Write the output into a file. A pipe that is not read while this process waits for the other rank would fill
        # up, and both ranks would block.
        with output.with_suffix(".err").open("w") as log:
            ranks.append(support_warm.Fork(command, cwd=TESTS, env=support.environment(package=True), stderr=log))
    try:
        for process in ranks:
            process.wait()
    finally:
        for process in ranks:
            process.kill()
    errors = "\n".join(output.with_suffix(".err").read_text()[-2500:] for output in outputs)
    assert [process.returncode for process in ranks] == [0, 0], errors
    return [torch.load(output) for output in outputs]


def assert_same(ours: dict[str, Any], theirs: dict[str, Any], **close: float) -> None:
    """Check that both have the same tensors by the same names."""
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], msg=name, **close)
