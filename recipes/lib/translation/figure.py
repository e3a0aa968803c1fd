"""A bar for each encoding, best on top, a dashed line at the one that the others are compared with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

BLUE, GREY = "#3b6ea5", "#a0a0a0"


def draw(
    values: Mapping[str, float], baseline: str, label: str, path: Path, within: Mapping[str, float] | None = None
) -> None:
    """`within`: half the width of each value's confidence interval."""
    names = sorted(values, key=lambda name: values[name])
    figure, axes = pyplot.subplots(figsize=(7, 0.45 * len(names) + 1.3))
    bars = axes.barh(
        names,
        [values[name] for name in names],
        xerr=[within[name] for name in names] if within else None,
        color=[GREY if name == baseline else BLUE for name in names],
        error_kw={"elinewidth": 1, "ecolor": "#404040"},
    )
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.axvline(values[baseline], color=GREY, linestyle="--", linewidth=1, zorder=0)
    axes.set_xlim(0, max(1.0, max(values.values())) * 1.09)  # room for the label of a full bar
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    partial = path.with_name(path.name + ".partial")
    figure.savefig(partial, format="png", dpi=150)
    pyplot.close(figure)
    os.replace(partial, path)
