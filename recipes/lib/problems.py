"""Summarise in one line how many bad items a data preparation met, and how it handled them."""

from __future__ import annotations

from collections.abc import Mapping


def counted(problems: Mapping[str, Mapping[str, int]]) -> str:
    """Return the number of bad items by kind and action, such as `misplaced answer: 193 left out and 12 repaired`.

    The text is empty if there are no bad items.
    """
    return ", ".join(
        f"{kind}: {' and '.join(f'{number:,} {action}' for action, number in actions.items())}"
        for kind, actions in problems.items()
    )
