"""Plot scores against an option of an encoding, such as clip, or against a setting of a recipe, such as longest.

Source: Table 4 of Huang et al. 2020 (M1-M4) compares M4 with k from 2 to 512, and fine-tuning at 512 to 704 tokens.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..encodings.building import parse
from .results import ResultsError, Score
from .style import LINE, MARKERS, Row, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE = 8  # the axis is logarithmic if the largest value is this many times the smallest


class Point(NamedTuple):
    """Hold a point of a curve: its encoding, the value of the option or setting, and the score there."""

    series: str
    x: float
    score: Score


def data(items: list[Score], name: str) -> list[Point]:
    """Return the points of all curves.

    A score is a point if `name` is a numeric option of its encoding or a numeric setting of its run.

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
    return sorted(points, key=lambda point: (point.score.group, point.series, point.x))


def _point(item: Score, name: str) -> Point | None:
    with suppress(ValueError):  # the label is not one encoding, or the option is not a number
        spec = parse(item.encoding)
        for options in spec.options.values():
            if name in options:
                number = float(options.pop(name))
                return Point(spec.label, number, item)
    value = item.settings.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return Point(item.encoding, float(value), item)


def draw(points: list[Point], name: str) -> Figure:
    """Draw a curve for each encoding, with a panel for each recipe, task and score."""
    curves: dict[tuple[str, str], dict[str, list[Point]]] = {}
    for point in points:
        curves.setdefault((point.score.group, point.score.column), {}).setdefault(point.series, []).append(point)
    most = max(map(len, curves.values()))
    with styled():
        figure, axes = panels([group for group, _ in curves], columns=2, height=2.8 + LINE * most)
        for panel, ((_, column), series) in zip(axes, curves.items(), strict=True):
            for number, (label, own) in enumerate(series.items()):
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
            bars = any(point.score.within is not None for own in series.values() for point in own)
            panel.set_ylabel(f"{column} (bar: 95 % interval)" if bars else column)
            # The legend lies below the label of the x-axis, where it hides no curve.
            panel.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4.5)
    return figure


def rows(points: list[Point], name: str) -> list[Row]:
    """Return the points of the curves as rows of a table."""
    return [
        {
            "results of": point.score.group,
            "encoding": point.series,
            name: point.x,
            "score": point.score.column,
            "value": point.score.value,
            "±": "" if point.score.within is None else point.score.within,
            "trainings": point.score.seeds,
        }
        for point in points
    ]
