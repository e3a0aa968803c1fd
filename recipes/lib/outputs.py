"""The folder of a run: a folder, of one recipe, whose earlier report is kept when another is made."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .package import write_whole
from .stages import MARKERS, read_json
from .values import Refused

RESULT = "result.json"
RECIPE = Path(MARKERS) / "recipe"  # whose run it is, from its first stage on
#: what is no fault of the folder's: it is told as it is, and the run goes on later
FULL = (errno.ENOSPC, errno.EDQUOT)


def refuse_unusable(output: Path, recipe: str) -> None:
    """Before anything is written.

    Raises:
        Refused: it is no folder, or another recipe's: stages of one name would take each other's outputs for theirs.
    """
    there = next(place for place in (output, *output.parents) if os.path.exists(place))
    if not there.is_dir():
        which = "" if there == output else f": {there}"
        raise Refused(f"--output {output}{which} is a file: name a folder")
    made_by = _recipe(output)
    if made_by not in ("", recipe):
        raise Refused(f"--output {output} has a run of recipes/{made_by}: choose another folder for {recipe}")


def _recipe(output: Path) -> str:
    """Empty where no run was."""
    try:
        return (output / RECIPE).read_text(encoding="utf-8").strip()
    except OSError:
        pass
    try:
        return str(read_json(output / RESULT)["recipe"])  # of a run before folders were marked
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def claim(output: Path, recipe: str) -> None:
    write_whole(output / RECIPE, recipe + "\n")


@contextmanager
def making(output: Path) -> Iterator[None]:
    """A folder where none can be made or written is the user's to change, not to be tried again."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise
        raise Refused(f"--output {output}: nothing can be written there ({error.strerror}); name another") from error


def put_aside(output: Path, names: Iterable[str]) -> list[Path]:
    """Reports, which would tell of another run: as NAME.old, until there is a newer one."""
    there = [output / name for name in names if (output / name).exists()]
    return [path.replace(path.with_name(f"{path.name}.old")) for path in there]
