"""Check that `import fairseq_posenc` imports this package, and not a folder or another copy with the same name.

A clone of the repository has the same name as the package that the clone contains. In the parent folder of the clone,
Python may therefore import the clone itself as a namespace package, which has no code and registers nothing with
fairseq.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from .plugin import NAME
from .report import Check

#: The package that this file is part of.
RUNNING = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Imported:
    """Hold where a package is imported from: its file `__init__.py` (None if there is none) and its folders."""

    file: str | None = None
    folders: Sequence[str] = ()

    def problem(self, running: Path) -> str:
        """Return what is imported instead of the package in `running`, or an empty text if that package is imported."""
        if self.file is not None:
            folder = Path(self.file).resolve().parent
            return "" if folder == running else f"another copy ({folder})"
        if self.folders:
            return f"a folder without its code ({self.folders[0]})"
        return "nothing"


def in_this_process() -> Imported:
    """Return from where this process imported the package."""
    module = sys.modules.get(NAME)
    return Imported(getattr(module, "__file__", None), [*getattr(module, "__path__", ())])


def in_folder(folder: str) -> Imported:
    """Return what a program started in this folder would import, without importing it."""
    entries = sys.path if sys.flags.safe_path else [folder, *sys.path]
    for finder in sys.meta_path:
        # Ask the other finders, too: an editable installation may have added one behind PathFinder.
        spec = PathFinder.find_spec(NAME, entries) if finder is PathFinder else finder.find_spec(NAME, None)
        if spec is not None:
            return Imported(spec.origin if spec.has_location else None, spec.submodule_search_locations or ())
    return Imported()


def check_import(running: Path, here: Imported, folder: str, process: Imported) -> Check:
    """Check that this process and new programs import the package that contains this check.

    Args:
        running: Folder of the package that contains this check.
        here: Package that a program started in `folder` would import.
        folder: Current folder.
        process: Package that this process imported.
    """
    wrong = next((imported for imported in (process, here) if imported.problem(running)), None)
    if wrong is None:
        return Check("import", "ok", f"import {NAME} gives this package")
    state = f"in {folder}, import {NAME} gives {wrong.problem(running)} instead of {running}"
    if wrong.file is not None:
        return Check("import", "fail", state, f"keep one copy: run pip uninstall {NAME}, or work in another folder")
    mend = (
        f"run make setup (or pip install -e . --no-build-isolation) in {running.parent} to install the package again, "
        "or work in another folder"
    )
    return Check("import", "fail", state, mend)


def import_check() -> Check:
    """Check the import of the package in this process and in the current folder."""
    folder = os.getcwd()
    return check_import(RUNNING, in_folder(folder), folder, in_this_process())


def refusal() -> str:
    """Return why no command can run in this process; an empty text if Python imported the right package."""
    problem = in_this_process().problem(RUNNING)
    return problem and (
        f"error: in {os.getcwd()}, import {NAME} gives {problem} instead of {RUNNING}. "
        f"Work in another folder, and run `python -m {NAME} doctor`."
    )
