"""Inspect a drawn figure: which of its texts are cut off, and how its lines look."""

from __future__ import annotations

from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from fairseq_posenc.analysis.style import styled


def cut(figure: Figure) -> list[str]:
    """Return the visible texts that are not completely inside of the figure."""
    with styled():
        FigureCanvasAgg(figure).draw()
        beyond = {label for panel in figure.axes for axis in (panel.xaxis, panel.yaxis) for label in _beyond(axis)}
        texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
        boxes = {text.get_text(): text.get_window_extent() for text in texts if text not in beyond}
    return [
        text
        for text, box in boxes.items()
        if box.x0 < -1 or box.y0 < -1 or box.x1 > figure.bbox.x1 + 1 or box.y1 > figure.bbox.y1 + 1
    ]


def _beyond(axis: Axis) -> list[Text]:
    """Return the labels of ticks beyond the limits of an axis, which matplotlib does not draw."""
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
    return [label for tick in ticks for label in (tick.label1, tick.label2)]


def looks(figure: Figure) -> list[tuple[str, str]]:
    """Return the colour and the dashes of each line with a name."""
    lines = [line for panel in figure.axes for line in panel.lines if not str(line.get_label()).startswith("_")]
    return [(str(line.get_color()), str(line._unscaled_dash_pattern)) for line in lines]
