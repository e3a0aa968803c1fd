"""Draw heat maps of an encoding's learned numbers: its table, or its bias for pairs of absolute positions.

Source: Figure 4 of Huang et al. 2020 (M1-M4) shows the rows of M4 for the distances -50 to 50 in layer 1, head 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core.base import PositionEncoding
from ..core.factors import FactoredBias
from ..core.relative import RelativeBias, RelativeTable
from ..core.tables import of_layer
from ..encodings.cope import Cope
from ..encodings.learned import Learned
from ..encodings.tupe import Tupe
from .style import DISTANCE, Row, image, panels, styled
from .trained import FigureError, Stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class HeatMap(NamedTuple):
    """Hold a matrix of learned numbers, and the meaning of its rows and columns.

    Args:
        values: The matrix, [rows, columns].
        first: Distance j - i or position that the first row stands for.
        row, column: Label of the rows and label of the columns.
        title: Name of the encoding, number of the layer and number of the head.
    """

    values: NDArray[np.float32]
    first: int
    row: str
    column: str
    title: str


@torch.no_grad()
def data(stack: Stack, layer: int = 1, head: int = 1, farthest: int = 50) -> list[HeatMap]:
    """Return a heat map for each table of distances or positions in an encoder's or decoder's encodings.

    The rows and columns of a map depend on what the encoding learns:

    - a vector for each distance (Shaw, M4, DeBERTa, ...): rows are distances, columns are dimensions;
    - a number for each distance (T5, DIET-REL, KERPLE, ...): rows are distances, columns are the heads of the layer;
    - products of two position vectors (DIET-ABS, and TUPE without its biases for distances and [CLS]): rows are query
      positions, columns are key positions;
    - vectors that are added to the input (learned): rows are positions, columns are dimensions;
    - vectors of counts of keys (CoPE): rows are counts, columns are dimensions.

    Args:
        farthest: Largest distance that a map of distances shows. A map of absolute positions shows the first
            2 * farthest positions.

    Raises:
        FigureError: No encoding of the encoder or decoder has a table.
    """
    stack.layer(layer)  # raise if there is no such layer
    if not 1 <= head <= stack.encoding.stack.heads:
        raise FigureError(
            f"{stack.name} has no head {head}. Choose one of the heads 1 to {stack.encoding.stack.heads} with --head."
        )
    maps = [_map(name, member, layer, head, farthest) for name, member in stack.members.items()]
    if not any(maps):
        raise FigureError(
            f"{stack.name}: {stack.encoding} has no table of distances or positions to show in layer {layer}. Choose "
            "another layer in which an encoding is active, or a model whose encoding has such a table, for example "
            "shaw or learned."
        )
    return [item for item in maps if item]


def _map(name: str, member: PositionEncoding, layer: int, head: int, farthest: int) -> HeatMap | None:
    n, place, rank = member.stack.max_length, f"{name}, layer {layer}", member.rank(layer)
    if rank is None:
        return None
    at_head, shown = f"{place}, head {head}", min(n, 2 * farthest)
    if isinstance(member, FactoredBias):
        keys = "key slot" if "compress" in member.hooks else "key position j"
        query, key = (of_layer(table, rank, member.stack.heads)[head - 1] for table in (member.query, member.key))
        return HeatMap(_numbers(query[:shown] @ key[:shown].t()), 0, "query position i", keys, at_head)
    if isinstance(member, Tupe):
        # With reset, form=original has one more row before that of position 0.
        query, key = (of_layer(rows, rank, member.stack.heads)[head - 1, -shown:] for rows in member.project(shown))
        title = f"{at_head}, product of positions"
        return HeatMap(_numbers(query @ key.t()), 0, "query position i", "key position j", title)
    if isinstance(member, RelativeBias):
        longest = min(farthest, n - 1)
        tables = {table: _of_layer(getattr(member, table), rank) for table in member.layer_tables}
        values = member.by_distance(tables, torch.arange(-longest, longest + 1))
        return HeatMap(_numbers(values.t()), -longest, DISTANCE, "head", place)
    if isinstance(member, RelativeTable):
        longest = min(farthest, member.clip)
        table = of_layer(member.weight, rank, member.stack.heads)[head - 1]
        table = table[member.row_of(torch.arange(-longest, longest + 1))]
        columns = table if table.dim() == 2 else table[:, None]
        return HeatMap(_numbers(columns), -longest, DISTANCE, "dimension", at_head)
    if isinstance(member, Learned):
        return HeatMap(_numbers(member.weight[:shown]), 0, "position", "dimension", f"{name}, at the input")
    if isinstance(member, Cope):
        table = of_layer(member.weight, rank, member.stack.heads)[head - 1]
        return HeatMap(_numbers(table[:shown]), 0, "count of keys", "dimension", at_head)
    return None


def _of_layer(table: Tensor, rank: int) -> Tensor:
    return table[(rank - 1) % len(table)]


def _numbers(values: Tensor) -> NDArray[np.float32]:
    return values.detach().float().numpy()


def draw(maps: list[HeatMap]) -> Figure:
    """Draw each heat map with a colour scale that is symmetric about zero."""
    with styled():
        figure, axes = panels([item.title for item in maps], columns=2, height=3.2)
        for panel, item in zip(axes, maps, strict=True):
            rows, columns = item.values.shape
            extent = (0.5, columns + 0.5, item.first + rows - 0.5, item.first - 0.5)
            image(panel, item.values, extent=extent, signed=True)
            panel.set_xlabel(item.column)
            panel.set_ylabel(item.row)
    return figure


def rows(item: HeatMap) -> list[Row]:
    """Return the cells of a heat map as rows of a table."""
    return [
        {"map": item.title, item.row: item.first + row, item.column: column, "value": value}
        for row, cells in enumerate(item.values.tolist())
        for column, value in enumerate(cells)
    ]
