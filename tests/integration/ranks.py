"""Two processes of a training on one CPU."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from . import support

TWO = """--ddp-backend legacy_ddp --distributed-no-spawn --distributed-world-size 2 --distributed-backend gloo
    --distributed-init-method""".split()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def two_processes(folder: Path, words: Sequence[str]) -> list[dict[str, Any]]:
    """What each rank learned of a training with these arguments."""
    folder.mkdir(exist_ok=True)
    address = f"tcp://127.0.0.1:{free_port()}"
    outputs = [folder / f"rank{rank}.pt" for rank in range(2)]
    ranks = []
    for rank, output in enumerate(outputs):
        mine = [*words, *TWO, address, "--distributed-rank", str(rank)]
        command = [sys.executable, str(Path(__file__).with_name("rank.py")), str(output), *mine]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        ranks.append(subprocess.Popen(command, env=support.environment(package=True), **pipes))
    try:
        errors = [process.communicate(timeout=200)[1] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [process.returncode for process in ranks] == [0, 0], "\n".join(error[-2500:] for error in errors)
    return [torch.load(output) for output in outputs]


def assert_same(one: dict[str, Any], other: dict[str, Any], **close: float) -> None:
    """The same tensors by the same names."""
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, other[name], msg=name, **close)
