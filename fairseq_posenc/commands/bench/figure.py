"""Draw the ratio of each encoding as a mark, with a bar at its target, for training and for inference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.writing import whole
from .rows import Row

BLUE, GREY, RED = "#3b6ea5", "#a0a0a0", "#b5403a"
MODES = ("train", "infer")


def chosen(rows: Sequence[Row]) -> list[Row]:
    """Return the layers of the first shape without padding, at length 512 or else at the longest length."""
    layers = [row for row in rows if row.what == "layer" and not row.padded]
    layers = [row for row in layers if row.shape == layers[0].shape]
    lengths = {row.length for row in layers}
    return [row for row in layers if row.length == (512 if 512 in lengths else max(lengths))]


def draw(rows: Sequence[Row], path: Path) -> bool:
    """Draw the figure and return whether there was anything to draw.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib

    layers = chosen(rows)
    if not layers:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(row.name + row.origin for row in layers))[::-1]
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 0.24 * len(names) + 1.4), sharey=True, sharex=True)
    for mode, axes in zip(MODES, panels, strict=True):
        _panel(axes, [row for row in layers if row.mode == mode], names)
        axes.set_title(f"{mode}, {layers[0].shape} layer, n = {layers[0].length}", fontsize=9)
    figure.tight_layout()
    with whole(path) as partial:
        figure.savefig(partial, format="png", dpi=130)
    pyplot.close(figure)
    return True


def _panel(axes: Any, rows: Sequence[Row], names: Sequence[str]) -> None:
    for row in rows:
        at = names.index(row.name + row.origin)
        color = RED if row.holds is False else BLUE
        axes.errorbar(row.ratio, at, xerr=row.spread, fmt="s" if row.peer else "o", color=color, markersize=4)
        if row.target is not None:
            axes.plot([row.target] * 2, [at - 0.35, at + 0.35], color=GREY, linewidth=2)
    axes.axvline(1.0, color=GREY, linestyle="--", linewidth=1, zorder=0)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_xlabel("time, relative to no encoding (bar: target)", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
