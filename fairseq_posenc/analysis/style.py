"""Set the style of all figures: safe for colour-blind readers, and readable when printed in grey."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.quiet import warnings_only
from ..core.writing import whole

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray
    from torch import Tensor

#: The colours of Okabe and Ito, without yellow, which is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
#: Lines of one figure also differ in these, so that they can be told apart without colour.
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
MARKERS = "osD^vPX"
GREY = "#808080"
#: Its lightness grows with the value, also in grey.
COLOUR_MAP = "cividis"
LINE = 0.16  # inches of a line of a legend below the panels, which makes a figure higher
WIDTH = 3.4  # inches of a panel; two fill a page of text
#: Label of axes of distances, with the sign convention of all figures of checkpoints and data.
DISTANCE = "distance j - i (key minus query)"
SUFFIXES = ("png", "pdf", "csv")

Row = Mapping[str, object]


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style of the figures in a `with` block.

    Matplotlib logs only warnings in the block, because fairseq turns on the logs of all libraries.
    """
    with warnings_only("matplotlib"), warnings_only("fontTools"):
        import matplotlib
        from cycler import cycler

        count = len(COLOURS)  # the second lap combines the colours with other dashes, so that all lines differ
        lines = [LINES[(number + number // count) % count] for number in range(count**2)]
        settings = {
            "axes.prop_cycle": cycler(color=COLOURS * count) + cycler(linestyle=lines),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 9,
            "figure.constrained_layout.use": True,
            "font.size": 8,
            "image.cmap": COLOUR_MAP,
            "legend.frameon": False,
            "lines.linewidth": 1.3,
            "pdf.fonttype": 42,  # text stays text, which journals ask for
            "savefig.dpi": 200,
        }
        with matplotlib.rc_context(settings):
            yield


def panels(titles: Sequence[str], columns: int = 4, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel for each title, at most `columns` of them in a row."""
    from matplotlib.figure import Figure

    across = min(columns, len(titles))
    down = -(-len(titles) // across)
    width = WIDTH if across < 3 else 0.6 * WIDTH
    figure = Figure(figsize=(width * across, height * (1 if across < 3 else 0.7) * down))
    axes = figure.subplots(down, across, squeeze=False).flatten().tolist()
    for panel, title in zip(axes, titles, strict=False):
        panel.set_title(title)
    for panel in axes[len(titles) :]:
        panel.set_axis_off()
    return figure, axes[: len(titles)]


def image(
    axes: Axes,
    values: NDArray[np.floating],
    *,
    extent: tuple[float, float, float, float] | None = None,
    signed: bool = False,
    label: str = "",
    limits: tuple[float, float] | None = None,
    bar: bool = True,
) -> AxesImage:
    """Draw a matrix whose rows and columns are whole numbers, with a colour bar unless `bar` is false.

    If `signed` is true, the colour scale is symmetric about zero.
    """
    low, high = limits or (float(values.min()), float(values.max()))
    if signed:
        low, high = -max(-low, high), max(-low, high)
    drawn = axes.imshow(values, aspect="auto", interpolation="nearest", extent=extent, vmin=low, vmax=high)
    whole_ticks(axes)
    if bar:
        axes.figure.colorbar(drawn, ax=axes, label=label)
    return drawn


def pairs(axes: Axes, values: NDArray[np.floating], **settings: Any) -> AxesImage:
    """Draw a matrix with a row for each query and a column for each key (see `image` for the settings)."""
    axes.set_xlabel("key position j")
    axes.set_ylabel("query position i")
    return image(axes, values, **settings)


def cells(
    values: Tensor, row: str, column: str, value: str, first: tuple[int, int] = (0, 0), **same: object
) -> list[Row]:
    """Return a row of data for each cell of a matrix.

    Args:
        row, column, value: Names of the columns of the data for the row, the column and the value of a cell.
        first: Numbers of the first row and of the first column.
        same: Further columns, which have the same content in all rows of the data.
    """
    return [
        {**same, row: number, column: place, value: cell}
        for number, line in enumerate(values.tolist(), first[0])
        for place, cell in enumerate(line, first[1])
    ]


def legend_below(figure: Figure, panel: Axes) -> None:
    """Put the legend of a panel below all panels, for which the figure becomes higher."""
    handles, labels = panel.get_legend_handles_labels()
    figure.set_figheight(figure.get_figheight() + LINE * len(labels))
    figure.legend(handles, labels, loc="outside lower center")


def whole_ticks(axes: Axes) -> None:
    """Put the ticks of both axes at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def save(figure: Figure, rows: Sequence[Row], folder: Path, name: str) -> list[Path]:
    """Write a figure as NAME.png and NAME.pdf and its data as NAME.csv, each atomically, and return the paths."""
    paths = [folder / f"{name}.{suffix}" for suffix in SUFFIXES]
    for path in paths[:2]:
        save_picture(figure, path)
    with whole(paths[2]) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return paths


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure atomically, as PNG or PDF according to the suffix of the path."""
    with whole(path) as partial, styled():
        dates = {"CreationDate": None} if path.suffix == ".pdf" else {}  # the same data make the same file
        figure.savefig(partial, format=path.suffix[1:], metadata=dates)
