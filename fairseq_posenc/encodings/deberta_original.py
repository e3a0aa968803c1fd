"""Compute DeBERTa's disentangled attention as in its authors' code (He et al. 2020; also v2 and v3)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ..core import tables
from ..core.base import Layer, StackShape
from ..core.refusal import InputError
from ..core.starts import draw_with_matrices
from ..ops.precision import exact_product, promoted
from ..positions import Positions
from .deberta import Deberta, DebertaOptions

#: Number that the layer norm adds to variances.
EPSILON = 1e-7


class OriginalDeberta(Deberta):
    """Compute r = P W_k and t = P W_q from row clip(i - j + k, 0, 2k - 1) of P [2k, d], as in the authors' code.

    In the paper's text, t belongs to the distance from j to i, but the authors' code reads i - j in both terms. The
    rows are ordered by i - j, as in the authors' code, so that tables of the authors' models can be loaded. As in the
    authors' code, the distance k to the left shares the row of k - 1. Each layer has its own projections with biases;
    the bias of W_k changes all logits of a query by the same number. With share_att_key, the layer's projections of
    queries and keys also project the table, again at every decoding step. All layers share one table, and each head has
    its own columns of the projections. The option `share` is refused, because there is only one table.
    """

    norm_weight: Tensor
    norm_bias: Tensor
    key_weight: Tensor
    key_bias: Tensor
    query_weight: Tensor
    query_bias: Tensor

    def __init__(self, options: DebertaOptions, stack: StackShape) -> None:
        tables.refuse_sharing(options.share)
        if options.tie_wr_wt:
            raise InputError("tie_wr_wt=true belongs to form=paper: with form=original, set share_att_key=true instead")
        super().__init__(options, stack)
        self.longest = _longest(options, stack)
        self.row_per_distance = options.buckets is None

    def reset_parameters(self) -> None:
        """Draw the projections from N(0, 0.02) and the table according to the options; set the biases to zero."""
        draw_with_matrices(self, self.options, "key_weight", "query_weight")

    @classmethod
    def shapes(cls, options: DebertaOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        longest, layers, dim = _longest(options, stack), stack.layers, stack.dim
        shapes: dict[str, tuple[int, ...]] = {"weight": (2 * (options.buckets or longest), dim)}
        if options.layer_norm:
            shapes |= {"norm_weight": (dim,), "norm_bias": (dim,)}
        if not options.share_att_key:
            for name in ("key", "query"):
                shapes |= {f"{name}_weight": (layers, dim, dim), f"{name}_bias": (layers, dim)}
        return shapes

    @property
    def constant_along_row(self) -> tuple[str, ...]:
        return () if self.options.share_att_key else ("key_bias",)

    @property
    def _half(self) -> int:
        """Return the number of table rows per direction."""
        return self.options.buckets or self.longest

    def row_of(self, delta: Tensor) -> Tensor:
        """Return the rows of the distances j - i in the reversed table P; P itself is ordered by i - j."""
        if self.options.buckets is not None:
            delta = log_bucket(delta, self.options.buckets, self.longest)
        return (delta + self._half - 1).clamp(0, 2 * self._half - 1)

    def project(self, first: int, rows: int) -> Tensor:
        table = promoted(self._table(first, rows)).t()  # [d, rows]
        projected = []
        for weight, bias in ((self.key_weight, self.key_bias), (self.query_weight, self.query_bias)):
            product = exact_product(weight, table) + promoted(bias)[..., None]  # [L, d, rows]
            split = product.unflatten(1, (self.stack.heads, -1)).transpose(-1, -2)
            projected.append(split.to(weight.dtype))
        return torch.stack(projected)

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        if not self.options.share_att_key:
            return super().per_layer(positions)
        table = self._table(*self._range_of(positions)).to(self.weight.dtype)
        return [{**tensors, "table": table} for tensors in self.with_rows(positions)]

    def projected(self, positions: Positions, layer: Layer) -> Tensor:
        if not self.options.share_att_key:
            return super().projected(positions, layer)
        if layer.project_q is None or layer.project_k is None:
            raise ValueError(
                "deberta with share_att_key needs the content projections of its layers: give project_q and project_k "
                "to Composition.layer"
            )
        table = layer.tensors["table"][None]
        return torch.cat([layer.project_k(table), layer.project_q(table)])  # [1, h, rows, D] each

    def _table(self, first: int, rows: int) -> Tensor:
        """Return the reversed table from row `first` on, [rows, d]."""
        table = self.weight.flip(0).narrow(0, first, rows)
        if not self.options.layer_norm:
            return table
        weight, bias = promoted(self.norm_weight), promoted(self.norm_bias)
        return F.layer_norm(promoted(table), table.shape[-1:], weight, bias, EPSILON)

    def reference_projected(self, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor]:
        rows = tables.pair_by_pair(positions, self._literal_row)
        table = self.weight
        if self.options.layer_norm:
            centred = table - table.mean(-1, keepdim=True)
            table = centred / (centred.square().mean(-1, keepdim=True) + EPSILON).sqrt()
            table = table * self.norm_weight + self.norm_bias
        if self.options.share_att_key:
            assert layer.project_q is not None
            assert layer.project_k is not None
            r, t = layer.project_k(table[None])[0], layer.project_q(table[None])[0]  # [h, 2k, D]
        else:
            r, t = (self._literal_projection(name, table, layer) for name in ("key", "query"))
        return r[:, rows], t[:, rows]

    def _literal_projection(self, name: str, table: Tensor, layer: Layer) -> Tensor:
        weight, bias = (getattr(self, f"{name}_{part}")[layer.rank - 1] for part in ("weight", "bias"))
        return (table @ weight.t() + bias).unflatten(-1, (self.stack.heads, -1)).transpose(0, 1)

    def _literal_row(self, delta: int) -> int:
        """Return the table row of the distance j - i, computed as in the authors' code from x = i - j."""
        x = -delta
        if self.options.buckets is not None:
            x = _literal_bucket(x, self.options.buckets, self.longest)
        return min(max(x + self._half, 0), 2 * self._half - 1)


def log_bucket(distances: Tensor, buckets: int, longest: int) -> Tensor:
    """Return the bucket of each distance, which has the sign of the distance.

    Each distance up to `buckets` / 2 has a bucket of its own. Larger distances share logarithmic buckets, which end at
    the distance `longest` - 1.
    """
    exact = buckets // 2
    size = distances.abs()
    growth = torch.log(size.clamp(min=exact).double() / exact) / math.log((longest - 1) / exact)
    far = (growth * (exact - 1)).ceil().long() + exact
    return torch.where(size <= exact, distances, distances.sign() * far)


def _literal_bucket(x: int, buckets: int, longest: int) -> int:
    """Return the bucket of one distance."""
    exact = buckets // 2
    if abs(x) <= exact:
        return x
    far = exact + math.ceil(math.log(abs(x) / exact) / math.log((longest - 1) / exact) * (exact - 1))
    return far if x > 0 else -far


def _longest(options: DebertaOptions, stack: StackShape) -> int:
    """Return the largest distance k: the option `clip` if it is set, otherwise the larger one of n and `buckets`.

    All distances beyond k share the last row or bucket of their direction.
    """
    buckets = options.buckets
    if buckets is not None and buckets % 2:
        raise InputError(
            f"buckets={buckets} must be an even number: half of the buckets hold a single distance each, "
            "and the other half hold ranges of distances"
        )
    if options.clip is None:
        return max(stack.max_length, buckets or 1)
    longest = tables.clip_of(options.clip, stack)
    if buckets is not None and longest - 1 <= buckets // 2:
        raise InputError(
            f"clip={longest} must be greater than {buckets // 2 + 1}, because with buckets={buckets} every distance up "
            f"to {buckets // 2} has a bucket of its own"
        )
    return longest
