"""What a preparation did with what it could not use, in a line."""

from __future__ import annotations

from collections.abc import Mapping


def counted(problems: Mapping[str, Mapping[str, int]]) -> str:
    """`misplaced answer 193 left out 12 repaired`: by kind, and what was done; empty where nothing was wrong."""
    return ", ".join(
        f"{kind} {' '.join(f'{number:,} {done}' for done, number in some.items())}" for kind, some in problems.items()
    )
