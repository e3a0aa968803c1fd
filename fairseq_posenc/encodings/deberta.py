"""DeBERTa's disentangled attention: queries meet projected distances, and so do keys (He et al. 2020).

Two forms: that of the M4M papers, here, small tables and D x D matrices in each layer, and the original, one
table of the model's width for all layers (deberta_original.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..core import tables
from ..core.base import Facts, Layer, StackShape, give
from ..core.caches import CachingEncoding
from ..core.options import Options, option
from ..core.relative_table import RelativeTable
from ..core.starts import draw_with_matrices
from ..ops import toeplitz
from ..ops.precision import exact_product, promoted
from ..positions import Positions


@dataclass(frozen=True)
class DebertaOptions(Options):
    """Options of DeBERTa."""

    form: str = option(
        "paper",
        "a table and two D x D matrices a layer, shared by its heads (paper: M4M), or one table for all layers, "
        "projected by each layer for each head (original)",
        choices=("paper", "original"),
    )
    clip: int | None = option(
        None, "k: distances beyond k share the row of k; unset: n - 1, with form=original n", example=2
    )
    tie_wr_wt: bool = option(False, "form=paper: one matrix for both terms", example=True)
    buckets: int | None = option(
        None, "form=original: logarithmic buckets a side, up to the distance k (v2, v3: 256)", example=4
    )
    share_att_key: bool = option(
        False, "form=original: project the table as the layer projects its content", example=True
    )
    layer_norm: bool = option(False, "form=original: normalise the table (v2, v3)", example=True)
    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class Deberta(CachingEncoding):
    """e_ij = (q_i . k_j + q_i . r_ij + k_j . t_ij) / sqrt(3D), r and t projections of one table.

    Both terms read the same distance. `init` is that of the table; matrices are drawn from N(0, 0.02).
    A form gives `row_of`, non-decreasing, and `project`.
    """

    Options = DebertaOptions
    facts = Facts(
        title="DeBERTa: disentangled",
        paper="He et al. 2020; form=paper: as in Huang et al., M4M (arXiv)",
        equation="(4); form=paper: (13)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j + q_i \cdot (a_{ij} W^R) + k_j \cdot (a_{ij} W^T)}{\sqrt{3D}}",
        count="m ((2k+1) d/h + 2 (d/h)^2), one (d/h)^2 less with tie_wr_wt, as the papers count; "
        "form=original: 2k d + 2m (d^2 + d)",
    )
    forms: ClassVar = {"paper": "deberta:PaperDeberta", "original": "deberta_original:OriginalDeberta"}
    options: DebertaOptions
    #: rows are distances, not buckets of them
    one_row_each = True

    @property
    def scale(self) -> float | None:
        return float((3 * self.stack.head_dim) ** -0.5)

    def row_of(self, delta: Tensor) -> Tensor:
        """Return the row of any j - i; it never decreases with j - i."""
        raise TypeError(f"{type(self).__name__} does not say its rows")

    @property
    def flat_from(self) -> int:
        """Return the distance from which on all distances share a row, on either side."""
        raise TypeError(f"{type(self).__name__} does not say where its rows end")

    def project(self, first: int, rows: int) -> Tensor:
        """Return r and t (or one for both) of the table's rows from `first`: [1 or 2, L or 1, h or 1, rows, D]."""
        raise TypeError(f"{type(self).__name__} does not project its table")

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return r and t of the rows that occur, made here: the batch shares them, and in evaluation all forwards."""
        projected, n = self._cache.get(
            positions.key_length,
            list(self.parameters()),
            lambda n: self.project(*self._range(1 - n, n - 1)),
            training=self.training,
        )
        first, rows = self._range_of(positions)
        by_layer: list[dict[str, Tensor]] = [{} for _ in range(self.stack.layers)]
        give(by_layer, "projected", projected.narrow(-2, first - self._range(1 - n, 0)[0], rows).transpose(0, 1))
        return by_layer

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        projected = self.projected(positions, layer)
        # the tables are divided, not q and k: as in M4
        scaled = promoted(projected) * (3 * self.stack.head_dim) ** -0.5
        rows, clip = self._rows(positions), self.flat_from
        return promoted(toeplitz.both_products(q, k, scaled[0], scaled[-1], positions, rows, clip, layer.content))

    def projected(self, positions: Positions, layer: Layer) -> Tensor:
        """Return r and t of a layer, [1 or 2, h or 1, rows, D]."""
        return layer.tensors["projected"]

    def _rows(self, positions: Positions) -> Tensor | slice:
        """Return the row of each of the L distances, counted from the first that occurs."""
        first, rows = self._range_of(positions)
        if self.one_row_each and rows == len(positions.distances):
            return slice(0, rows)
        # the module stands for what its rows depend on: two stacks may share positions
        return positions.shared((self, "rows"), lambda: self._all_rows(positions) - first)

    def _all_rows(self, positions: Positions) -> Tensor:
        return self.row_of(positions.distances)

    def _range_of(self, positions: Positions) -> tuple[int, int]:
        return self._range(1 - positions.key_length, positions.query_length - 1)

    def _range(self, left: int, right: int) -> tuple[int, int]:
        """Return the first row of the distances left .. right, and how many rows they span; in a graph, all."""
        if torch.compiler.is_compiling():
            return 0, self.weight.shape[-2]
        first, last = self.row_of(torch.tensor([left, right])).tolist()
        return first, last - first + 1

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        r, t = self.reference_projected(positions, layer)  # [h, Q, K, D] each
        content = torch.einsum("bhid,bhjd->bhij", q, k)
        terms = torch.einsum("bhid,hijd->bhij", q, r) + torch.einsum("bhjd,hijd->bhij", k, t)
        return (content + terms) / (3 * self.stack.head_dim) ** 0.5

    def reference_projected(self, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor]:
        """Return r_ij and t_ij written out, [h, Q, K, D] each."""
        raise TypeError(f"{type(self).__name__} has no reference")


class PaperDeberta(RelativeTable, Deberta):
    """r_ij = a_ij W^R, t_ij = a_ij W^T, a_ij = w[clip(j - i, -k, k)]: (13) of M4M (arXiv), (7) of its submission.

    The papers print d_x x d_z for the matrices, which fits with D x D only, and count one of the two.
    `share` holds for the table and the matrices.
    """

    w_r: Tensor
    w_t: Tensor

    def __init__(self, options: DebertaOptions, stack: StackShape) -> None:
        for name in ("buckets", "share_att_key", "layer_norm"):
            if getattr(options, name):
                raise ValueError(f"{name}={getattr(options, name)} belongs to form=original")
        super().__init__(options, stack)

    def reset_parameters(self) -> None:
        """N(0, 0.02); the table as told."""
        draw_with_matrices(self, self.options, *self._matrices)

    @property
    def _matrices(self) -> tuple[str, ...]:
        return ("w_r",) if self.options.tie_wr_wt else ("w_r", "w_t")

    @classmethod
    def shapes(cls, options: DebertaOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        matrix = tables.shape(options.share, stack, stack.head_dim, stack.head_dim)
        matrices = {"w_r": matrix} if options.tie_wr_wt else {"w_r": matrix, "w_t": matrix}
        return {**super().shapes(options, stack), **matrices}

    @property
    def flat_from(self) -> int:
        return self.clip

    def project(self, first: int, rows: int) -> Tensor:
        a = self.weight.narrow(-2, first, rows)
        return torch.stack([exact_product(a, getattr(self, name)).to(a.dtype) for name in self._matrices])

    def reference_projected(self, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor]:
        a, w_r, w_t = (
            tables.of_layer(weight, layer.index, self.stack.heads)
            for weight in (self.weight, self.w_r, self.w_r if self.options.tie_wr_wt else self.w_t)
        )
        pairs = a[:, self.row_of(positions.delta)]  # [h, Q, K, D]
        return torch.einsum("hijc,hcd->hijd", pairs, w_r), torch.einsum("hijc,hcd->hijd", pairs, w_t)
