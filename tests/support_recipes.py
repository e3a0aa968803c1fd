"""Compare the results of two runs of a recipe."""

from __future__ import annotations

from collections.abc import Iterable

from recipes.lib.recipe import Row

#: Parts of the names of columns that differ between two equal runs: times, memory, and values that name the folder.
MEASURED = ("minutes", "seconds", "/s", "time", "speed", "MB", "memory of", "command", "commit")


def unmeasured(rows: Iterable[Row]) -> list[Row]:
    """Return the rows without what differs between two equal runs."""
    return [{key: row[key] for key in row if not any(name in key for name in MEASURED)} for row in rows]
