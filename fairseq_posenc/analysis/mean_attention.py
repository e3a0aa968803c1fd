"""Average the attention weights of a layer over its heads and over texts.

Source: Figure 5 of Huang et al. 2020 (M1-M4) shows the first 50 tokens in layer 1 of M4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from .style import Row, cells, pairs, panels, styled
from .trained import Stack, first_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEAR = 5  # columns; the figure says how much of the attention stays within this distance


class MeanAttention(NamedTuple):
    """Hold the mean attention weights between the first tokens of the texts.

    Args:
        title: Name of the encoder or decoder, and the layer.
        weights: Attention weight of each query (row) for each key (column), [columns, columns].
        itself: Mean attention weight of a token on itself.
        near: Total weight of a query on itself and on the tokens at most NEAR positions away, averaged over queries.
        texts: Number of texts in the mean.
    """

    title: str
    weights: Tensor
    itself: float
    near: float
    texts: int


def data(stack: Stack, split: str, texts: int = 32, layer: int = 1, columns: int = 50) -> MeanAttention:
    """Return a layer's attention weights, averaged over its heads and over texts of at least `columns` tokens.

    Raises:
        FigureError: All texts have fewer than `columns` tokens.
    """
    seen = first_columns(stack, split, texts, layer, columns)
    means = torch.stack([item.weights.mean(0) for item in seen]).mean(0)
    distances = torch.arange(columns)[:, None] - torch.arange(columns)
    near = (means * (distances.abs() <= NEAR)).sum(1).mean()
    return MeanAttention(f"{stack.title}, layer {layer}", means, float(means.diag().mean()), float(near), len(seen))


def draw(item: MeanAttention) -> Figure:
    """Draw the attention weights as an image in which darker cells have less weight."""
    with styled():
        figure, (panel,) = panels([item.title], height=3.0)
        pairs(panel, item.weights.numpy(), limits=(0.0, float(item.weights.max())), label="attention weight")
    return figure


def rows(item: MeanAttention) -> list[Row]:
    """Return the attention weights as rows of a table."""
    return cells(item.weights, "query", "key", "weight")


def report(item: MeanAttention) -> list[str]:
    """Return a line with the mean attention of a token to itself and to nearby tokens."""
    return [
        f"{item.title}: averaged over {item.texts} texts, a token gives {item.itself:.1%} of its attention to itself "
        f"and {item.near:.1%} to the tokens at most {NEAR} positions away (including itself)."
    ]
