"""Inspect a drawn figure: whether something of it is cut off, and how its lines look."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairseq_posenc.analysis.style import styled


def cut(figure: Figure) -> list[str]:
    """Return the sides at which something is not completely inside of the figure."""
    with styled():
        FigureCanvasAgg(figure).draw()
        box = figure.get_tightbbox()  # in inches
    width, height = figure.get_size_inches()
    spaces = {"left": box.x0, "bottom": box.y0, "right": width - box.x1, "top": height - box.y1}
    return [side for side, space in spaces.items() if space < -0.01]


def looks(figure: Figure) -> list[tuple[str, str]]:
    """Return the colour and the dashes of each line with a name."""
    lines = [line for panel in figure.axes for line in panel.lines if not str(line.get_label()).startswith("_")]
    return [(str(line.get_color()), str(line._unscaled_dash_pattern)) for line in lines]
