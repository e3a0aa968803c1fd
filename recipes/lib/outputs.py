"""Check the output folder of a run, mark it with the recipe's name, and keep its earlier report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .package import FULL, write_whole
from .stages import MARKERS, read_json
from .values import Refused

RESULT = "result.json"
RECIPE = Path(MARKERS) / "recipe"  # file with the name of the recipe that runs in the folder
SETTINGS = Path(MARKERS) / "settings.json"  # the settings of a run that has no result.json yet


def refuse_unusable(output: Path, recipe: str) -> None:
    """Check the output folder before anything is written.

    Raises:
        Refused: The path is a file, or the folder holds a run of another recipe. Two recipes in one folder would
        overwrite each other's files, because their stages have the same names.
    """
    existing = next(place for place in (output, *output.parents) if os.path.exists(place))
    if not existing.is_dir():
        raise Refused(f"--output {output}: {existing} is a file. Give the path of a folder.")
    owner = _recipe(output)
    if owner not in ("", recipe):
        raise Refused(f"--output {output}: the folder has a run of recipes/{owner}. Choose another folder.")


def _recipe(output: Path) -> str:
    """Return the name of the recipe whose run is in the folder, or an empty text if there is none."""
    try:
        return (output / RECIPE).read_text(encoding="utf-8").strip()
    except OSError:
        pass
    try:
        return str(read_json(output / RESULT)["recipe"])  # a run of an old version, which did not mark folders
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def claim(output: Path, recipe: str, settings: Mapping[str, Any]) -> None:
    """Write files that mark the folder as a run of this recipe with these settings."""
    write_whole(output / RECIPE, recipe + "\n")
    write_whole(output / SETTINGS, json.dumps(settings, indent=1) + "\n")


@contextmanager
def making(output: Path) -> Iterator[None]:
    """Raise Refused if the folder cannot be created or written.

    The error of a full disk passes, because the run can be continued once there is space.
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise
        problem = f"the folder cannot be created or written ({error.strerror})"
        raise Refused(f"--output {output}: {problem}. Choose another folder.") from error


def put_aside(output: Path, names: Iterable[str]) -> list[Path]:
    """Rename the reports of the earlier run to NAME.old, and return their new paths."""
    existing = [output / name for name in names if (output / name).exists()]
    return [path.replace(path.with_name(f"{path.name}.old")) for path in existing]
