"""Plot scores of encodings with 95 % intervals, from the results of recipes (Chen et al. 2021, DIET, Figure 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .results import LOWER_IS_BETTER, Score
from .style import COLOURS, Row, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def best_first(items: list[Score]) -> list[Score]:
    """Return scores of one column in the order of their values, the best first."""
    return sorted(items, key=lambda item: item.value, reverse=items[0].column not in LOWER_IS_BETTER)


def draw(items: list[Score]) -> Figure:
    """Draw a panel for each group with a point and an interval for each encoding, the best on top."""
    groups = {item.group: [other for other in items if other.group == item.group] for item in items}
    most = max(map(len, groups.values()))
    with styled():
        figure, axes = panels(list(groups), columns=2, height=0.18 * most + 0.9)
        for panel, members in zip(axes, groups.values(), strict=True):
            ordered = best_first(members)[::-1]
            for place, item in enumerate(ordered):
                panel.errorbar(item.value, place, xerr=item.within, fmt="o", color=COLOURS[0], capsize=2, markersize=4)
            panel.set_yticks(range(len(ordered)), [item.encoding for item in ordered])
            seeds = sorted({item.seeds for item in ordered})
            runs = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
            word = "training run" if seeds == [1] else "training runs"
            panel.set_xlabel(f"{ordered[0].column} ({runs} {word} each)")
            panel.margins(x=0.08)
    return figure


def rows(items: list[Score]) -> list[Row]:
    """Return the scores as rows."""
    return [
        {
            "results of": item.group,
            "encoding": item.encoding,
            "score": item.column,
            "value": item.value,
            "±": "" if item.within is None else item.within,
            "trainings": item.seeds,
        }
        for item in items
    ]
