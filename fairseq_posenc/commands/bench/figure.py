"""Draw the time ratio of each encoding as a mark and its target as a bar, for training and for inference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...analysis.style import COLOURS, GREY, panels, save, styled
from .rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODES = {"train": "training", "infer": "inference"}
BLUE, RED = COLOURS[:2]


def chosen(rows: Sequence[Row]) -> list[Row]:
    """Return the rows to draw: layers of the first shape without padding, at one length.

    The length is 512 if a layer was measured at this length, otherwise the greatest length.

    Args:
        rows: Measurements of the benchmark.
    """
    layers = [row for row in rows if row.what == "layer" and not row.padded]
    layers = [row for row in layers if row.shape == layers[0].shape]
    lengths = {row.length for row in layers}
    return [row for row in layers if row.length == (512 if 512 in lengths else max(lengths))]


def draw(rows: Sequence[Row], folder: Path) -> bool:
    """Write the figure as bench.png and bench.pdf, and its data as bench.csv. Return False if no layer was measured.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = drawn(rows)
    if figure is None:
        return False
    save(figure, [_cells(row) for row in chosen(rows)], folder, "bench")
    return True


def drawn(rows: Sequence[Row]) -> Figure | None:
    """Return the figure, or None if no layer was measured.

    Raises:
        ImportError: matplotlib is not installed.
    """
    layers = chosen(rows)
    if not layers:
        return None
    names = list(dict.fromkeys(row.name + row.origin for row in layers))[::-1]
    titles = [f"{text}, {layers[0].shape} layer, n = {layers[0].length}" for text in MODES.values()]
    with styled():
        figure, axes = panels(titles, height=0.2 * len(names) + 1.0)
        for mode, panel in zip(MODES, axes, strict=True):
            _panel(panel, [row for row in layers if row.mode == mode], names)
        lows, highs = zip(*(panel.get_xlim() for panel in axes), strict=True)
        for panel in axes:
            panel.set_xlim(min(lows), max(highs))
        axes[1].tick_params(labelleft=False)  # as on the left
    return figure


def _panel(axes: Axes, rows: Sequence[Row], names: Sequence[str]) -> None:
    for row in rows:
        assert row.ratio is not None
        at = names.index(row.name + row.origin)
        colour, marker = (RED, "X") if row.holds is False else (BLUE, "s" if row.peer else "o")
        axes.errorbar(row.ratio, at, xerr=row.spread, fmt=marker, color=colour, markersize=4)
        if row.target is not None:
            axes.plot([row.target] * 2, [at - 0.35, at + 0.35], color=GREY, linestyle="-", linewidth=2)
    axes.axvline(1.0, color=GREY, linestyle="--", linewidth=1, zorder=0)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_xlabel("time relative to a layer without encoding\ngrey bar: target; cross: above the target")


def _cells(row: Row) -> dict[str, object]:
    facts = {"encoding": row.name + row.origin, "mode": row.mode, "shape": row.shape, "length": row.length}
    return {**facts, "ratio": row.ratio, "±": row.spread, "target": row.target}
