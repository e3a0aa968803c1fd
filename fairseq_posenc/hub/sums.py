"""Write the sha256 of exported files to SHA256SUMS, and check them on loading; safetensors itself has no checksums.

The command `sha256sum --check SHA256SUMS` checks the same files without Python.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..compat.checkpoints import CheckpointError

SUMS = "SHA256SUMS"


def write(folder: Path) -> None:
    """Write the sha256 of each file in a folder."""
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    (folder / SUMS).write_text("".join(f"{_sha256(path)}  {path.name}\n" for path in paths), "utf-8")


def check(path: Path) -> None:
    """Raise CheckpointError if a file differs from its line in SHA256SUMS; a file without a line is not checked."""
    sums = path.with_name(SUMS)
    if not sums.is_file():
        return
    lines = (line.split(maxsplit=1) for line in sums.read_text("utf-8", errors="replace").splitlines())
    expected = {line[1].lstrip("*"): line[0] for line in lines if len(line) == 2}.get(path.name)
    if expected is not None and _sha256(path) != expected:
        raise CheckpointError(
            f"{path} is damaged or was changed, because its sha256 differs from the one in {sums}. Copy or export the "
            f"file again. If you changed the file yourself, delete its line in {sums}."
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
