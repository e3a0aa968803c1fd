"""Describe the commit, the package versions and the machine with which a result was computed."""

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
    """Return the path of a command; the environment of the running Python comes before PATH."""
    if name == "python":
        return sys.executable
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name) or name


def version_of(root: Path) -> str:
    """Return the commit, with `-dirty` if tracked files differ from it, or `unknown` outside a git repository."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return answer(command) or "unknown"


def answer(command: list[str]) -> str:
    """Return the output of a command, or an empty text if the command is missing, fails, or hangs for 20 seconds."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.strip()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages in `PACKAGES`."""
    versions_by_name = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions_by_name[name] = version(name)
        except PackageNotFoundError:  # not every recipe needs every package
            continue
    return versions_by_name


def cores() -> int:
    """Return the number of CPU cores that this process may use; a container or a batch system may limit it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_gib() -> float:
    """Return the size of the main memory in GiB."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def machine() -> dict[str, object]:
    """Return the number of cores, the size of the main memory and the GPUs of this machine, for reports."""
    return {"cores": cores(), "memory_gib": memory_gib(), "gpus": answer(ASK_GPUS).splitlines()}
