"""Describe the packages and the machine with which a result was computed."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("torch", "fairseq-fixed", "fairseq", "numpy", "sacrebleu", "sentencepiece")
ASK_GPUS = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages in `PACKAGES`."""
    versions_by_name = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions_by_name[name] = version(name)
        except PackageNotFoundError:  # not every recipe needs every package
            continue
    return versions_by_name


def machine() -> dict[str, object]:
    """Return the number of cores that this process may use, the size of the main memory, and the GPUs."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    try:
        gpus = subprocess.run(ASK_GPUS, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):  # there is no GPU
        gpus = []
    return {"cores": cores, "memory_gib": memory, "gpus": gpus}
