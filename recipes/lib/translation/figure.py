"""Draw a bar for each encoding, the best on top, and a dashed line at the value of the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes

from recipes.lib.curves import save

BLUE, GREY = "#3b6ea5", "#a0a0a0"


@dataclass
class Bars:
    """The bars of a panel.

    Attributes:
        values: Value of each bar, keyed by the name of the bar.
        baseline: Name of the value at the dashed line.
        within: Half the width of each value's confidence interval, keyed by name; empty without intervals.
    """

    values: dict[str, float]
    baseline: str
    within: dict[str, float]


def draw(
    values: Mapping[str, float], baseline: str, label: str, path: Path, within: Mapping[str, float] | None = None
) -> None:
    """Draw one panel without a title."""
    draw_panels({"": Bars({**values}, baseline, {**(within or {})})}, label, path)


def draw_panels(panels: Mapping[str, Bars], label: str, path: Path) -> None:
    """Draw panels side by side with their titles; a single panel has no title."""
    count = max(1, len(panels))
    rows = max((len(bars.values) for bars in panels.values()), default=1)
    figure, axes = pyplot.subplots(
        1, count, figsize=(7 if count == 1 else 4.5 * count, 0.45 * rows + 1.3), squeeze=False
    )
    for panel, (title, bars) in zip(axes[0], panels.items(), strict=False):
        _panel(panel, bars, label)
        if count > 1:
            panel.set_title(title, fontsize=10)
    save(figure, path)


def _panel(axes: Axes, bars: Bars, label: str) -> None:
    values, within = bars.values, bars.within
    names = sorted(values, key=lambda name: values[name])
    drawn = axes.barh(
        names,
        [values[name] for name in names],
        xerr=[within[name] for name in names] if within else None,
        color=[GREY if name == bars.baseline else BLUE for name in names],
        error_kw={"elinewidth": 1, "ecolor": "#404040"},
    )
    axes.bar_label(drawn, fmt="%.1f", padding=3)
    axes.axvline(values[bars.baseline], color=GREY, linestyle="--", linewidth=1, zorder=0)
    axes.set_xlim(0, max(1.0, max(values.values())) * 1.09)  # leave room for the label of the longest bar
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)
