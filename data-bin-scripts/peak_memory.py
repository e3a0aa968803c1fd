#!/usr/bin/env python3
"""Run a command, and print its peak memory including all child processes: peak_memory.py COMMAND [ARGUMENT...]"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

INTERVAL = 0.2  # seconds between two measurements


def processes() -> dict[int, tuple[int, int]]:
    """Return the id of the parent process and the resident bytes of each process, by process id."""
    parents_and_sizes = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except (FileNotFoundError, ProcessLookupError):  # the process has ended
            continue
        resident = int(lines.get("VmRSS", "0 kB").split()[0]) * 1024
        parents_and_sizes[int(status.parent.name)] = int(lines["PPid"]), resident
    return parents_and_sizes


def resident(root: int) -> int:
    """Return the resident bytes of a process and all its descendants; shared pages are counted once per process."""
    known = processes()
    family, size = {root}, 0
    while len(family) > size:
        size = len(family)
        family |= {process for process, (parent, _) in known.items() if parent in family}
    return sum(known[process][1] for process in family if process in known)


def main(command: list[str]) -> int:
    started, peak = time.monotonic(), 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(INTERVAL)
    print(f"peak memory: {peak / 1e9:.2f} GB, run time: {time.monotonic() - started:.0f} s", file=sys.stderr)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if sys.argv[1:] else __doc__)
