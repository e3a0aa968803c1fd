"""Draw the exact match of each model by length (lengths.png), and a heat map of all tasks and models (tasks.png)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from fairseq_posenc.analysis import style
from recipes.lib.runs import Model, finished

from .tasks.registry import TASKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DARK = 50.0  # cells with a smaller exact match are dark, so that their text is white
COLUMNS = ("task", "encoding", "seed", "split", "length", "exact")  # of lengths.csv
CELL = (0.62, 0.24)  # inches of a cell of the heat map


class Row(NamedTuple):
    """Hold the scores of a task and an encoding, one for each seed."""

    task: str
    encoding: str
    seeds: list[Model]

    def lengths(self, split: str) -> dict[int, list[float]]:
        """Return the exact match of each seed for each length of a test set."""
        names = [name for name in self.seeds[0].scores if name.startswith(f"{split}.")]
        return {int(name.partition(".")[2]): [seed.scores[name] for seed in self.seeds] for name in names}

    @property
    def is_joined(self) -> bool:
        """Return whether the lengths of `beyond` follow those of `within`, so that one line can show both."""
        return max(self.lengths("within")) < min(self.lengths("beyond"))


def read(run: Path) -> list[Row]:
    """Return the scores of a run's models, without those that failed."""
    rows: dict[tuple[str, str], Row] = {}
    for model in finished(run):
        rows.setdefault((model.item, model.encoding), Row(model.item, model.encoding, [])).seeds.append(model)
    return [*rows.values()]


def draw_lengths(rows: Sequence[Row], folder: Path) -> None:
    """Draw a panel for each task: the mean exact match over seeds by length, with the range of all seeds as a band.

    Encodings with fewer seeds than others are left out.
    """
    most = max(len(row.seeds) for row in rows)
    tasks = list(dict.fromkeys(row.task for row in rows))
    with style.styled():
        figure, axes = style.panels(tasks, columns=2)
        for panel, name in zip(axes, tasks, strict=True):
            members = [row for row in rows if row.task == name]
            for row in members:
                if len(row.seeds) == most:
                    draw_line(panel, row)
            label_lengths(panel, members[0])
            panel.set_ylim(-3, 103)
            panel.set_ylabel("exact match (%)")
        handles = {
            label: line for panel in axes for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4 if len(tasks) > 1 else 3)
    points: list[style.Row] = [
        dict(zip(COLUMNS, (row.task, row.encoding, model.seed, split, length, value), strict=True))
        for row in rows
        for split in ("within", "beyond")
        for length, values in row.lengths(split).items()
        for model, value in zip(row.seeds, values, strict=True)
    ]
    style.save(figure, points, folder, "lengths")


def draw_line(panel: Axes, row: Row) -> None:
    shown = row.lengths("within") | row.lengths("beyond") if row.is_joined else row.lengths("beyond")
    (line,) = panel.plot([*shown], [*map(mean, shown.values())], label=row.encoding, marker=".")
    panel.fill_between(
        [*shown], [*map(min, shown.values())], [*map(max, shown.values())], color=line.get_color(), alpha=0.12
    )


def label_lengths(panel: Axes, row: Row) -> None:
    """Label the axis of lengths. If the curves show both test sets, mark the maximum length in training by a line."""
    if row.is_joined:
        panel.axvline(max(row.lengths("within")), color=style.GREY, linestyle="--", linewidth=1)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    meaning = "dashed: longest in training" if row.is_joined else "only the test set beyond"
    panel.set_xlabel(f"length in {TASKS[row.task].unit} ({meaning})")


def draw_tasks(rows: Sequence[Row], folder: Path) -> None:
    """Draw a heat map of the exact match on the test set `beyond`, with a row for each encoding."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    labels = list(dict.fromkeys(row.encoding for row in rows))
    values = {(row.encoding, row.task): mean(seed.scores["beyond"] for seed in row.seeds) for row in rows}
    table = np.array([[values.get((label, name), np.nan) for name in tasks] for label in labels])
    with style.styled():
        figure, (axes,) = style.panels([""])
        figure.set_size_inches(max(4.0, 2.2 + CELL[0] * len(tasks)), 1.5 + CELL[1] * len(labels))
        style.image(axes, table, limits=(0.0, 100.0), label="%")
        axes.set_title("Exact match on the test set beyond")
        axes.set_xticks(range(len(tasks)), tasks, rotation=45, ha="right")
        axes.set_yticks(range(len(labels)), labels)
        for (line, column), value in np.ndenumerate(table):
            text = "–" if np.isnan(value) else f"{value:.0f}"
            colour = "black" if np.isnan(value) or value >= DARK else "white"
            axes.text(column, line, text, ha="center", va="center", color=colour)
    cells: list[style.Row] = [
        {"encoding": label, "task": name, "exact": round(value, 2)} for (label, name), value in values.items()
    ]
    style.save(figure, cells, folder, "tasks")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    run = parser.parse_args().run
    rows = read(run)
    draw_lengths(rows, run)
    draw_tasks(rows, run)


if __name__ == "__main__":
    main()
