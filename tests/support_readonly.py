"""Make a folder read-only, for root too."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """Make an existing folder read-only inside a `with` block, by its permissions or, for root, by `chattr`.

    The test is skipped if root may write anyway, because the file system does not know `chattr`.
    """
    mode = folder.stat().st_mode
    folder.chmod(0o555)
    try:
        if _is_writable(folder):
            subprocess.run(["chattr", "+i", str(folder)], capture_output=True, check=False)
        if _is_writable(folder):
            pytest.skip("no folder can be made read-only for root here: the file system does not know chattr")
        yield folder
    finally:
        subprocess.run(["chattr", "-i", str(folder)], capture_output=True, check=False)
        folder.chmod(mode)


def _is_writable(folder: Path) -> bool:
    probe = folder / "probe"
    try:
        probe.touch()
    except OSError:
        return False
    probe.unlink()
    return True
