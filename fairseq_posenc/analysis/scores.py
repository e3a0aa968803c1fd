"""Plot scores of encodings with 95 % intervals, from the results of recipes (Chen et al. 2021, DIET, Figure 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .results import LOWER_IS_BETTER, Score
from .style import COLOURS, GREY, WIDTH, Row, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = 1.0  # inches beside a panel for the names of encodings; longer names widen the figure
LETTER = 0.066  # inches of a letter of a name


def best_first(items: list[Score]) -> list[Score]:
    """Return the scores of one column, the best score first."""
    return sorted(items, key=lambda item: item.value, reverse=items[0].column not in LOWER_IS_BETTER)


def draw(items: list[Score], baseline: str | None = None) -> Figure:
    """Draw a panel for each group.

    A panel shows the score and the interval of each encoding, with the best encoding on top.

    Args:
        items: Scores of one column.
        baseline: Encoding whose score is drawn as a dashed line; None for no line.
    """
    groups = {item.group: [other for other in items if other.group == item.group] for item in items}
    most = max(map(len, groups.values()), default=1)
    longest = max((len(item.encoding) for item in items), default=0)
    with styled():
        figure, axes = panels(list(groups) or [""], columns=2, height=0.18 * most + 1.1)
        # Names take their room from the axes, so long names would leave no room for the intervals.
        figure.set_figwidth(min(len(axes), 2) * (WIDTH + max(0.0, LETTER * longest - NAME)))
        for panel, members in zip(axes, groups.values(), strict=False):  # without scores, one panel stays empty
            ordered = best_first(members)[::-1]
            for place, item in enumerate(ordered):
                _point(panel, place, item)
                if item.encoding == baseline:
                    panel.axvline(item.value, color=GREY, linestyle="--", linewidth=1, zorder=0)
            panel.set_yticks(range(len(ordered)), [item.encoding for item in ordered])
            panel.set_xlabel(_label(ordered, baseline), loc="right")  # names on the left may be long
            panel.margins(x=0.08)
            panel.set_ylim(-0.6, len(ordered) - 0.4)
    return figure


def _point(panel: Axes, place: int, item: Score) -> None:
    panel.errorbar(item.value, place, xerr=item.within, fmt="o", color=COLOURS[0], capsize=2, markersize=4)
    right = panel.get_yaxis_transform()  # outside of the axes, where no bar is
    panel.text(1.02, place, f"{item.value:.1f}", va="center", transform=right)


def _label(items: list[Score], baseline: str | None) -> str:
    """Return the label of the x-axis: the score, the number of training runs, and what bars and dashed lines mean."""
    seeds = sorted({item.seeds for item in items})
    runs = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    marks = ["bar: 95 % interval"] if any(item.within is not None for item in items) else []
    marks += [f"dashed: {baseline}"] if any(item.encoding == baseline for item in items) else []
    first = f"{items[0].column} ({runs} training run{'s' * (seeds != [1])} each)"
    return "\n".join([first, "; ".join(marks)]) if marks else first


def rows(items: list[Score]) -> list[Row]:
    """Return the scores as rows of a table."""
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
