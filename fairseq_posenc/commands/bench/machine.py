"""Record what a measurement depends on besides the code: the memory allocator, the machine and the versions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

#: Unless both thresholds are raised, glibc maps new memory for every large temporary tensor. Raising them lowers the
#: cost of explicit attention at n = 512 from 2.3 to 1.2 times that of fused attention. glibc reads them at its start.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}


def pinned(env: Mapping[str, str], libc: str) -> dict[str, str] | None:
    """Return the environment with the missing settings of glibc's allocator, or None if there is nothing to add."""
    missing = {name: value for name, value in ALLOCATOR.items() if not env.get(name)}
    return {**env, **missing} if missing and libc == "glibc" else None


def start_again_pinned(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Restart the benchmark with the allocator's settings, unless they are set already."""
    env = pinned(environ, platform.libc_ver()[0])
    if env is not None:
        print("bench: restarts itself with higher memory-allocator thresholds", file=sys.stderr, flush=True)
        os.execve(sys.executable, [sys.executable, "-m", "fairseq_posenc", "bench", *argv], env)


def allocator(env: Mapping[str, str], libc: str) -> str:
    """Return the settings of the memory allocator as text."""
    if libc != "glibc":
        return f"{libc or platform.system()}, defaults"
    return ", ".join(f"{name}={env.get(name, 'default')}" for name in ALLOCATOR)


def facts(device: torch.device) -> dict[str, Any]:
    """Return the facts about the machine and the software for every row.

    Call this function before the benchmark, because the facts include the load of the CPU.

    Args:
        device: Device of the measurements.
    """
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "device": gpu or "cpu",
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "allocator": allocator(os.environ, platform.libc_ver()[0]),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "version": _version(),
        "commit": _commit(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version() -> str:
    try:
        return version("fairseq_posenc")
    except PackageNotFoundError:  # used through --user-dir
        return "not installed"


def _commit() -> str:
    """Return the commit of the code, with `-dirty` if tracked files differ from it; `unknown` outside of git."""
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
