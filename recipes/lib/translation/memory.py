"""The memory that a model takes while it translates: resident on a CPU, allocated on a GPU.

On a CPU each model is alone in a process of its own, forked from one that has imported everything and loaded nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
Step = Callable[[], None]


class Memory(NamedTuple):
    """Megabytes: at most while translating, and how much of it was not there before."""

    peak: float
    extra: float


def of_process(step: Step) -> Memory | None:
    """What this process takes while the step runs; None where the system does not say."""
    try:
        CLEAR.write_text("5")  # the peak so far is of loading: begin anew
        before = _status("VmRSS")
        step()
        peak = _status("VmHWM")
    except (OSError, KeyError):  # no Linux, or a container that forbids it
        return None
    return Memory(peak / 1000, (peak - before) / 1000)


def of_gpu(step: Step) -> Memory:
    """What the step has allocated at most, with what lies there."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    return Memory(peak / 1e6, (peak - before) / 1e6)


def _status(name: str) -> float:
    """Of this process, in units of 1000 bytes."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines() if ":" in line)
    return int(lines[name].split()[0]) * 1.024


def forked(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a fork of this process; None where the fork was killed."""
    context = get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sending, function, arguments))
    process.start()
    sending.close()
    try:
        return receiving.recv()
    except EOFError:
        return None
    finally:
        process.join()


def _answer(sending: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    sending.send(function(*arguments))
