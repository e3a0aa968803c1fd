"""What a result depends on besides its command: the commit, the versions, the machine. No torch needed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "fairseq-fixed", "fairseq", "numpy", "sacrebleu", "sentencepiece")
ASK_GPUS = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]


def executable(name: str) -> str:
    """A command of the environment that runs this, also where that is not first in PATH."""
    if name == "python":
        return sys.executable
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name) or name


def version_of(root: Path) -> str:
    """The commit, with `-dirty` where tracked files differ from it; `unknown` outside git."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return answer(command) or "unknown"


def answer(command: list[str]) -> str:
    """What a command prints; nothing where it is missing, fails or hangs (a driver that is gone)."""
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # not every recipe needs every package
            continue
    return found


def cores() -> int:
    """Those that this process may use, which a container or a batch system may have cut."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_gib() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def machine() -> dict[str, object]:
    return {"cores": cores(), "memory_gib": memory_gib(), "gpus": answer(ASK_GPUS).splitlines()}
