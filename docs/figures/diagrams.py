"""Draw diagrams.png for docs/reports-and-figures.md, which shows the row of a table that each relative distance reads.

Sources: Figure 1 of Qu et al. 2021 (LFHC, GCDF) shows Shaw and LFHC with k = 2, layer by layer. Figure 3 of Huang et
al. 2020 (M1-M4) shows relative positions with k = 3.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # because this file is a script

import torch
from torch import Tensor

from fairseq_posenc.analysis.style import DISTANCE, WIDTH, panels, save_picture, styled
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.encodings.lfhc import LFHC
from fairseq_posenc.positions import Positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def ranges(clip: int = 2, layers: int = 3, columns: int = 13) -> dict[str, Tensor]:
    """Return which row of the table each distance j - i reads in each layer of `shaw` and of `lfhc`.

    Returns:
        A matrix [layers, distances] for each encoding, with distance 0 in the middle column. The rows of the table are
        counted from its middle row: they have the numbers -clip to clip.
    """
    stack = StackShape(layers=layers, heads=1, dim=2, max_length=columns + 1, causal=False)
    distances = torch.arange(columns) - columns // 2
    lfhc = build("lfhc", f"clip={clip}", stack).members["lfhc"]
    assert isinstance(lfhc, LFHC)
    coarse = [lfhc.row_in_layer(distances, layer) - clip for layer in range(1, layers + 1)]
    return {"shaw": distances.clamp(-clip, clip).expand(layers, -1), "lfhc": torch.stack(coarse)}


def clipping(clip: int = 3, tokens: int = 6) -> Tensor:
    """Return clip(j - i, -k, k) of all pairs of tokens, [tokens, tokens]."""
    where = Positions.of_tokens(torch.ones(1, tokens, dtype=torch.long), pad=0)
    return where.delta.clamp(-clip, clip)


def draw() -> Figure:
    """Draw the three diagrams as the panels of one figure."""
    with styled():
        titles = ["Shaw, k = 2: row of each distance", "LFHC, k = 2", "clipped distances, k = 3: row of each pair"]
        figure, (top, middle, clipped) = panels(titles)
        figure.set_size_inches(3 * WIDTH, 2.4)
        both = ranges()
        _cells(top, both["shaw"], DISTANCE, "layer", -(both["shaw"].shape[1] // 2), 1)
        _cells(middle, both["lfhc"], DISTANCE, "layer", -(both["lfhc"].shape[1] // 2), 1)
        _cells(clipped, clipping(), "key j", "query i", 0, 0)
    return figure


def _cells(axes: Axes, values: Tensor, x: str, y: str, first_x: int, first_y: int) -> None:
    """Draw a matrix of small integers as an image, with the number in each cell."""
    down, across = values.shape
    low, high = int(values.min()), int(values.max())
    axes.imshow(values.numpy(), vmin=2 * low, vmax=2 * high, aspect="auto")
    for row in range(down):
        for column in range(across):
            value = int(values[row, column])
            colour = "black" if value > 0 else "white"  # the cells of large values are light
            axes.text(column, row, str(value), ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(range(across), [str(first_x + number) for number in range(across)], fontsize=7)
    axes.set_yticks(range(down), [str(first_y + number) for number in range(down)], fontsize=7)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


if __name__ == "__main__":
    save_picture(draw(), Path(__file__).with_name("diagrams.png"))
