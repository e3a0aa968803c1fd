"""Read the losses that fairseq logged, and draw them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot, ticker
from matplotlib.figure import Figure

from .package import whole

Points = list[tuple[int, float]]  # number of updates, and value (losses are in bits per piece)


class Curve(NamedTuple):
    """The losses of a training, and its median speed in words per second."""

    train: Points
    valid: Points
    speed: float | None


def read(log: Path) -> Curve:
    """Return the losses in a log of fairseq-train.

    A killed training repeats the updates after its last checkpoint, so that an update may be logged twice. Only the
    last loss of an update counts.
    """
    train: dict[int, float] = {}
    valid: dict[int, float] = {}
    speeds: list[float] = []
    for kind, facts in _lines(log):
        if kind == "train_inner":
            train[int(facts["num_updates"])] = float(facts["loss"])
            speeds.append(float(facts["wps"]))
        elif kind == "valid":
            valid[int(facts["valid_num_updates"])] = float(facts["valid_loss"])
    middle = sorted(speeds)[len(speeds) // 2] if speeds else None
    return Curve(sorted(train.items()), sorted(valid.items()), middle)


def figures(log: Path, name: str) -> Points:
    """Return the value that each validation logged as `name`, with its update. Skip validations without this value."""
    logged = [facts for kind, facts in _lines(log) if kind == "valid" and name in facts]
    return sorted({int(facts["valid_num_updates"]): float(facts[name]) for facts in logged}.items())


def _lines(log: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        head, mark, tail = line.rpartition(" | {")
        if mark and line.endswith("}"):
            try:
                yield head.rpartition(" | ")[2], json.loads("{" + tail)
            except ValueError:  # two processes wrote to the log at the same time
                continue


def draw(
    curves: Mapping[str, Points], label: str, path: Path, *, log: bool = False, floor: tuple[str, float] | None = None
) -> None:
    """Draw curves over the number of updates.

    Args:
        curves: The points of each curve by its name in the legend.
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
