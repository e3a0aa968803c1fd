"""Draw training curves and scores by length in the project's style, and read curves from logs of fairseq-train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_posenc.analysis.style import GREY, MARKERS, Row, panels, save, styled
from fairseq_posenc.core.training_log import Points, read_losses, read_validations

from .runs import training_log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (6.8, 4.0)  # inches, the width of a page of text
BESIDE = 0.06  # distance between the intervals of two systems, as a part of the distance between groups


def of_run(run: Path, names: Mapping[str, str], score: str, floor: Mapping[str, float]) -> None:
    """Draw the validation scores in the training logs of a run's models to curves.png, curves.pdf and curves.csv.

    Args:
        names: Names of the models, and how the figure calls them.
        score: Name of the logged score; `loss`, `perplexity` (2 to the power of the loss), or `none` for no figure.
        floor: Labels and heights of dashed horizontal lines.
    """
    curves = {}
    for name, label in names.items():
        log = training_log(run, name)
        points = _points(log, score) if log.exists() else []
        if points:
            curves[label] = points
    if curves:
        axis = {"loss": "validation loss, bits", "perplexity": "validation perplexity"}.get(
            score, f"validation {score}"
        )
        draw(curves, axis, run / "curves.png", log=score == "perplexity", floor=next(iter(floor.items()), None))


def _points(log: Path, score: str) -> Points:
    if score == "perplexity":
        return [(updates, 2.0**loss) for updates, loss in read_losses(log).valid]
    return read_losses(log).valid if score == "loss" else read_validations(log, score)


def draw(
    curves: Mapping[str, Points], label: str, path: Path, *, log: bool = False, floor: tuple[str, float] | None = None
) -> None:
    """Draw curves over the number of updates, as PNG and PDF, and write their points as CSV.

    Args:
        curves: The points of each curve, keyed by its name in the legend.
        label: Label of the vertical axis.
        path: PNG file to write; the PDF and CSV files have the same name with other suffixes.
        log: Whether the vertical axis is logarithmic.
        floor: Label and height of a dashed horizontal line.
    """
    with styled():
        from matplotlib import ticker

        figure, axes = _empty()
        for name, curve in curves.items():
            axes.plot(*zip(*curve, strict=True), label=name)
        if floor:
            name, height = floor
            axes.axhline(height, color=GREY, linestyle="--", linewidth=1)
            axes.annotate(name, (1, height), xycoords=("axes fraction", "data"), ha="right", va="bottom")
        if log:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 2.5, 3, 4, 5, 7)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.set_xlabel("updates")
        axes.set_ylabel(f"{label} (logarithmic)" if log else label)
        _legend(figure)
    points = [{"curve": name, "updates": x, label: y} for name, curve in curves.items() for x, y in curve]
    save(figure, points, path.parent, path.stem)


def draw_groups(
    groups: Sequence[str],
    curves: Mapping[str, Sequence[float | None]],
    labels: tuple[str, str],
    path: Path,
    *,
    limit: tuple[str, int] | None = None,
    within: Mapping[str, Sequence[float | None]] | None = None,
) -> None:
    """Draw each system's scores by group of the data (such as a range of lengths) as PNG and PDF, and write a CSV file.

    Args:
        groups: Names of the groups, in order.
        curves: Scores of each system, one for each group, keyed by the name of the system. A score of None means that
            the system refused the group; the figure shows a cross at the bottom instead.
        labels: Labels of the horizontal and the vertical axis.
        path: PNG file to write.
        limit: Label of a dashed vertical line, and the number of groups to its left.
        within: Half the widths of the scores' 95 % intervals, keyed like `curves`; None where an interval is unknown.
    """
    with styled():
        figure, axes = _empty()
        for number, (name, scores) in enumerate(curves.items()):
            aside = BESIDE * (number - (len(curves) - 1) / 2) if within else 0.0
            widths = (within or {}).get(name, [None] * len(scores))
            _scores(axes, name, scores, MARKERS[number % len(MARKERS)], widths, aside)
        if limit:
            text, count = limit
            axes.axvline(count - 0.5, color=GREY, linestyle="--", linewidth=1)
            place = axes.get_xaxis_transform()
            # Above the frame, no curve can cross the label.
            axes.text(count - 0.5, 1.01, text, transform=place, ha="center", va="bottom")
        axes.set_xticks(range(len(groups)), groups)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(f"{labels[1]} (bar: 95 % interval)" if within else labels[1])
        _legend(figure)
    rows: list[Row] = [
        {"system": name, labels[0]: group.replace("\n", " "), labels[1]: "refused" if score is None else score}
        | ({"±": "" if within[name][place] is None else within[name][place]} if within else {})
        for name, scores in curves.items()
        for place, (group, score) in enumerate(zip(groups, scores, strict=True))
    ]
    save(figure, rows, path.parent, path.stem)


def _scores(
    axes: Axes, name: str, scores: Sequence[float | None], marker: str, widths: Sequence[float | None], aside: float
) -> None:
    """Draw the scores of a system, with a bar where an interval is known; `aside` moves the points along the axis."""
    refused = [place for place, score in enumerate(scores) if score is None]
    label = f"{name} (×: refused sentences)" if refused else name
    places = [place + aside for place in range(len(scores))]
    values = [nan if score is None else score for score in scores]  # the line has a gap there
    (line,) = axes.plot(places, values, marker=marker, markersize=4, label=label)
    colour = line.get_color()
    known = [nan if width is None else width for width in widths]
    axes.errorbar(places, values, known, fmt="none", ecolor=colour, elinewidth=0.8, capsize=2)
    if refused:
        bottom = axes.get_xaxis_transform()
        shown = [places[place] for place in refused]
        axes.plot(shown, [0] * len(refused), "x", color=colour, markersize=7, transform=bottom, clip_on=False)


def _empty() -> tuple[Figure, Axes]:
    figure, (axes,) = panels([""])
    figure.set_size_inches(SIZE)
    return figure, axes


def _legend(figure: Figure) -> None:
    """Put the legend below the axes, where it hides no curve, however many curves there are."""
    figure.legend(loc="outside lower center", ncols=3)
