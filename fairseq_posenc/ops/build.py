"""Compile the C++ sources once per machine and keep the libraries for later processes.

The name of a library contains a hash of everything that determines its code: the source, the compiler, the compiler's
flags and the CPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import stat
import subprocess
import tempfile
from pathlib import Path

from .compiled import compiler

#: -ffast-math is not used, because with this flag some compilers make the whole process flush denormal numbers to zero.
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fopenmp", "-shared", "-fPIC")
#: Environment variable that names the folder of the libraries. If it is unset, the folder is fairseq_posenc/ in the
#: user's cache folder.
VARIABLE = "FAIRSEQ_POSENC_CACHE"


def shared_library(source: Path) -> ctypes.CDLL:
    """Load the library of a C++ source, and compile the source unless an earlier process did.

    Raises:
        OSError, subprocess.SubprocessError: There is no working compiler, or the compiled library cannot be loaded.
    """
    command = [compiler(), *FLAGS]
    stored = _stored_path(source, command)
    if stored is not None and stored.is_file():
        try:
            return ctypes.CDLL(str(stored))
        except OSError:  # the file is damaged; compile it again
            stored.unlink(missing_ok=True)
    parent = None if stored is None else stored.parent
    with tempfile.TemporaryDirectory(prefix="fairseq_posenc-", dir=parent) as folder:
        compiled = Path(folder) / f"{source.stem}.so"
        subprocess.run(
            [*command, str(source), "-o", str(compiled)], check=True, capture_output=True, text=True, timeout=300
        )
        library = ctypes.CDLL(str(compiled))
        if stored is not None:
            os.replace(compiled, stored)  # atomic; the loaded library stays usable
    return library


def _stored_path(source: Path, command: list[str]) -> Path | None:
    """Return the path at which the library is stored for later processes, or None if there is no safe folder."""
    folder = _folder()
    if folder is None:
        return None
    version = subprocess.run([command[0], "--version"], check=False, capture_output=True, text=True, timeout=60).stdout
    headers = (header.read_text("utf-8") for header in sorted(source.parent.glob("*.h")))
    parts = [source.read_text("utf-8"), *headers, *command, version, _cpu()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
    return folder / f"{source.stem}-{key}.so"


def _folder() -> Path | None:
    """Return the folder of the compiled libraries, or None if the folder cannot be used.

    Because the process executes libraries from this folder, the folder must belong to the user, and other users must
    not be able to write to it.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(os.environ.get(VARIABLE) or os.path.join(cache, "fairseq_posenc"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError:
        return None
    is_own = status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return folder if is_own and os.access(folder, os.W_OK | os.X_OK) else None


def _cpu() -> str:
    """Return the CPU's model and instruction sets, because code compiled with -march=native depends on both."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    names = ("model name", "flags", "Features", "CPU part")
    line_by_name = {line.partition("\t")[0].strip(): line for line in reversed(lines) if line.startswith(names)}
    return "\n".join([platform.machine(), *(line_by_name[name] for name in sorted(line_by_name))])
