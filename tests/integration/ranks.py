"""Run a training in two processes on one CPU."""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.distributed import utils as distributed
from fairseq.logging import metrics

from . import support

TWO = """--ddp-backend legacy_ddp --distributed-no-spawn --distributed-world-size 2 --distributed-backend gloo
    --distributed-init-method""".split()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def forked(run: Callable[[], Any]) -> int:
    """Run a function in a fork of this process, which needs no imports, and return the number of the fork."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0
        except BaseException:  # noqa: BLE001  a fork must not go on with the tests
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def status_of(child: int) -> int:
    """Wait for a fork, and return its exit status, or the negative number of the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def two_processes(folder: Path, words: Sequence[str]) -> list[dict[str, Any]]:
    """Run a training in two processes, and return what each of them learned and logged."""
    folder.mkdir(exist_ok=True)
    address = f"tcp://127.0.0.1:{free_port()}"

    def train(rank: int) -> None:
        run = support.trained([*words, *TWO, address, "--distributed-rank", str(rank)], distributed.call_main)
        logged = {name: x for name, x in metrics.get_smoothed_values("train_inner").items() if name.endswith("coder_1")}
        torch.save({"losses": run.losses, "model": run.model.state_dict(), "logged": logged}, folder / f"rank{rank}.pt")

    children = [forked(lambda rank=rank: train(rank)) for rank in range(2)]
    assert [status_of(child) for child in children] == [0, 0]
    return [torch.load(folder / f"rank{rank}.pt") for rank in range(2)]
