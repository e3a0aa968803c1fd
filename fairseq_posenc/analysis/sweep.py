"""Plot scores against an option of an encoding, such as clip, or against a setting of a recipe, such as longest.

Source: Table 4 of Huang et al. 2020 (M1-M4) compares M4 with k from 2 to 512, and fine-tuning at 512 to 704 tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from .results import ResultsError, Score
from .style import MARKERS, Row, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE = 8  # the axis is logarithmic if the largest value is this many times the smallest


class Point(NamedTuple):
    """Hold a point of a curve: the name of the curve, the value of the option or setting, and the score there."""

    series: str
    x: float
    score: Score


def data(items: list[Score], name: str) -> list[Point]:
    """Return the points of all curves: the scores whose encoding or run has a numeric option or setting `name`.

    Raises:
        ResultsError: The results contain fewer than two values of `name`.
    """
    points = [point for item in items if (point := _point(item, name))]
    if len({point.x for point in points}) < 2:
        raise ResultsError(
            f"--over {name}: the results contain fewer than two values of {name}, too few for a curve. Choose an "
            "option of the encodings, such as clip, or a setting of the recipe, such as longest. Give the folders of "
            "all runs with --results."
        )
    return sorted(points, key=lambda point: (point.series, point.x))


def _point(item: Score, name: str) -> Point | None:
    option = re.search(rf"[\[,]((?:\w+\.)?{re.escape(name)}=([\d.]+))(?=[,\]])", item.encoding)
    if option:
        rest = item.encoding.replace(option[1], "").replace("[,", "[").replace(",]", "]").replace("[]", "")
        return Point(f"{item.group} {rest}", float(option[2]), item)
    value = item.settings.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return Point(f"{item.group} {item.encoding}", float(value), item)


def draw(points: list[Point], name: str) -> Figure:
    """Draw a curve for each encoding of each recipe, with a panel for each kind of score."""
    columns = list(dict.fromkeys(point.score.column for point in points))
    with styled():
        figure, axes = panels([""] * len(columns), columns=2, height=3.0)
        for panel, column in zip(axes, columns, strict=True):
            series = list(dict.fromkeys(point.series for point in points if point.score.column == column))
            for number, label in enumerate(series):
                own = [point for point in points if point.series == label]
                within = [point.score.within or 0 for point in own]
                values = [point.score.value for point in own]
                marker = MARKERS[number % len(MARKERS)]
                panel.errorbar([p.x for p in own], values, within, marker=marker, capsize=2, label=label, markersize=4)
            places = sorted({point.x for point in points})
            logarithmic = places[0] > 0 and places[-1] >= WIDE * places[0]
            if logarithmic:
                panel.set_xscale("log", base=2)
            panel.set_xticks(places, [f"{place:g}" for place in places])
            panel.set_xlabel(f"{name} (logarithmic)" if logarithmic else name)
            panel.set_ylabel(column)
            panel.legend()
    return figure


def rows(points: list[Point], name: str) -> list[Row]:
    """Return the points of the curves as rows of a table."""
    return [
        {
            "series": point.series,
            name: point.x,
            "score": point.score.column,
            "value": point.score.value,
            "±": "" if point.score.within is None else point.score.within,
            "trainings": point.score.seeds,
        }
        for point in points
    ]
