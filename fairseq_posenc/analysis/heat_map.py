"""Draw heat maps of an encoding's learned numbers: its table, or its bias for pairs of absolute positions.

Source: Figure 4 of Huang et al. 2020 (M1-M4) shows the rows of M4 for the distances -50 to 50 in layer 1, head 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ..core.base import PositionEncoding
from ..core.factors import FactoredBias
from ..core.relative import RelativeBias, RelativeTable
from ..core.tables import of_layer
from ..encodings.cope import Cope
from ..encodings.learned import Learned
from ..encodings.tupe import Tupe
from .style import DISTANCE, Row, cells, image, panels, styled
from .trained import FigureError, Stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class HeatMap(NamedTuple):
    """Hold a matrix of learned numbers, and the meaning of its rows and columns.

    Args:
        values: The matrix, [rows, columns].
        first: Distance j - i or position that the first row stands for, and number of the first column.
        row, column: Label of the rows and label of the columns.
        title: Name of the encoding, number of the layer and number of the head.
    """

    values: Tensor
    first: tuple[int, int]
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
    rank, place = member.rank(layer), f"{name}, layer {layer}"
    if rank is None:
        return None

    def of_head(table: Tensor) -> Tensor:
        return of_layer(table, rank, member.stack.heads)[head - 1]

    longest, shown = min(farthest, member.stack.max_length - 1), min(member.stack.max_length, 2 * farthest)
    at_head = f"{place}, head {head}"
    if isinstance(member, FactoredBias):
        keys = "key slot" if "compress" in member.hooks else "key position j"
        product = of_head(member.query)[:shown] @ of_head(member.key)[:shown].t()
        return HeatMap(product, (0, 0), "query position i", keys, at_head)
    if isinstance(member, Tupe):
        # With reset, form=original has one more row before that of position 0.
        query, key = (of_head(rows)[-shown:] for rows in member.project(shown))
        title = f"{at_head}, product of positions"
        return HeatMap(query @ key.t(), (0, 0), "query position i", "key position j", title)
    if isinstance(member, RelativeBias):
        tables = {table: _of_layer(getattr(member, table), rank) for table in member.layer_tables}
        values = member.by_distance(tables, torch.arange(-longest, longest + 1))
        return HeatMap(values.t(), (-longest, 1), DISTANCE, "head", place)
    if isinstance(member, RelativeTable):
        longest = min(farthest, member.clip)
        table = of_head(member.weight)[member.row_of(torch.arange(-longest, longest + 1))]
        return HeatMap(table if table.dim() == 2 else table[:, None], (-longest, 1), DISTANCE, "dimension", at_head)
    if isinstance(member, Learned):
        return HeatMap(member.weight[:shown], (0, 1), "position", "dimension", f"{name}, at the input")
    if isinstance(member, Cope):
        return HeatMap(of_head(member.weight)[:shown], (0, 1), "count of keys", "dimension", at_head)
    return None


def _of_layer(table: Tensor, rank: int) -> Tensor:
    return table[(rank - 1) % len(table)]


def draw(maps: list[HeatMap]) -> Figure:
    """Draw each heat map with a colour scale that is symmetric about zero."""
    with styled():
        figure, axes = panels([item.title for item in maps], columns=2, height=3.2)
        for panel, item in zip(axes, maps, strict=True):
            (rows, columns), (top, left) = item.values.shape, item.first
            extent = (left - 0.5, left + columns - 0.5, top + rows - 0.5, top - 0.5)
            image(panel, item.values.detach().float().numpy(), extent=extent, signed=True)
            panel.set_xlabel(item.column)
            panel.set_ylabel(item.row)
    return figure


def rows(item: HeatMap) -> list[Row]:
    """Return the cells of a heat map as rows of a table."""
    return cells(item.values, item.row, item.column, "value", item.first, map=item.title)
