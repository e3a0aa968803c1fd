"""Plot the fixed distance encodings of XL and GCDF, and how far apart the vectors of two distances are.

Source: Qu et al. 2021 (LFHC, GCDF), Figures 2, 5 and 6, sections 3.2 and A.2.

According to the paper, a good encoding R of distances has two properties. Both properties are about phi(i, j) = |R_i -
R_j|, the norm of the difference between two vectors of R:

1. phi(i + k, i) decreases as i grows: the same step changes R more at a near distance than at a far one.
2. phi(0, j) increases with j, and its slope decreases.

All computations are in float64. In float32, the steps of GCDF between far distances round to zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ..encodings import StackShape, build
from ..encodings.gcdf import GCDF
from ..encodings.xl import XL
from .style import WIDTH, Row, image, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP = 5  # k of property 1, in the report of the checks
ROUNDING = 1e-12  # phi(i + k, i) of sinusoids is constant but for rounding, so smaller changes are none
ENCODINGS = ("xl", "gcdf")


class Divergence(NamedTuple):
    """Hold phi, the norm of the difference of two distances' vectors, and how often phi violates each property.

    Args:
        from_zero: phi(0, j) for j = 0, 1, ..., n - 1.
        by_start: phi(i + STEP, i) for i = 0, 1, ..., n - 1 - STEP.
        not_increasing: Number of steps j -> j + 1 at which phi(0, j) does not grow (property 2).
        not_concave: Number of steps at which the slope of phi(0, j) does not shrink (property 2).
        not_attenuated: Number of steps i -> i + 1 at which phi(i + STEP, i) does not shrink (property 1).
    """

    from_zero: Tensor
    by_start: Tensor
    not_increasing: int
    not_concave: int
    not_attenuated: int


def rows_of(name: str, distances: Tensor, dim: int) -> Tensor:
    """Return the vectors that `xl` or `gcdf` with default options has for these distances, [len(distances), dim]."""
    stack = StackShape(layers=1, heads=1, dim=dim, max_length=2)
    with torch.device("meta"):  # the projection, which is not needed
        encoding = build(name, None, stack).members[name]
    assert isinstance(encoding, XL)
    fixed = encoding.encode(distances.double())
    return fixed + encoding.options.lambda_ / 2 if isinstance(encoding, GCDF) else fixed  # it projects R - lambda / 2


def matrices(length: int = 512, dim: int = 512) -> dict[str, Tensor]:
    """Return each encoding's vectors for the distances from -(length - 1) to length - 1, [2 length - 1, dim]."""
    distances = torch.arange(1 - length, length)
    return {name: rows_of(name, distances, dim) for name in ENCODINGS}


def draw_matrices(data: dict[str, Tensor]) -> Figure:
    """Draw each matrix as an image."""
    with styled():
        figure, axes = panels(list(data))
        for panel, values in zip(axes, data.values(), strict=True):
            longest = len(values) // 2
            image(panel, values.numpy(), extent=(0.5, values.shape[1] + 0.5, longest + 0.5, -longest - 0.5))
            panel.set_xlabel("dimension")
            panel.set_ylabel("distance i - j")
    return figure


def matrix_rows(data: dict[str, Tensor]) -> list[Row]:
    """Return the cells of the matrices as rows of a table."""
    return [
        {"encoding": name, "distance": row - len(values) // 2, "dimension": column + 1, "value": value}
        for name, values in data.items()
        for row, cells in enumerate(values.tolist())
        for column, value in enumerate(cells)
    ]


def divergence(length: int = 1024, dim: int = 512) -> dict[str, Divergence]:
    """Return phi of each encoding for the distances 0 to length - 1, and how often phi violates each property."""
    return {name: _divergence(rows_of(name, torch.arange(length), dim)) for name in ENCODINGS}


def _divergence(rows: Tensor) -> Divergence:
    from_zero = (rows - rows[0]).norm(dim=1)
    by_start = (rows[STEP:] - rows[:-STEP]).norm(dim=1)
    slope = from_zero.diff()
    return Divergence(
        from_zero,
        by_start,
        not_increasing=int((slope <= 0).sum()),
        not_concave=int((slope.diff() >= 0).sum()),
        not_attenuated=int((by_start.diff() > -ROUNDING * by_start.max()).sum()),
    )


def draw_divergence(data: dict[str, Divergence]) -> Figure:
    """Draw phi(0, j) and phi(i + STEP, i), with the number of violations of each property."""
    with styled():
        figure, (left, right) = panels(["distance from $R_0$", f"distance between $R_i$ and $R_{{i+{STEP}}}$"])
        figure.set_size_inches(2 * WIDTH, 2.9)
        for name, curve in data.items():
            faults = f"not increasing {curve.not_increasing}×, not concave {curve.not_concave}×"
            left.plot(curve.from_zero.numpy(), label=f"{name}: {faults}")
            right.plot(curve.by_start.numpy(), label=f"{name}: not decreasing {curve.not_attenuated}×")
        left.set_xlabel("j")
        left.set_ylabel("$|R_j - R_0|$")
        right.set_xlabel("i")
        right.set_ylabel(f"$|R_{{i+{STEP}}} - R_i|$ (logarithmic)")
        right.set_yscale("log")
        for panel in (left, right):
            panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
    return figure


def divergence_rows(data: dict[str, Divergence]) -> list[Row]:
    """Return the points of the curves as rows of a table; the last STEP distances have no phi(i + STEP, i)."""
    return [
        {
            "encoding": name,
            "distance": place,
            "from zero": value,
            f"to distance + {STEP}": float(curve.by_start[place]) if place < len(curve.by_start) else "",
        }
        for name, curve in data.items()
        for place, value in enumerate(curve.from_zero.tolist())
    ]


def report(data: dict[str, Divergence]) -> list[str]:
    """Return a line of text for each encoding with the number of violations of each property."""
    return [
        f"{name}: phi(i+{STEP}, i) fails to decrease at {curve.not_attenuated} of {len(curve.by_start) - 1} steps "
        f"(property 1). phi(0, j) fails to increase at {curve.not_increasing} of {len(curve.from_zero) - 1} steps, and "
        f"its slope fails to decrease at {curve.not_concave} of {len(curve.from_zero) - 2} steps (property 2)."
        for name, curve in data.items()
    ]
