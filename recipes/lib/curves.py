"""Draw curves of training, and read them from the logs of fairseq-train."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot, ticker
from matplotlib.figure import Figure

from .package import Curve, Points, whole
from .package import read_losses as read
from .package import read_validations as figures

__all__ = ["Curve", "Points", "draw", "figures", "read", "save"]


def draw(
    curves: Mapping[str, Points], label: str, path: Path, *, log: bool = False, floor: tuple[str, float] | None = None
) -> None:
    """Draw curves over the number of updates.

    Args:
        curves: The points of each curve, keyed by its name in the legend.
        label: Label of the vertical axis.
        path: PNG file to write.
        log: Use a logarithmic vertical axis.
        floor: Name and height of a dashed horizontal line.
    """
    figure, axes = pyplot.subplots(figsize=(8, 5))
    colours = pyplot.get_cmap("tab20").colors
    for number, (name, curve) in enumerate(curves.items()):
        axes.plot(*zip(*curve, strict=True), label=name, linewidth=1.5, color=colours[number % len(colours)])
    if floor:
        name, height = floor
        axes.axhline(height, color="#a0a0a0", linestyle="--", linewidth=1)
        axes.annotate(name, (1, height), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 2.5, 3, 4, 5, 7)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("updates")
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a PNG file, which appears only when it is complete."""
    figure.tight_layout()
    with whole(path) as partial:
        figure.savefig(partial, format="png", dpi=150)
    pyplot.close(figure)
