"""Draw the exact match of each model by length, and a heat map of all tasks and models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairseq_posenc.analysis import style
from fairseq_posenc.analysis.results import half_width
from recipes.lib.recipe import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DARK = 50.0  # cells with a smaller exact match are dark, so that their text is white
CELL = (0.62, 0.24)  # inches of a cell of the heat map


def draw_lengths(rows: Sequence[Row], folder: Path) -> None:
    """Draw a panel for each task: the mean exact match over seeds by length, with 95 % intervals as bands."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    with style.styled():
        figure, axes = style.panels(tasks, columns=2)
        for panel, name in zip(axes, tasks, strict=True):
            members = [row for row in rows if row["task"] == name and row["lengths"]]
            for row in members:
                _line(panel, row)
            if members:
                _mark_training(panel, members[0])
            panel.set_ylim(-3, 103)
            panel.set_ylabel("exact match (%)")
        handles = {
            label: line for panel in axes for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4 if len(tasks) > 1 else 3)
    points: list[style.Row] = [
        {"task": row["task"], "encoding": row["encoding"], "length": int(length), "exact": facts["exact"]}
        for row in rows
        for length, facts in row["lengths"].items()
    ]
    style.save(figure, points, folder, "lengths")


def _line(panel: Axes, row: Row) -> None:
    lengths = [int(length) for length in row["lengths"]]
    (line,) = panel.plot(lengths, [facts["exact"] for facts in row["lengths"].values()], label=row["encoding"])
    if row["seeds"] > 1:
        each = [facts["exact of seeds"] for facts in row["lengths"].values()]
        low, high = ([np.mean(values) + sign * half_width(values) for values in each] for sign in (-1, 1))
        panel.fill_between(lengths, np.clip(low, 0, 100), np.clip(high, 0, 100), color=line.get_color(), alpha=0.12)


def _mark_training(panel: Axes, row: Row) -> None:
    """Draw a dashed line at the maximum length in training, and label the axis of lengths."""
    trained = [int(length) for length, facts in row["lengths"].items() if facts["split"] == "within"]
    panel.axvline(max(trained), color=style.GREY, linestyle="--", linewidth=1)
    panel.set_xlabel(f"length in {row['unit']} (dashed: longest in training)")


def draw_tasks(rows: Sequence[Row], folder: Path) -> None:
    """Draw a heat map of the exact match beyond the lengths of training, with a row for each model."""
    tasks, models = ([*dict.fromkeys(row[column] for row in rows)] for column in ("task", "encoding"))
    values = {(row["encoding"], row["task"]): row["beyond"] for row in rows}
    table = np.array(
        [[np.nan if values.get((model, name)) is None else values[model, name] for name in tasks] for model in models]
    )
    with style.styled():
        figure, (axes,) = style.panels([""])
        figure.set_size_inches(max(4.0, 2.2 + CELL[0] * len(tasks)), 1.5 + CELL[1] * len(models))
        style.image(axes, table, limits=(0.0, 100.0), label="%")
        axes.set_title("Exact match beyond the lengths of training")
        axes.set_xticks(range(len(tasks)), tasks, rotation=45, ha="right")
        axes.set_yticks(range(len(models)), models)
        for (line, column), value in np.ndenumerate(table):
            text = "–" if np.isnan(value) else f"{value:.0f}"
            colour = "black" if np.isnan(value) or value >= DARK else "white"
            axes.text(column, line, text, ha="center", va="center", color=colour)
    cells: list[style.Row] = [
        {"encoding": row["encoding"], "task": row["task"], "exact": row["beyond"]} for row in rows
    ]
    style.save(figure, cells, folder, "tasks")
