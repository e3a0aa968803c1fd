"""The figure of the demo: BLEU by encoding, best on top."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

BLUE, GREY = "#3b6ea5", "#a0a0a0"


def draw(bleu: dict[str, float], path: Path) -> None:
    names = sorted(bleu, key=lambda name: bleu[name])
    figure, axes = pyplot.subplots(figsize=(7, 0.45 * len(names) + 1.3))
    bars = axes.barh(names, [bleu[n] for n in names], color=[GREY if n == "none" else BLUE for n in names])
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.axvline(bleu["none"], color=GREY, linestyle="--", linewidth=1, zorder=0)
    axes.set_xlim(0, 108)  # room for the label of a full bar
    axes.set_xlabel("sacreBLEU on the test set (dashed: without positions)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    partial = path.with_name(path.name + ".partial")
    figure.savefig(partial, format="png", dpi=150)
    pyplot.close(figure)
    os.replace(partial, path)
