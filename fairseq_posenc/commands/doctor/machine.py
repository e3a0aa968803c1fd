"""Check the machine: its Python, C++ compiler, GPU, free disk space and memory allocator."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .report import Check

#: The best version comes first: fairseq has a ready build for Python 3.12 only.
TESTED_PYTHONS = ((3, 12), (3, 11))
OLDEST_PYTHON = min(TESTED_PYTHONS)
# A checkpoint of a base Transformer with Adam's moments takes 0.7 GB; the recipes download several GB.
LOW_DISK_GB, NO_DISK_GB = 5.0, 0.5


def check_python(version: Sequence[int]) -> Check:
    """Check the Python version: fail before 3.11, and warn after 3.12, because newer versions are untested."""
    python = ".".join(map(str, version[:3]))
    if tuple(version[:2]) in TESTED_PYTHONS:
        return Check("python", "ok", python)
    if tuple(version[:2]) < OLDEST_PYTHON:
        return Check("python", "fail", python, "install Python 3.12, then: make setup PYTHON=python3.12")
    tested = " and ".join(f"{major}.{minor}" for major, minor in TESTED_PYTHONS)
    untested = f"{python}, untested: the plugin and the packages that it needs were tested with Python {tested} only"
    return Check("python", "warn", untested, "use Python 3.12: make clean-env, make setup PYTHON=python3.12")


def check_compiler(env: Mapping[str, str], which: Callable[[str], str | None] = shutil.which) -> Check:
    """Check for a C++ compiler, which torch.compile and the installation of some packages need."""
    candidates = [env["CXX"].split()[0]] if env.get("CXX", "").strip() else ["c++", "g++", "clang++"]
    compiler = next((path for name in candidates if (path := which(name))), None)
    if compiler:
        return Check("compiler", "ok", compiler)
    mend = (
        "install one (on Debian or Ubuntu: apt install g++) or set CXX; torch.compile, fastBPE and, unless Python is "
        "3.12 on Linux x86-64, the installation of fairseq need it"
    )
    return Check("compiler", "warn", f"found no C++ compiler (tried {', '.join(candidates)})", mend)


def check_gpu(cuda_build: str | None, names: Sequence[str], driver: bool) -> Check:
    """Check that torch can use the GPUs of this machine.

    Args:
        cuda_build: CUDA version that torch was built for; None for a CPU build.
        names: Names of the GPUs that torch sees.
        driver: Whether the machine has an NVIDIA driver.
    """
    if names:
        return Check("gpu", "ok", f"{len(names)} x {names[0]}")
    if not driver:
        return Check("gpu", "ok", "no GPU: training runs on the CPU, which is enough for the demo")
    if cuda_build is None:
        mend = "install a CUDA build of torch into a fresh environment; make setup does not replace it"
        return Check("gpu", "warn", "there is an NVIDIA driver, but torch is a CPU build", mend)
    mend = "compare the driver's CUDA version (nvidia-smi) with torch's, and check CUDA_VISIBLE_DEVICES"
    return Check("gpu", "warn", f"there is an NVIDIA driver, but torch (CUDA {cuda_build}) sees no GPU", mend)


def has_nvidia_driver() -> bool:
    """Return whether an NVIDIA driver is installed, that is, whether its device file or nvidia-smi exists."""
    return Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi") is not None


def check_disk(free_bytes: int, where: str) -> Check:
    """Check the free space in the folder where the recipes write by default."""
    free = free_bytes / 1e9
    space = f"{free:.1f} GB free in {where}"
    if free >= LOW_DISK_GB:
        return Check("disk", "ok", space)
    mend = "free some space, or let the recipes write elsewhere with --output"
    return Check("disk", "fail" if free < NO_DISK_GB else "warn", space, mend)


def check_allocator(env: Mapping[str, str], libc: str = "") -> Check:
    """Check that glibc keeps large blocks of memory after they are freed.

    By default, glibc returns these blocks to the operating system, which slows attention down.
    """
    if (libc or platform.libc_ver()[0]) != "glibc":
        return Check("allocator", "ok", "the C library is not glibc, so nothing needs to be set")
    names = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
    if all(env.get(name) for name in names):
        return Check("allocator", "ok", ", ".join(f"{name}={env[name]}" for name in names))
    mend = (
        "before you train on a CPU with your own commands, run: source recipes/lib/env.sh (the recipes "
        "source this file themselves)"
    )
    return Check("allocator", "warn", "with glibc's defaults, attention to 512 tokens takes up to twice as long", mend)


def machine_checks(version: Sequence[int], folder: str) -> list[Check]:
    """Run those checks of the machine that do not need an installed package."""
    return [
        check_python(version),
        check_compiler(os.environ),
        check_disk(shutil.disk_usage(folder).free, folder),
        check_allocator(os.environ),
    ]
