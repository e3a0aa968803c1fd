"""Draw the charts of the report page with Bokeh: losses over training updates, and scores against costs,
options and settings.

`page.py` writes the titles and legends as HTML. Inside a chart, texts from results occur only as data of tooltips and
labels, which Bokeh does not interpret as HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.training_log import Curve, Points
from ..style import COLOURS
from .runs import Entry, Losses, thinned

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
#: Costs by their columns in the source of a chart.
COSTS = {
    "minutes": "minutes of training",
    "parameters": "parameters",
    "speed": "training speed (per second)",
    "step": "time of an update, relative",
    "memory": "MB",
}
#: Beginning of the columns of options and settings in the source of a chart.
NUMBER = "number "
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
    kinds: dict[str, Callable[[Curve], Points]] = {
        "training loss": lambda curve: curve.train,
        "validation loss": lambda curve: curve.valid,
    }
    recipes = dict.fromkeys(item.recipe for item in losses)
    groups = [
        (recipe, kind, [item for item in losses if item.recipe == recipe]) for recipe in recipes for kind in kinds
    ]
    return [
        _loss_chart(recipe, kind, members, kinds[kind])
        for recipe, kind, members in groups
        if any(kinds[kind](item.curve) for item in members)
    ]


def _loss_chart(recipe: str, kind: str, losses: Sequence[Losses], of: Callable[[Curve], Points]) -> Chart:
    from bokeh.models import ColumnDataSource

    curves = [thinned(of(item.curve)) for item in losses]
    names = [re.sub(r"\.s(eed=)?\d+$", "", item.name) for item in losses]
    colours = _colours(names)
    order, runs = list(colours), list(dict.fromkeys(item.run for item in losses))
    data: dict[str, list[Any]] = {
        "xs": [[x for x, _ in curve] for curve in curves],
        "ys": [[y for _, y in curve] for curve in curves],
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
    source, view = ColumnDataSource(data), _view(len(losses))
    plot.multi_line("xs", "ys", source=source, view=view, line_color="colour", line_dash="dash", line_width=2)
    # the mouse finds these wide, invisible lines
    plot.hover.renderers = [plot.multi_line("xs", "ys", source=source, view=view, line_width=HIT_WIDTH, line_alpha=0)]
    rows = [item.entries for item in losses]
    short = [number for number, curve in enumerate(curves) if len(curve) <= SHORT]
    points = [(x, y, data["colour"][number], rows[number]) for number in short for x, y in curves[number]]
    marks = dict(zip(("x", "y", "colour"), map(list, zip(*(point[:3] for point in points), strict=True)), strict=False))
    if points:
        plot.scatter("x", "y", source=marks, view=_view(len(points)), color="colour", size=5)
    return Chart(f"{recipe}: {kind}", _item(plot), [rows, rows, [point[3] for point in points]], colours)


def cost_charts(entries: Sequence[Entry]) -> list[Chart]:
    """Return a chart of main scores for each task in which at least two rows have a score and a number for the x-axis.

    The x-axis is a cost, an option of the encodings or a setting of the runs (see `axes`).
    """
    shown = axes(entries)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, entry in enumerate(entries):
        if entry.main and any(_place(entry, name) is not None for name in shown):
            groups.setdefault((entry.recipe, entry.task, entry.main.column), []).append(number)
    return [
        _cost_chart(", ".join(filter(None, (recipe, task))), column, numbers, entries, shown)
        for (recipe, task, column), numbers in groups.items()
        if len(numbers) > 1
    ]


def axes(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the labels of the x-axes that a reader can choose, keyed by column in the source of a chart.

    They are the costs that at least one row has, and the options of encodings and settings of runs that have several
    values in one recipe.
    """
    entries = list(entries)
    values: dict[tuple[str, str], set[float]] = {}
    for entry in entries:
        for name, value in entry.numbers.items():
            values.setdefault((entry.recipe, name), set()).add(value)
    costs = {name: text for name, text in COSTS.items() if any(_place(entry, name) is not None for entry in entries)}
    return costs | {f"{NUMBER}{name}": name for (_, name), several in values.items() if len(several) > 1}


def _place(entry: Entry, name: str) -> float | None:
    """Return the place of a row on an x-axis: a cost, an option or a setting."""
    if name.startswith(NUMBER):
        return entry.numbers.get(name.removeprefix(NUMBER))
    value: float | None = getattr(entry, name)
    return value


def _cost_chart(
    title: str, column: str, numbers: list[int], entries: Sequence[Entry], shown: Mapping[str, str]
) -> Chart:
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
    for name in shown:
        data[name] = [nan if (place := _place(entry, name)) is None else place for entry in members]
        data[f"{name} side"] = _sides(data[name])
    from bokeh.core.properties import field
    from bokeh.models import ColumnDataSource

    own = [name for name in shown if any(_place(entry, name) is not None for entry in members)]
    first = own[0]
    source, view = ColumnDataSource(data), _view(len(members))
    plot = _plot(shown[first], column, [("encoding", "@name"), ("run", "@run"), (column, "@score{0.00}")])
    plot.hover.tooltips += [(shown[name], f"@{{{name}}}{{0,0.[00]}}") for name in own]
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


def _view(count: int) -> Any:
    """Return a Bokeh view that shows all `count` lines or points, until the reader filters the page."""
    from bokeh.models import BooleanFilter, CDSView

    return CDSView(filter=BooleanFilter(booleans=[True] * count))


def _item(plot: Plot) -> dict[str, Any]:
    from bokeh.embed import json_item

    return dict(json_item(plot))
