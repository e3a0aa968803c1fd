"""Implement CoPE, whose positions count tokens depending on their content (Golovneva et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core import tables
from ..core.base import RELATIVE, Facts, Layer, PositionEncoding, StackShape
from ..core.options import Options, option
from ..ops import compiled
from ..ops.precision import promoted
from ..positions import Positions


@dataclass(frozen=True)
class CopeOptions(Options):
    """Define the options of CoPE."""

    n_max: int | None = option(
        None,
        "Number of position vectors; positions beyond the last vector use the last vector (unset: n).",
        between=(2, 65_536),
        example=3,
    )
    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("zeros")
    init_std: float | None = tables.init_std_option()


class Cope(PositionEncoding):
    """CoPE adds q_i·e[p_ij] to the logits, where p_ij counts the keys from j to i, each weighted by a gate.

    The gate of key t is sigmoid(q_i·k_t / sqrt(D)). The count p_ij is clamped to n_max - 1. Because p_ij is not a whole
    number, q_i·e is interpolated between the two nearest rows of e. The gates of hidden keys (later keys, padding,
    keys beyond a span and keys of other documents) are zero, so only visible tokens are counted. The position term is
    not divided by sqrt(D). CoPE works in decoders only, because it counts keys to the left of a query. The logits do
    not change if all tokens are shifted. The table starts at zeros as in the released code, so training starts from the
    model without positions.
    """

    Options = CopeOptions
    facts = Facts(
        title="CoPE: contextual positions",
        family="relative vectors",
        paper="Golovneva et al. 2024 (Contextual position encoding)",
        equation="equations (4) to (8)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + q_i \cdot e[p_{ij}],\quad "
        r"p_{ij} = \sum_{t=j}^{i} \sigma\left(\frac{q_i \cdot k_t}{\sqrt{D}}\right)",
        count="m N d/h, where N is `n_max` (n if unset)",
    )
    options: CopeOptions

    capabilities = replace(RELATIVE, bidirectional=False)
    uses_positions = False

    @classmethod
    def shapes(cls, options: CopeOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        rows = stack.max_length if options.n_max is None else options.n_max
        return {"weight": tables.shape(options.share, stack, rows, stack.head_dim)}

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        scale = self.stack.head_dim**-0.5
        factors = layer.content
        same = factors is not None and factors.q is q and factors.k is k and factors.scale == scale
        taken = factors is not None and same and factors.take()
        content = promoted(torch.matmul(q * scale, k.transpose(-1, -2)))
        table = layer.tensors["weight"]
        if not compiled.exporting():  # a graph for all lengths cannot choose whether to leave rows out
            table = table[:, : positions.key_length + 1]  # the sum of K gates is at most K
        by_row = promoted(torch.matmul(q, table.transpose(-1, -2)))  # [B, h, Q, rows]
        bias = _interpolated(by_row, _counts(content, positions.allowed))
        return bias + content if taken else bias

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        table = tables.of_layer(self.weight, layer.rank, self.stack.heads)
        content = torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5
        keys = torch.arange(positions.key_length)
        from_j_on = (keys[None, :] >= keys[:, None]).to(q.dtype)  # [j, t]
        gates = torch.sigmoid(content) * self._literally_seen(positions)
        p = torch.einsum("bhit,jt->bhij", gates, from_j_on).clamp(max=len(table[0]) - 1)
        rows = torch.arange(len(table[0]), dtype=q.dtype)
        near = (1 - (p[..., None] - rows).abs()).clamp(min=0)  # [B, h, Q, K, n_max], the weights of the rows
        return content + torch.einsum("bhijr,hrd,bhid->bhij", near, table, q)

    @staticmethod
    def _literally_seen(positions: Positions) -> Tensor:
        """Return whether each query sees each key, [1 or B, 1, Q, K] bool.

        A query does not see padding, later keys, keys beyond its span or keys of other documents.
        """
        columns = torch.arange(positions.key_length) - positions.query_columns[:, None]
        seen = (columns <= 0)[None, None]
        if positions.span is not None:
            seen = seen & (columns > -positions.span)
        if positions.documents is not None:
            of_query, of_key = positions.documents[:, positions.offset :, None], positions.documents[:, None]
            seen = seen & (of_query == of_key)[:, None]
        return seen if positions.padding is None else seen & ~positions.padding[:, None, None, :]


def _counts(content: Tensor, allowed: Tensor | None) -> Tensor:
    """Return the sum of the gates from each key to the last key, [B, h, Q, K]."""
    gates = torch.sigmoid(content)
    if allowed is not None:
        gates = gates * allowed[:, None]
    return gates.flip(-1).cumsum(-1).flip(-1)


def _interpolated(by_row: Tensor, counts: Tensor) -> Tensor:
    """Interpolate the numbers `by_row` [B, h, Q, rows] at the counts [B, h, Q, K], which need not be whole numbers."""
    last = by_row.shape[-1] - 1
    counts = counts.clamp(max=last)
    below = counts.detach().long()
    above = (below + 1).clamp(max=last)
    low, high = by_row.gather(-1, below), by_row.gather(-1, above)
    return low + (counts - below) * (high - low)
