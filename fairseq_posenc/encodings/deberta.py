"""Implement DeBERTa's attention, which multiplies queries and keys by projected distances (He et al. 2020).

DeBERTa has two forms. With `form=paper` (M4M papers), which is in this file, each layer has small tables and D x D
matrices. With `form=original` (deberta_original.py), all layers share one table of the model's width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..core import tables
from ..core.base import Facts, Layer, StackShape, give
from ..core.caches import CachingEncoding
from ..core.options import N, Options, option
from ..core.refusal import InputError
from ..core.relative import RelativeTable
from ..core.starts import draw_with_matrices
from ..ops import toeplitz
from ..ops.precision import exact_product, promoted
from ..positions import Positions


@dataclass(frozen=True)
class DebertaOptions(Options):
    """Define the options of DeBERTa."""

    form: str = option(
        "paper",
        "With form=paper, each layer has a table and two D x D matrices, which its heads share (M4M paper). With "
        "form=original, all layers share one table, which each layer projects for each head (authors' code).",
        choices=("paper", "original"),
    )
    clip: int | None = option(
        None,
        "Largest distance k with its own row; larger distances share the row of k (unset: n - 1, or n with "
        "form=original).",
        between=(1, N),
        example=2,
    )
    tie_wr_wt: bool = option(False, "Use one matrix for both position terms (form=paper only).", example=True)
    buckets: int | None = option(
        None,
        "Number of buckets per direction: one half holds a single distance each, and the other half holds logarithmic "
        "ranges of distances up to k (form=original only; unset: no buckets; DeBERTa v2 and v3: 256).",
        between=(4, 4096),
        example=4,
    )
    share_att_key: bool = option(
        False, "Project the table with the layer's projections of queries and keys (form=original only).", example=True
    )
    layer_norm: bool = option(
        False, "Apply a layer norm to the table, as DeBERTa v2 and v3 do (form=original only).", example=True
    )
    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class Deberta(CachingEncoding):
    """DeBERTa adds two position terms to q_i·k_j: e_ij = (q_i·k_j + q_i·r_ij + k_j·t_ij) / sqrt(3D).

    The vectors r_ij and t_ij are two projections of the same table row, which belongs to the distance j - i. The option
    `init` applies to this table; the projection matrices start from N(0, 0.02).
    """

    Options = DebertaOptions
    facts = Facts(
        title="DeBERTa: disentangled",
        family="relative vectors",
        paper="He et al. 2020, equation (4); for form=paper: Huang et al., M4M (arXiv)",
        equation="equation (13)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j + q_i \cdot (a_{ij} W^R) + k_j \cdot (a_{ij} W^T)}{\sqrt{3D}}",
        count="m ((2k+1) d/h + 2 (d/h)^2), where k is `clip` (n-1 if unset). With `tie_wr_wt`, the number of "
        "parameters is m ((2k+1) d/h + (d/h)^2), as in the papers. With `form=original`, the number of parameters is "
        "2 k d + 2 m (d^2 + d), where k is `buckets` or, without buckets, `clip` (n if unset).",
    )
    forms: ClassVar = {"paper": "deberta:PaperDeberta", "original": "deberta_original:OriginalDeberta"}
    options: DebertaOptions
    #: Whether every distance within k has a row of its own; false if distances share buckets.
    row_per_distance = True

    @property
    def scale(self) -> float | None:
        return float((3 * self.stack.head_dim) ** -0.5)

    def row_of(self, delta: Tensor) -> Tensor:
        """Return the table rows of the distances j - i, which never decrease when j - i grows."""
        raise TypeError(f"{type(self).__name__} does not implement the method row_of()")

    def project(self, first: int, rows: int) -> Tensor:
        """Return the projections r and t of `rows` table rows from row `first` on, or a single tensor if r and t are
        equal.

        Returns:
            [1 or 2, L or 1, h or 1, rows, D].
        """
        raise TypeError(f"{type(self).__name__} does not implement the method project()")

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the projections r and t of all table rows that the batch needs, and the rows of the distances.

        While a model decodes, the projections are cached.
        """
        projected, n = self._cache.get(
            positions.reach,
            list(self.learned.values()),
            lambda n: self.project(*self._range(1 - n, n - 1)),
            positions,
            training=self.training,
        )
        first, rows = self._range_of(positions)
        by_layer = self.with_rows(positions)
        give(by_layer, "projected", projected.narrow(-2, first - self._range(1 - n, 0)[0], rows).transpose(0, 1))
        return by_layer

    def with_rows(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return for each layer the row of each distance, `rows` [L], or nothing if each distance has its own row."""
        rows = self._rows(positions)
        return [{} if isinstance(rows, slice) else {"rows": rows} for _ in range(self.stack.layers)]

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        projected = self.projected(positions, layer)
        # Scale the tables instead of q and k, because all samples share the tables, which are therefore smaller.
        scaled = promoted(projected) * (3 * self.stack.head_dim) ** -0.5
        rows = layer.tensors.get("rows", slice(0, scaled.shape[-2]))
        of_keys = toeplitz.key_product(k, scaled[-1], positions, rows, layer.content)
        return toeplitz.query_product(q, scaled[0], positions, rows) + of_keys

    def projected(self, positions: Positions, layer: Layer) -> Tensor:
        """Return the projections r and t for one layer, [1 or 2, h or 1, rows, D]."""
        return layer.tensors["projected"]

    def _rows(self, positions: Positions) -> Tensor | slice:
        """Return the table row of each distance between queries and keys, counted from the first row that occurs."""
        first, rows = self._range_of(positions)
        in_columns = positions.ids is None and not torch.compiler.is_compiling()
        if in_columns and self.row_per_distance and rows == len(positions.distances):
            return slice(0, rows)
        # The key names this module, because the rows depend on its options, and two stacks may share positions.
        return positions.shared((self, "rows"), lambda: self._all_rows(positions) - first)

    def _all_rows(self, positions: Positions) -> Tensor:
        return self.row_of(positions.distances)

    def _range_of(self, positions: Positions) -> tuple[int, int]:
        return self._range(*positions.ends)

    def _range(self, left: int, right: int) -> tuple[int, int]:
        """Return the first row and the number of rows for distances from `left` to `right`, or all rows under
        torch.compile."""
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
        """Return r_ij and t_ij for all pairs, [h, Q, K, D] each; only the slow reference formula uses this method."""
        raise TypeError(f"{type(self).__name__} does not implement the method reference_projected()")


class PaperDeberta(RelativeTable, Deberta):
    """Compute r_ij = a_ij W^R and t_ij = a_ij W^T with a_ij = w[clip(j - i, -k, k)], as in the M4M papers.

    Equation (13) of M4M (arXiv) defines `form=paper`. The papers print d_x x d_z as the shape of the matrices, but only
    D x D fits the equation. The numbers of parameters in these papers include only one of the two matrices. `share`
    applies to the table and to the matrices.
    """

    w_r: Tensor
    w_t: Tensor

    def __init__(self, options: DebertaOptions, stack: StackShape) -> None:
        for name in ("buckets", "share_att_key", "layer_norm"):
            if getattr(options, name):
                raise InputError(f"{name}={getattr(options, name)} belongs to form=original: set form=original too")
        super().__init__(options, stack)

    def reset_parameters(self) -> None:
        """Draw the matrices from N(0, 0.02) and the table according to the options."""
        draw_with_matrices(self, self.options, *self._matrices)

    @property
    def _matrices(self) -> tuple[str, ...]:
        return ("w_r",) if self.options.tie_wr_wt else ("w_r", "w_t")

    @classmethod
    def shapes(cls, options: DebertaOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        matrix = tables.shape(options.share, stack, stack.head_dim, stack.head_dim)
        matrices = {"w_r": matrix} if options.tie_wr_wt else {"w_r": matrix, "w_t": matrix}
        return {**super().shapes(options, stack), **matrices}

    def project(self, first: int, rows: int) -> Tensor:
        a = self.weight.narrow(-2, first, rows)
        return torch.stack([exact_product(a, getattr(self, name)).to(a.dtype) for name in self._matrices])

    def reference_projected(self, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor]:
        a, w_r, w_t = (
            tables.of_layer(weight, layer.rank, self.stack.heads)
            for weight in (self.weight, self.w_r, self.w_r if self.options.tie_wr_wt else self.w_t)
        )
        pairs = a[:, self.row_of(positions.delta)]  # [h, Q, K, D]
        return torch.einsum("hijc,hcd->hijd", pairs, w_r), torch.einsum("hijc,hcd->hijd", pairs, w_t)
