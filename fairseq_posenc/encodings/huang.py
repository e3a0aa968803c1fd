"""Huang et al. 2020: the product of query and key, multiplied by relative scalars (M1, M2) or vectors (M3)."""

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
from ..ops import compiled, toeplitz, trilinear
from ..ops.precision import HALF, promoted
from ..positions import Positions

PAPER = "Huang et al. 2020 (M1-M4)"


@dataclass(frozen=True)
class M1Options(Options):
    """Options of M1."""

    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("ones")
    init_std: float | None = tables.init_std_option()


@dataclass(frozen=True)
class M2Options(Options):
    """Options of M2 and M3."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("ones")
    init_std: float | None = tables.init_std_option()


class _Scalars(RelativeTable):
    """e_ij = (q_i . k_j) a_ij / sqrt(D), a_ij one number a distance."""

    no_decay = ("weight",)  # from ones, plain attention, towards zeros, where it is flat

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        """Return the number at each distance, [1 or h, L]."""
        raise TypeError(f"{type(self).__name__} does not say its factor at a distance")

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        factors = self.factors(promoted(layer.tensors["weight"]), positions)
        content = torch.matmul(q * self.stack.head_dim**-0.5, k.transpose(-1, -2))
        return promoted(content) * toeplitz.spread(factors, positions)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        w = self.literal(positions, layer)
        return torch.einsum("bhid,bhjd->bhij", q, k) * w / self.stack.head_dim**0.5


class M1(_Scalars):
    """e_ij = (q_i . k_j) w[|j - i|] / sqrt(D), one scalar an unsigned distance.

    Not clipped; beyond n it saturates at n - 1, as everywhere. Starts at ones: exactly the model without
    positions. In an encoder left and right cannot be told apart.
    """

    Options = M1Options
    facts = Facts(
        title="M1: multiplied by unsigned relative scalars",
        paper=PAPER,
        equation="(11), (12)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, w_{|j-i|}}{\sqrt{D}}",
        count="m n (the paper: m h n, without sharing)",
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
    """e_ij = (q_i . k_j) w[j - i] / sqrt(D), one scalar a signed distance.

    Starts at ones: exactly the model without positions.
    """

    Options = M2Options
    facts = Facts(
        title="M2: multiplied by signed relative scalars",
        paper=PAPER,
        equation="(12), (13)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, w_{j-i}}{\sqrt{D}}",
        count="m (2k+1); k = n-1 if unset",
    )

    @classmethod
    def shapes(cls, options: M2Options, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, 2 * cls.clip_of(options, stack) + 1)}

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        return toeplitz.take(weight, self.rows(positions), -1)


#: numbers in the largest temporary of M3: the cache of a CPU holds them; a GPU has memory, and pays for each launch
CHUNK = 1 << 18
CHUNK_ON_GPU = 1 << 24


class M3(RelativeTable):
    """e_ij = sum_d q_id k_jd w[j - i]_d / sqrt(D), one vector a signed distance.

    Starts at ones: exactly the model without positions. No matrix product gives it: some queries at a time,
    and again in the backward. Where a clip leaves distances that share a vector, those are two products.
    """

    Options = M2Options
    facts = Facts(
        title="M3: multiplied by signed relative vectors",
        paper=PAPER,
        equation="(14), (15)",
        formula=r"e_{ij} = \frac{\sum_d q_{id}\, k_{jd}\, a_{ijd}}{\sqrt{D}},\quad a_{ij} = w_{j-i}",
        count="m (2k+1) d/h; k = n-1 if unset",
    )
    no_decay = ("weight",)  # as M1 and M2

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        scale, table, rows = self.stack.head_dim**-0.5, promoted(layer.tensors["weight"]), self.rows(positions)
        if toeplitz.one_by_one(positions):
            return toeplitz.trilinear_product(q * scale, k, table, positions, rows, self.clip)
        if q.dtype not in HALF and compiled.usable(q.numel() * k.shape[2], trilinear.LEAST, q.device):
            # the vectors are scaled, not the queries, which the backward would keep once more
            made: Tensor = trilinear.TrilinearProduct.apply(q, k, (toeplitz.take(table, rows, -2) * scale).to(q.dtype))
            return made
        q = q * scale  # what a chunk reads is cast back: the gradients of all chunks are summed in float32
        if 0 < 2 * self.clip < positions.key_length:
            return self._clipped(q, k, table, positions)
        return self._by_key(q, k, toeplitz.take(table, rows, -2), positions)

    def _by_key(self, q: Tensor, k: Tensor, vectors: Tensor, positions: Positions) -> Tensor:
        """Return all products, with the vectors [1 or h, L, D] of the distances."""
        parts, stop, last = [], 0, positions.query_length
        for some in _chunks(q, positions.key_length):
            start, stop = stop, stop + some.shape[2]
            seen = positions.offset + stop if positions.causal else positions.key_length
            # a later query reads an earlier window; cut before, as the gradient of a cut has the size of the whole
            window = vectors[:, last - stop : last - start + seen - 1].to(q.dtype)
            windows = window.unfold(-2, seen, 1).transpose(-1, -2)
            part = _products(some, k[:, :, None, :seen], windows, flipped=True)
            parts.append(F.pad(part, (0, positions.key_length - seen)))
        return torch.cat(parts, -2)

    def _clipped(self, q: Tensor, k: Tensor, table: Tensor, positions: Positions) -> Tensor:
        """Return all products: with the vectors of -k and k by a product each, with those between by distance."""
        distances, clip = positions.distances, self.clip
        far = torch.matmul(q * table[:, :1].to(q.dtype), k.transpose(-1, -2))
        if not positions.causal:
            right = torch.matmul(q * table[:, -1:].to(q.dtype), k.transpose(-1, -2))
            far = torch.where(toeplitz.spread(distances < 0, positions), far, right)
        near = self._near(q, k, table[:, None, 1:-1], positions)
        by_distance = F.pad(near, (positions.key_length - clip, positions.query_length - clip))
        here = toeplitz.shift(by_distance, positions.key_length)
        return torch.where(toeplitz.spread(distances.abs() < clip, positions), here, far)

    def _near(self, q: Tensor, k: Tensor, vectors: Tensor, positions: Positions) -> Tensor:
        """Return the products of the distances from 1-k to k-1, [B, h, Q, 2k-1]; vectors [1 or h, 1, 2k-1, D]."""
        around, width = self.clip - 1, 2 * self.clip - 1
        padded = F.pad(k[:, :, max(positions.offset - around, 0) :], (0, 0, max(around - positions.offset, 0), around))
        parts, stop = [], 0
        for some in _chunks(q, width):
            start, stop = stop, stop + some.shape[2]
            windows = padded[:, :, start : stop + width - 1].unfold(-2, width, 1).transpose(-1, -2)
            parts.append(_products(some, windows, vectors.to(q.dtype)))
        return torch.cat(parts, -2)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        a = self.literal(positions, layer)
        return torch.einsum("bhid,bhjd,hijd->bhij", q, k, a) / self.stack.head_dim**0.5


def _chunks(q: Tensor, vectors: int) -> tuple[Tensor, ...]:
    """Split the queries so that each chunk, whose queries meet so many vectors, fits a cache."""
    batch, heads, _, dim = q.shape
    numbers = CHUNK if q.device.type == "cpu" else CHUNK_ON_GPU
    return q.split(max(1, numbers // max(1, batch * heads * vectors * dim)), 2)


def _products(q: Tensor, keys: Tensor, vectors: Tensor, flipped: bool = False) -> Tensor:
    """Return sum_d q_id keys_ird vectors_ird, [B, h, c, R]; in the backward the large factor is made again."""
    if not torch.is_grad_enabled():
        return _contract(q, keys, vectors, flipped)
    given = (q, keys, vectors, flipped)
    part: Tensor = checkpoint(_contract, *given, use_reentrant=False, preserve_rng_state=False)
    return part


def _contract(q: Tensor, keys: Tensor, vectors: Tensor, flipped: bool) -> Tensor:
    """Multiply q [B, h, c, D], keys [B, h, 1 or c, R, D] and vectors [1 or h, 1 or c, R, D], perhaps in reverse."""
    factor = keys * (vectors.flip(-3) if flipped else vectors)
    return torch.matmul(factor, q[..., None])[..., 0]
