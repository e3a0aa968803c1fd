"""Draw prior-matrices.png and divergence.png for docs/reports-and-figures.md: `python docs/figures/fixed_encodings.py`.

They show the fixed encodings of distances in XL and GCDF, and how far apart the vectors of two distances are.

Source: Qu et al. 2021 (LFHC, GCDF), Figures 2, 5 and 6, sections 3.2 and A.2.

According to the paper, a good encoding R of distances has two properties. Both properties are about phi(i, j) = |R_i -
R_j|, the norm of the difference between two vectors of R (equation 10, and the captions of Figures 5 and 6). The text
of section A.2 calls the squared norm the divergence; we draw the norm itself.

1. phi(i + k, i) decreases as i grows: the same step changes R more at a near distance than at a far one.
2. phi(0, j) increases with j, and its slope decreases.

All computations are in float64. In float32, the steps of GCDF between far distances round to zero.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # because this file is a script

import torch
from torch import Tensor

from fairseq_posenc.analysis.style import WIDTH, image, panels, save_picture, styled
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.encodings.gcdf import GCDF
from fairseq_posenc.encodings.xl import XL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP = 5  # k of property 1
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
    """Return the vectors that `xl` or `gcdf` with default options has for these distances, [len(distances), dim].

    Sines and cosines alternate, as in equations (6) and (17). The model has all sines first, which only reorders the
    columns of the matrix that projects them.
    """
    stack = StackShape(layers=1, heads=1, dim=dim, max_length=2)
    with torch.device("meta"):  # the projection, which is not needed
        encoding = build(name, None, stack).members[name]
    assert isinstance(encoding, XL)
    fixed = encoding.encode(distances.double())
    if name == "xl":
        halves = torch.arange(dim + dim % 2).view(2, -1)  # the columns of the sines, and of the cosines
        fixed = fixed[:, halves.T.flatten()[:dim]]
    return fixed + encoding.options.lambda_ / 2 if isinstance(encoding, GCDF) else fixed  # it projects R - lambda / 2


def matrices(length: int = 512, dim: int = 512) -> dict[str, Tensor]:
    """Return each encoding's vectors for the distances from -(length - 1) to length - 1, [2 length - 1, dim]."""
    distances = torch.arange(1 - length, length)
    return {name: rows_of(name, distances, dim) for name in ENCODINGS}


def draw_matrices(data: dict[str, Tensor]) -> Figure:
    """Draw each matrix as an image."""
    with styled():
        figure, axes = panels(["xl", "gcdf"])
        for panel, values in zip(axes, data.values(), strict=True):
            longest = len(values) // 2
            image(panel, values.numpy(), extent=(0.5, values.shape[1] + 0.5, longest + 0.5, -longest - 0.5))
            panel.set_xlabel("dimension")
            panel.set_ylabel("distance i - j (query minus key)")
    return figure


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
        left.set_xlabel("distance j")
        left.set_ylabel("$|R_j - R_0|$")
        right.set_xlabel("distance i")
        right.set_ylabel(f"$|R_{{i+{STEP}}} - R_i|$ (logarithmic)")
        right.set_yscale("log")
        for panel in (left, right):
            panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
    return figure


if __name__ == "__main__":
    save_picture(draw_matrices(matrices()), Path(__file__).with_name("prior-matrices.png"))
    save_picture(draw_divergence(divergence()), Path(__file__).with_name("divergence.png"))
