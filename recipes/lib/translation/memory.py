"""Measure the memory of a model while it translates: resident memory on a CPU, allocated memory on a GPU.

On a CPU, each model runs alone in a fork of a process that has imported all modules but loaded no model.
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
    """Hold the memory use in megabytes.

    Attributes:
        peak: Highest memory use while translating.
        extra: Part of the peak that was not in use before translating.
    """

    peak: float
    extra: float


def of_process(step: Step) -> Memory | None:
    """Run the step and return the memory that this process needs for it, or None if the system does not report it."""
    try:
        CLEAR.write_text("5")  # reset the peak, which comes from loading the model
        before = _status("VmRSS")
        step()
        peak = _status("VmHWM")
    except (OSError, KeyError):  # not Linux, or a container that forbids access
        return None
    return Memory(peak / 1000, (peak - before) / 1000)


def of_gpu(step: Step) -> Memory:
    """Run the step and return the peak GPU memory, which includes memory that was allocated before the step."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    return Memory(peak / 1e6, (peak - before) / 1e6)


def _status(name: str) -> float:
    """Return a value of /proc/self/status, converted to kilobytes (1000 bytes)."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines() if ":" in line)
    return int(lines[name].split()[0]) * 1.024


def forked(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a fork of this process and return its result, or None if the fork was killed."""
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
