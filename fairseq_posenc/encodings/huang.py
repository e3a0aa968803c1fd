"""Multiply the product of query and key by relative scalars (M1, M2) or vectors (M3), as Huang et al. 2020 do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from ..core import tables
from ..core.base import RELATIVE, Facts, Layer, StackShape
from ..core.options import Options
from ..core.relative_table import RelativeTable
from ..core.terms import OfDistance, Rows, Terms
from ..ops import compiled, toeplitz, trilinear
from ..ops.precision import HALF, promoted
from ..positions import Positions

PAPER = "Huang et al. 2020 (M1-M4)"
PER_HEAD = (
    "Table 1 of the M1-M4 paper counts one table per head, which corresponds to share=none. By default the heads of a "
    "layer share their table."
)


@dataclass(frozen=True)
class M1Options(Options):
    """Define the options of M1."""

    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("ones")
    init_std: float | None = tables.init_std_option()


@dataclass(frozen=True)
class M2Options(Options):
    """Define the options of M2 and M3."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("ones")
    init_std: float | None = tables.init_std_option()


class _Scalars(RelativeTable):
    """Compute e_ij = (q_i·k_j) a_ij / sqrt(D), where a_ij is one number per distance; this is the base of M1 and M2."""

    no_decay = ("weight",)  # decay would pull ones (plain attention) towards zeros (uniform attention)

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        """Return the factor a_ij for each distance, [1 or h, L]."""
        raise TypeError(f"{type(self).__name__} does not implement the method factors()")

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        factors = self.factors(promoted(layer.tensors["weight"]), positions)
        content = torch.matmul(q * self.stack.head_dim**-0.5, k.transpose(-1, -2))
        return promoted(content) * toeplitz.to_pairs(factors, positions)

    def terms(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Terms:
        factors = self.factors(promoted(layer.tensors["weight"]), positions)
        return Terms(factors=(OfDistance(factors, Rows.of(positions)),))

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        w = self.literal(positions, layer)
        return torch.einsum("bhid,bhjd->bhij", q, k) * w / self.stack.head_dim**0.5


class M1(_Scalars):
    """M1 multiplies q_i·k_j by one scalar per unsigned distance: e_ij = (q_i·k_j) w[|j - i|] / sqrt(D).

    Distances are not clipped within n; all distances beyond n use the scalar of n - 1. The table starts at ones, so
    training starts exactly from the model without positions. An encoder with M1 cannot distinguish left from right.
    """

    Options = M1Options
    facts = Facts(
        title="M1: multiplied by unsigned relative scalars",
        paper=PAPER,
        equation="equations (11) and (12)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, w_{|j-i|}}{\sqrt{D}}",
        count="m n, or m h n with `share=none`",
        notes=PER_HEAD,
    )

    capabilities = replace(RELATIVE, directional=False)

    @classmethod
    def clip_of(cls, options: M1Options, stack: StackShape) -> int:
        return tables.clip_of(None, stack)

    @classmethod
    def shapes(cls, options: M1Options, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, stack.max_length)}

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        return weight.index_select(-1, self.row_of(positions.distances))

    def row_of(self, delta: Tensor) -> Tensor:
        return delta.abs().clamp(max=self.clip)


class M2(_Scalars):
    """M2 multiplies q_i·k_j by one scalar per signed distance: e_ij = (q_i·k_j) w[j - i] / sqrt(D).

    The table starts at ones, so training starts exactly from the model without positions.
    """

    Options = M2Options
    facts = Facts(
        title="M2: multiplied by signed relative scalars",
        paper=PAPER,
        equation="equations (12) and (13)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, w_{j-i}}{\sqrt{D}}",
        count="m (2k+1), where k is `clip` (n-1 if unset). With `share=none`, the number of parameters is multiplied "
        "by h.",
        notes=PER_HEAD,
    )

    @classmethod
    def shapes(cls, options: M2Options, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, 2 * cls.clip_of(options, stack) + 1)}

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        return toeplitz.take(weight, self.rows(positions), -1)


#: Numbers in the largest temporary tensor of M3. On a CPU it fits into the cache. On a GPU it is larger, because memory
#: is plentiful and every kernel launch costs time.
CHUNK = 1 << 18
CHUNK_ON_GPU = 1 << 24


class M3(RelativeTable):
    """M3 multiplies q_i, k_j and a vector of the distance elementwise: e_ij = sum_d q_id k_jd w[j - i]_d / sqrt(D).

    The table starts at ones, so training starts exactly from the model without positions. The sum is not a matrix
    product, so compiled loops compute it if possible. Without compiled loops, torch operations compute M3 for a few
    queries at a time, and compute it again in the backward pass. If distances share a vector because of `clip`, the
    torch operations need only one matrix product per direction for these distances.
    """

    Options = M2Options
    facts = Facts(
        title="M3: multiplied by signed relative vectors",
        paper=PAPER,
        equation="equations (14) and (15)",
        formula=r"e_{ij} = \frac{\sum_d q_{id}\, k_{jd}\, a_{ijd}}{\sqrt{D}},\quad a_{ij} = w_{j-i}",
        count="m (2k+1) d/h, where k is `clip` (n-1 if unset). With `share=none`, the number of parameters is "
        "multiplied by h.",
        notes=PER_HEAD,
    )
    no_decay = ("weight",)  # for the same reason as M1 and M2

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        scale, table, rows = self.stack.head_dim**-0.5, promoted(layer.tensors["weight"]), self.rows(positions)
        if positions.pairs is not None:
            return _of_pairs(q * scale, k, toeplitz.of_pairs(table, rows, positions.pairs))
        if toeplitz.one_by_one(positions):
            return toeplitz.trilinear_product(q * scale, k, table, positions, rows, self.clip)
        if q.dtype not in HALF and compiled.usable(q.numel() * k.shape[2], trilinear.LEAST, q.device):
            # Scale the vectors instead of the queries: the backward pass would need a copy of scaled queries.
            vectors = (toeplitz.take(table, rows, -2) * scale).to(q.dtype)
            product: Tensor = trilinear.TrilinearProduct.apply(q, k, vectors)
            return product
        if compiled.exporting():  # the code below depends on the length, but an exported graph must not
            windows = toeplitz.to_pairs(toeplitz.take(table, rows, -2).transpose(-1, -2), positions)  # [1, h, D, Q, K]
            return _contract((q * scale), k[:, :, None], windows.permute(0, 1, 3, 4, 2).to(q.dtype), flipped=False)
        q = q * scale  # each chunk casts the float32 table itself, so the gradients of all chunks add up in float32
        if 0 < 2 * self.clip < positions.key_length:
            return self._clipped(q, k, table, positions)
        return self._by_key(q, k, toeplitz.take(table, rows, -2), positions)

    def _by_key(self, q: Tensor, k: Tensor, vectors: Tensor, positions: Positions) -> Tensor:
        """Return the products for all pairs of query and key, given the vectors [1 or h, L, D] of the distances."""
        parts, stop, last = [], 0, positions.query_length
        for queries in _chunks(q, positions.key_length):
            start, stop = stop, stop + queries.shape[2]
            seen = positions.offset + stop if positions.causal else positions.key_length
            # A later query reads an earlier window. Slice first, because the gradient of a slice of `windows` would be
            # as large as `windows`.
            window = vectors[:, last - stop : last - start + seen - 1].to(q.dtype)
            windows = window.unfold(-2, seen, 1).transpose(-1, -2)
            part = _products(queries, k[:, :, None, :seen], windows, flipped=True)
            parts.append(F.pad(part, (0, positions.key_length - seen)))
        return torch.cat(parts, -2)

    def _clipped(self, q: Tensor, k: Tensor, table: Tensor, positions: Positions) -> Tensor:
        """Return the products for all pairs.

        Distances of at least k share a vector, so each direction needs one matrix product. `_near` computes the
        products for all smaller distances.
        """
        distances, clip = positions.distances, self.clip
        far = torch.matmul(q * table[:, :1].to(q.dtype), k.transpose(-1, -2))
        if not positions.causal:
            right = torch.matmul(q * table[:, -1:].to(q.dtype), k.transpose(-1, -2))
            far = torch.where(toeplitz.to_pairs(distances < 0, positions), far, right)
        near = self._near(q, k, table[:, None, 1:-1], positions)
        by_distance = F.pad(near, (positions.key_length - clip, positions.query_length - clip))
        close = toeplitz.shift(by_distance, positions.key_length)
        return torch.where(toeplitz.to_pairs(distances.abs() < clip, positions), close, far)

    def _near(self, q: Tensor, k: Tensor, vectors: Tensor, positions: Positions) -> Tensor:
        """Return the products [B, h, Q, 2k-1] for the distances from 1-k to k-1; vectors are [1 or h, 1, 2k-1, D]."""
        around, width = self.clip - 1, 2 * self.clip - 1
        padded = F.pad(k[:, :, max(positions.offset - around, 0) :], (0, 0, max(around - positions.offset, 0), around))
        parts, stop = [], 0
        for queries in _chunks(q, width):
            start, stop = stop, stop + queries.shape[2]
            windows = padded[:, :, start : stop + width - 1].unfold(-2, width, 1).transpose(-1, -2)
            parts.append(_products(queries, windows, vectors.to(q.dtype)))
        return torch.cat(parts, -2)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        a = self.literal(positions, layer)
        return torch.einsum("bhid,bhjd,hijd->bhij", q, k, a) / self.stack.head_dim**0.5


def _of_pairs(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    """Return the products for all pairs, given the vector of each pair, [1 or B, 1 or h, Q, K, D]."""
    queries = _chunks(q, k.shape[2])
    parts = vectors.to(q.dtype).split([part.shape[2] for part in queries], 2)
    return torch.cat([_products(part, k[:, :, None], own) for part, own in zip(queries, parts, strict=True)], 2)


def _chunks(q: Tensor, vectors: int) -> tuple[Tensor, ...]:
    """Split the queries into chunks whose products with `vectors` vectors per query have at most CHUNK numbers."""
    batch, heads, _, dim = q.shape
    numbers = CHUNK if q.device.type == "cpu" else CHUNK_ON_GPU
    return q.split(max(1, numbers // max(1, batch * heads * vectors * dim)), 2)


def _products(q: Tensor, keys: Tensor, vectors: Tensor, flipped: bool = False) -> Tensor:
    """Return sum_d q_id keys_ird vectors_ird, [B, h, c, R]; the backward pass computes keys * vectors again."""
    if not torch.is_grad_enabled():
        return _contract(q, keys, vectors, flipped)
    arguments = (q, keys, vectors, flipped)
    part: Tensor = checkpoint(_contract, *arguments, use_reentrant=False, preserve_rng_state=False)
    return part


def _contract(q: Tensor, keys: Tensor, vectors: Tensor, flipped: bool) -> Tensor:
    """Multiply q [B, h, c, D], keys [B, h, 1 or c, R, D] and vectors [(B,) 1 or h, 1 or c, R, D], and sum over D.

    If `flipped` is true, the c vectors are in the reverse order of the queries.
    """
    factor = keys * (vectors.flip(-3) if flipped else vectors)
    return torch.matmul(factor, q[..., None])[..., 0]
