"""The validation perplexities that fairseq logged, as a figure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from recipes.pretrain_mlm.curves import Curve


def draw(curves: Mapping[str, Curve], path: Path) -> None:
    """Perplexity of the validation text over updates, with the memory of training."""
    figure, axes = pyplot.subplots(figsize=(8, 5))
    colours = pyplot.get_cmap("tab20").colors
    for number, (name, curve) in enumerate(curves.items()):
        points = [(update, 2**bits) for update, bits in curve.valid or curve.train]
        axes.plot(*zip(*points, strict=True), label=name, linewidth=1.5, color=colours[number % len(colours)])
    axes.set_yscale("log")
    axes.set_xlabel("updates")
    axes.set_ylabel("validation perplexity")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    figure.tight_layout()
    partial = path.with_name(path.name + ".partial")
    figure.savefig(partial, format="png", dpi=150)
    pyplot.close(figure)
    os.replace(partial, path)
