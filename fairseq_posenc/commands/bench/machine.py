"""What a number depends on besides the code: the allocator, the machine, the versions."""

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

#: glibc maps and faults every large temporary anew unless both are raised: 2.3x -> 1.2x for explicit attention at
#: n = 512. It reads them when a process starts.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}


def pinned(env: Mapping[str, str], libc: str) -> dict[str, str] | None:
    """The environment to start again with; None where nothing is to be set. What the user set stays."""
    missing = {name: value for name, value in ALLOCATOR.items() if not env.get(name)}
    return {**env, **missing} if missing and libc == "glibc" else None


def start_again_pinned(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Replace this process by one with the allocator's settings, where they are not set."""
    env = pinned(environ, platform.libc_ver()[0])
    if env is not None:
        print("bench: starting again with the allocator's thresholds raised", file=sys.stderr, flush=True)
        os.execve(sys.executable, [sys.executable, "-m", "fairseq_posenc", "bench", *argv], env)


def allocator(env: Mapping[str, str], libc: str) -> str:
    """For the rows."""
    if libc != "glibc":
        return f"{libc or platform.system()}, defaults"
    return ", ".join(f"{name}={env.get(name, 'default')}" for name in ALLOCATOR)


def facts(device: torch.device) -> dict[str, Any]:
    """Fields of every row; the load is that before the benchmark."""
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
    except PackageNotFoundError:  # used as a --user-dir
        return "not installed"


def _commit() -> str:
    """With `-dirty` where tracked files differ from it; `unknown` outside git."""
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
