"""Add DIET's position biases, which do not depend on the content: relative scalars or products of absolute factors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import extension, factors, tables
from ..core.base import Facts, Layer, StackShape
from ..core.extension import Extended
from ..core.factors import FACTOR_INITS, FactoredBias
from ..core.options import Options
from ..core.relative import DistanceScalars
from ..ops.precision import exact_product
from ..positions import Positions

PAPER = "Chen et al. 2021 (DIET)"
DIVISOR = (
    "The paper divides by sqrt(d), where d is the hidden size, in its formula of the logits and again in the softmax. "
    "We divide q·k once, by sqrt(D), where D is the width of a head, as BERT does. We do not divide the position "
    "term by sqrt(D)."
)


@dataclass(frozen=True)
class DietRelOptions(Options):
    """Define the options of DIET-REL."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("none")
    init: str = tables.init_option("zeros")
    init_std: float | None = tables.init_std_option()


class DietRel(DistanceScalars):
    """DIET-REL adds one scalar per distance, head and layer: e_ij = q_i·k_j / sqrt(D) + R[j - i].

    The scalars are not divided by sqrt(D). The paper writes the scalars as R_{i-j}, which is the same table in reverse
    order. Use `diet-rel+segments` for the paper's segment term E_S. By default no tables are shared, as the paper
    recommends. The table starts at zeros, so training starts from the model without positions. The LFHC paper calls
    this method T5 if the distances are clipped (option `clip`).
    """

    Options = DietRelOptions
    facts = Facts(
        title="DIET-REL: relative scalars per head",
        family="biases",
        paper=PAPER,
        equation="equation (3)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + R^{(h)}_{i-j}",
        count="m h (2k+1), where k is `clip` (n-1 if unset)",
        notes=DIVISOR,
    )
    options: DietRelOptions

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        r = self.literal(positions, layer)
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + r


@dataclass(frozen=True)
class DietAbsOptions(Options):
    """Define the options of DIET-ABS."""

    rank: int | None = factors.rank_option()
    share: str = tables.share_option("layer-wise")
    extend: str = extension.extend_option()
    extend_to: int | None = extension.extend_to_option()
    init: str = tables.init_option("normal", FACTOR_INITS)
    init_std: float | None = tables.init_std_option()


class DietAbs(Extended, FactoredBias):
    """DIET-ABS adds a product of two learned tables: e_ij = q_i·k_j / sqrt(D) + P_Q[i]·P_K[j].

    The product P_Q[i]·P_K[j] is not divided by sqrt(D). Each head has its own P_Q and P_K, [n, rank] each. By default
    all layers share both tables, which was best in the paper. Use `diet-abs+segments` for the paper's segment term E_S.
    """

    Options = DietAbsOptions
    facts = Facts(
        title="DIET-ABS: products of absolute factors",
        family="biases",
        paper=PAPER,
        equation="equation (1)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + (P_Q P_K^\top)_{ij}",
        count="2 h n r, where r is `rank` (d/h if unset). With `share=none`, the number of parameters is multiplied "
        "by m.",
        notes=DIVISOR,
    )
    options: DietAbsOptions

    @classmethod
    def shapes(cls, options: DietAbsOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return cls.factor_shapes(options, stack, keys=stack.max_length)

    def query_rows(self, table: Tensor, length: int) -> Tensor:
        if self.options.extend != "interpolate" and length <= self.stack.max_length:
            return super().query_rows(table, length)
        return self.rows(table, torch.arange(length, device=table.device))

    key_rows = query_rows

    def read(self, product: Tensor, positions: Positions) -> Tensor:
        return factors.of_columns(product, positions)

    def product_at(self, query: Tensor, key: Tensor, positions: Positions) -> Tensor:
        ids = positions.sample_ids
        rows, columns = (
            self.rows(table, of.flatten()).unflatten(-2, of.shape).transpose(0, 1)  # [1 or B, h or 1, T, rank]
            for table, of in ((query, ids[:, positions.offset :]), (key, ids))
        )
        return exact_product(rows, columns.transpose(-1, -2))

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        ids = positions.key_ids.expand(len(q), -1)
        p_q, p_k = (self._literal_rows(table, ids, layer) for table in (self.query, self.key))  # [B, h, K, rank]
        absolute = torch.einsum("bhir,bhjr->bhij", p_q[:, :, positions.offset :], p_k)
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + absolute

    def _literal_rows(self, table: Tensor, ids: Tensor, layer: Layer) -> Tensor:
        own = tables.of_layer(table, layer.rank, self.stack.heads)
        return torch.stack([torch.stack([self.literal_row(own, int(p)) for p in sample], 1) for sample in ids])
