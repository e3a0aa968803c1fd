"""Plot the cosine similarities of all pairs of position vectors that an encoding adds to the input.

Source: Chen et al. 2021 (DIET), Figure 5: BERT's position vectors differ from each other. In a model that also uses
    DIET-ABS, the position vectors at the input are nearly equal, because every head already receives the positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from .style import LINES, Row, legend_below, panels, styled
from .trained import FigureError, Stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 100


class Similarity(NamedTuple):
    """Hold the cosines of all pairs of n position vectors, [n (n - 1) / 2]; the title names the encoder or decoder."""

    title: str
    cosines: Tensor


@torch.no_grad()
def data(stack: Stack, length: int | None = None) -> Similarity:
    """Return the cosine similarities between the vectors that the encoding adds to the input, for all position pairs.

    Args:
        length: Number of positions; None for the maximum training length.

    Raises:
        FigureError: The encoding adds no vectors to the inputs.
    """
    encoding = stack.encoding
    n = encoding.stack.max_length if length is None else length
    segments = torch.zeros(1, n, dtype=torch.long) if encoding.needs_segments else None
    where = encoding.positions(torch.arange(n)[None] + 1, pad=0, boundaries=(0,), segments=segments)
    vectors = encoding.embed(torch.zeros(1, n, encoding.stack.dim), where)[0].double()
    if not vectors.any():
        raise FigureError(
            f"{stack.name}: {encoding.name} adds no vectors at the input. Choose a model whose encoding adds vectors "
            "there, such as learned or learned+diet-abs."
        )
    unit = torch.nn.functional.normalize(vectors, dim=1)
    first, second = torch.triu_indices(n, n, 1)
    return Similarity(stack.title, (unit @ unit.t())[first, second])


def draw(items: list[Similarity]) -> Figure:
    """Draw a histogram of the cosine similarities of each model."""
    with styled():
        figure, (panel,) = panels([""])
        for number, item in enumerate(items):
            panel.hist(
                item.cosines.numpy(),
                bins=BINS,
                range=(-1, 1),
                density=True,
                histtype="step",
                linestyle=LINES[number % len(LINES)],
                label=item.title,
            )
        panel.set_xlabel("cosine similarity of two positions")
        panel.set_ylabel("density")
        legend_below(figure, panel)
    return figure


def rows(items: list[Similarity]) -> list[Row]:
    """Return the bins of the histograms as rows."""
    return [
        {"model": item.title, "from": -1 + 2 * number / BINS, "to": -1 + 2 * (number + 1) / BINS, "pairs": int(pairs)}
        for item in items
        for number, pairs in enumerate(torch.histc(item.cosines, BINS, -1, 1).tolist())
    ]


def report(items: list[Similarity]) -> list[str]:
    """Return a line of text for each model with the mean and the standard deviation of its cosines."""
    return [f"{item.title}: mean cosine {item.cosines.mean():.3f} ± {item.cosines.std():.3f}." for item in items]
