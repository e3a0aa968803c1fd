"""Draw the charts of the report page with Bokeh: losses over training updates, and scores against costs,
options and settings.

`page.py` writes the titles and legends as HTML. Inside a chart, texts from results occur only as data of tooltips and
labels, which Bokeh does not interpret as HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.training_log import Points
from ..style import COLOURS
from .runs import COSTS, Entry, Losses, thinned

if TYPE_CHECKING:
    from bokeh.plotting import figure as Plot

#: Without black, which cannot be seen on a dark page.
PALETTE = tuple(colour for colour in COLOURS if colour != "#000000")
MARKERS = ("circle", "square", "triangle", "diamond", "star")
DASHES: tuple[list[int], ...] = ([], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4])
#: Curves with at most this number of points also get marks.
SHORT = 20
HIT_WIDTH = 14  # pixels
#: With more points than this, names would cover each other and are left to the tooltips.
NAMED = 12
#: Beginning of the names of x-axes in the source of a chart, which also has columns such as `score`.
X = "x "
INSTALL = "the page needs the package bokeh, which is not installed. Run: pip install bokeh"


class BokehMissingError(Exception):
    """Raised if Bokeh cannot be imported; the message says what to install."""


class Chart(NamedTuple):
    """Hold a chart of the report page.

    Args:
        title: Title above the chart, as plain text.
        item: Bokeh's JSON description of the chart.
        entries: For each line or point of each Bokeh renderer, the indices of the result rows that the line or point
            shows.
        legend: Colours, keyed by name. If two names share a colour, the later one has a dashed line and another marker.
    """

    title: str
    item: dict[str, Any]
    entries: list[list[list[int]]]
    legend: dict[str, str]


def library() -> str:
    """Return Bokeh's JavaScript, about 1.3 MB.

    Raises:
        BokehMissingError: Bokeh is not installed.
    """
    try:
        from bokeh.resources import Resources
    except ImportError as error:
        raise BokehMissingError(INSTALL) from error
    return "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)


def loss_charts(losses: Sequence[Losses]) -> list[Chart]:
    """Return, for each recipe, a chart of its training losses and one of its validation losses, if it logged them."""
    groups: dict[tuple[str, str], list[tuple[Losses, Points]]] = {}
    for item in losses:
        for kind, points in (("training loss", item.curve.train), ("validation loss", item.curve.valid)):
            groups.setdefault((item.recipe, kind), []).append((item, thinned(points)))
    return [_loss_chart(*place, curves) for place, curves in groups.items() if any(points for _, points in curves)]


def _loss_chart(recipe: str, kind: str, curves: list[tuple[Losses, Points]]) -> Chart:
    losses = [item for item, _ in curves]
    names = [re.sub(r"\.s(eed=)?\d+$", "", item.name) for item in losses]
    colours = _colours(names)
    order, runs = list(colours), list(dict.fromkeys(item.run for item in losses))
    data: dict[str, list[Any]] = {
        "xs": [[x for x, _ in points] for _, points in curves],
        "ys": [[y for _, y in points] for _, points in curves],
        "name": [item.name for item in losses],
        "run": [item.run for item in losses],
        "colour": [colours[name] for name in names],
        "dash": [
            DASHES[(order.index(name) // len(PALETTE) + runs.index(item.run)) % len(DASHES)]
            for name, item in zip(names, losses, strict=True)
        ],
    }
    plot = _plot("updates", f"{kind} (bits)", [("training", "@name"), ("run", "@run"), ("updates", "$snap_x{0,0}")])
    plot.hover.tooltips.append(("loss", "$snap_y{0.000}"))
    plot.hover.line_policy = "nearest"
    source, view = _source(data)
    plot.multi_line("xs", "ys", source=source, view=view, line_color="colour", line_dash="dash", line_width=2)
    # the mouse finds these wide, invisible lines
    plot.hover.renderers = [plot.multi_line("xs", "ys", source=source, view=view, line_width=HIT_WIDTH, line_alpha=0)]
    rows = [item.entries for item in losses]
    short = [number for number, (_, points) in enumerate(curves) if len(points) <= SHORT]
    places = [(number, x, y) for number in short for x, y in curves[number][1]]
    if places:
        own, xs, ys = zip(*places, strict=True)
        source, view = _source({"x": xs, "y": ys, "colour": [data["colour"][number] for number in own]})
        plot.scatter("x", "y", source=source, view=view, color="colour", size=5)
    return Chart(f"{recipe}: {kind}", _item(plot), [rows, rows, [rows[number] for number, *_ in places]], colours)


def cost_charts(entries: Sequence[Entry]) -> list[Chart]:
    """Return a chart of main scores for each task in which at least two rows have a score and a number for the x-axis.

    The x-axis is a cost, an option of the encodings or a setting of the runs (see `axes`).
    """
    shown = axes(entries)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, entry in enumerate(entries):
        if entry.main and entry.numbers.keys() & shown:
            groups.setdefault((entry.recipe, entry.task, entry.main.column), []).append(number)
    return [
        _cost_chart(", ".join(filter(None, (recipe, task))), column, numbers, entries, shown)
        for (recipe, task, column), numbers in groups.items()
        if len(numbers) > 1
    ]


def axes(entries: Iterable[Entry]) -> list[str]:
    """Return the labels of the x-axes that a reader can choose.

    They are the costs that at least one row has, and the options of encodings and settings of runs that have several
    values in one recipe.
    """
    entries = list(entries)
    values: dict[tuple[str, str], set[float]] = {}
    for entry in entries:
        for name, value in entry.numbers.items():
            values.setdefault((entry.recipe, name), set()).add(value)
    costs = [label for label in COSTS if any(label in entry.numbers for entry in entries)]
    options = [label for (_, label), several in values.items() if len(several) > 1]
    return list(dict.fromkeys([*costs, *options]))


def _cost_chart(title: str, column: str, numbers: list[int], entries: Sequence[Entry], shown: Sequence[str]) -> Chart:
    members = [entries[number] for number in numbers]
    colours = _colours([entry.encoding for entry in members])
    order = list(colours)
    scores = [entry.main for entry in members if entry.main]
    data: dict[str, list[Any]] = {
        "score": [score.value for score in scores],
        "low": [score.value - (score.within or 0) for score in scores],
        "high": [score.value + (score.within or 0) for score in scores],
        "name": [entry.label for entry in members],
        "text": [f"  {entry.label}  " for entry in members],  # with a gap to the mark on either side
        "marker": [MARKERS[order.index(entry.encoding) // len(PALETTE) % len(MARKERS)] for entry in members],
        "run": [entry.run for entry in members],
        "colour": [colours[entry.encoding] for entry in members],
    }
    own = [label for label in shown if any(label in entry.numbers for entry in members)]
    for label in shown:
        data[X + label] = [entry.numbers.get(label, nan) for entry in members]
        data[f"{X}{label} side"] = _sides(data[X + label])
    from bokeh.core.properties import field

    first = X + own[0]
    source, view = _source(data)
    plot = _plot(own[0], column, [("encoding", "@name"), ("run", "@run"), (column, "@score{0.00}")])
    plot.hover.tooltips += [(label, f"@{{{X}{label}}}{{0,0.[00]}}") for label in own]
    plot.segment(first, "low", first, "high", source=source, view=view, color="colour", line_width=2)
    plot.hover.renderers = [
        plot.scatter(first, "score", source=source, view=view, color="colour", marker="marker", size=10)
    ]
    if len(members) <= NAMED:
        names = plot.text(first, "score", text="text", source=source, view=view, y_offset=-4, text_font_size="12px")
        names.glyph.text_align = field(f"{first} side")
    return Chart(title, _item(plot), [[[number] for number in numbers]] * len(plot.renderers), colours)


def _sides(costs: Sequence[float]) -> list[str]:
    """Return how to align each point's name, so that it extends towards the middle of the chart and is not cut off."""
    known = [cost for cost in costs if not isnan(cost)]
    return ["right" if known and cost > (min(known) + max(known)) / 2 else "left" for cost in costs]


def _colours(names: Iterable[str]) -> dict[str, str]:
    return {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(dict.fromkeys(names))}


def _plot(x: str, y: str, tooltips: list[tuple[str, str]]) -> Plot:
    """Return an empty chart without background colours, because the page's style sheet sets them."""
    from bokeh.models import DataRange1d, HoverTool
    from bokeh.plotting import figure

    ranges = {"x_range": DataRange1d(range_padding=0.1), "y_range": DataRange1d(range_padding=0.15)}
    tools = [HoverTool(tooltips=tooltips), "pan", "box_zoom", "wheel_zoom", "zoom_in", "zoom_out", "reset"]
    plot = figure(height=300, sizing_mode="stretch_width", tools=tools, x_axis_label=x, y_axis_label=y, **ranges)
    plot.toolbar.logo = None
    plot.toolbar.active_drag = None  # a finger scrolls the page
    plot.background_fill_color = plot.border_fill_color = plot.outline_line_color = None
    return plot


def _source(data: Mapping[str, Sequence[Any]]) -> tuple[Any, Any]:
    """Return Bokeh's source of these columns, and a view that shows all of it until the reader filters the page."""
    from bokeh.models import BooleanFilter, CDSView, ColumnDataSource

    count = len(next(iter(data.values())))
    return ColumnDataSource(data), CDSView(filter=BooleanFilter(booleans=[True] * count))


def _item(plot: Plot) -> dict[str, Any]:
    from bokeh.embed import json_item

    return dict(json_item(plot))
