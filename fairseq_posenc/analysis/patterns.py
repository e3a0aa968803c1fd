"""Show, head by head, the part of the attention logits that depends on positions only.

Source: Chen et al. 2021 (DIET), Figures 4, 6 and 7. Many heads of DIET-ABS learn patterns that depend on the distance
alone. The shift score measures how much of a pattern depends on the distance alone. This project defines the score; the
paper does not use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from .style import Row, cells, pairs, panels, styled
from .trained import FigureError, Stack, position_part

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Patterns(NamedTuple):
    """Hold the position-only part of a layer's logits, [h, n, n], and the shift score of each head, [h]."""

    title: str
    values: Tensor
    scores: Tensor


def shift_scores(matrices: Tensor) -> Tensor:
    """Return the shift score of each matrix [h, n, n]: the share of its variance that its diagonals explain.

    The score is 1 - (mean squared deviation of each cell from the mean of its diagonal) / (variance of all cells).
    The score is 1 if each cell (i, j) depends on j - i only. A constant matrix has score 1.
    """
    matrices, n = matrices.double(), matrices.shape[-1]
    diagonal = (torch.arange(n) - torch.arange(n)[:, None] + n - 1).flatten()
    cells = matrices.flatten(1)
    sums = torch.zeros(len(cells), 2 * n - 1, dtype=torch.float64).index_add_(1, diagonal, cells)
    means = sums / diagonal.bincount()
    within = (cells - means[:, diagonal]).square().mean(1)
    variance = cells.var(1, correction=0)
    return torch.where(variance > 0, 1 - within / variance, torch.ones_like(variance))


def data(stack: Stack, layer: int = 1, length: int = 32, second_segment: int | None = None) -> Patterns:
    """Return the part of a layer's logits that depends on positions only, with the shift score of each head.

    Args:
        second_segment: Position at which a second segment begins; None for a single segment.

    Raises:
        FigureError: No part of the logits depends on positions only, or there is a second segment and the encoding does
            not read segments.
    """
    segments = None
    if second_segment is not None:
        if not stack.encoding.needs_segments:
            raise FigureError(
                f"{stack.name}: {stack.encoding.name} does not read segments. Leave out --second-segment."
            )
        segments = (torch.arange(length) >= second_segment).long()
    values = position_part(stack, layer, length, segments)
    return Patterns(f"{stack.title}, layer {layer}", values, shift_scores(values))


def draw(item: Patterns) -> Figure:
    """Draw each head's pattern in a panel; all panels share a colour bar."""
    with styled():
        titles = [f"head {head + 1}: shift score {score:.2f}" for head, score in enumerate(item.scores.tolist())]
        figure, axes = panels(titles)
        limit = float(item.values.abs().max())
        for panel, values in zip(axes, item.values, strict=True):
            drawn = pairs(panel, values.numpy(), limits=(-limit, limit), bar=False)
        figure.colorbar(drawn, ax=axes, label="position part of the logit")
        figure.suptitle(f"{item.title} (shift score 1: the pattern depends on j - i alone)", fontsize=9)
    return figure


def rows(item: Patterns) -> list[Row]:
    """Return the cells of all patterns as rows of a table."""
    return [
        row for head, matrix in enumerate(item.values, 1) for row in cells(matrix, "query", "key", "value", head=head)
    ]


def report(item: Patterns) -> list[str]:
    """Return a line of text with the shift scores of all heads."""
    return [f"{item.title}: shift scores {', '.join(f'{score:.2f}' for score in item.scores.tolist())}."]
