"""Draw the exact match of each model by length, and a heat map of all tasks and models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator

from fairseq_posenc.analysis import style
from recipes.lib.recipe import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DARK = 50.0  # cells with a smaller exact match are dark, so that their text is white
CELL = (0.62, 0.24)  # inches of a cell of the heat map


def draw_lengths(rows: Sequence[Row], folder: Path) -> None:
    """Draw a panel for each task: the mean exact match over seeds by length, with the range of all seeds as a band."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    with style.styled():
        figure, axes = style.panels(tasks, columns=2)
        for panel, name in zip(axes, tasks, strict=True):
            members = [row for row in rows if row["task"] == name and row["seeds"]]
            for row in members:
                _line(panel, row)
            if members:
                _label_lengths(panel, members[0])
            panel.set_ylim(-3, 103)
            panel.set_ylabel("exact match (%)")
        handles = {
            label: line for panel in axes for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4 if len(tasks) > 1 else 3)
    points: list[style.Row] = [
        {
            "task": row["task"],
            "encoding": row["encoding"],
            "split": split,
            "length": int(length),
            "exact": facts["exact"],
        }
        for row in rows
        for split, lengths in row["lengths"].items()
        for length, facts in lengths.items()
    ]
    style.save(figure, points, folder, "lengths")


def _joined(row: Row) -> bool:
    """Return whether the lengths of `beyond` follow those of `within`, so that one line can show both."""
    within, beyond = (map(int, row["lengths"][split]) for split in ("within", "beyond"))
    return max(within) < min(beyond)


def _line(panel: Axes, row: Row) -> None:
    shown = row["lengths"]["within"] | row["lengths"]["beyond"] if _joined(row) else row["lengths"]["beyond"]
    lengths = [int(length) for length in shown]
    (line,) = panel.plot(lengths, [facts["exact"] for facts in shown.values()], label=row["encoding"], marker=".")
    each = [facts["exact of seeds"] for facts in shown.values()]
    panel.fill_between(lengths, [*map(min, each)], [*map(max, each)], color=line.get_color(), alpha=0.12)


def _label_lengths(panel: Axes, row: Row) -> None:
    """Label the axis of lengths. If the curves show both test sets, mark the maximum length in training by a line."""
    if _joined(row):
        panel.axvline(max(map(int, row["lengths"]["within"])), color=style.GREY, linestyle="--", linewidth=1)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    meaning = "dashed: longest in training" if _joined(row) else "only the test set beyond"
    panel.set_xlabel(f"length in {row['unit']} ({meaning})")


def draw_tasks(rows: Sequence[Row], folder: Path) -> None:
    """Draw a heat map of the exact match on the test set `beyond`, with a row for each model."""
    tasks, models = ([*dict.fromkeys(row[column] for row in rows)] for column in ("task", "encoding"))
    values = {(row["encoding"], row["task"]): row["beyond"] for row in rows}
    table = np.array(
        [[np.nan if values.get((model, name)) is None else values[model, name] for name in tasks] for model in models]
    )
    with style.styled():
        figure, (axes,) = style.panels([""])
        figure.set_size_inches(max(4.0, 2.2 + CELL[0] * len(tasks)), 1.5 + CELL[1] * len(models))
        style.image(axes, table, limits=(0.0, 100.0), label="%")
        axes.set_title("Exact match on the test set beyond")
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
