"""Implement Transformer-XL's vectors of distances, which are projected from fixed sinusoids (Dai et al. 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core import tables
from ..core.base import Facts, Layer, StackShape, give
from ..core.caches import CachingEncoding, GrownTables
from ..core.options import Options, option
from ..core.starts import draw
from ..ops import toeplitz
from ..ops.precision import promoted
from ..positions import Positions


@dataclass(frozen=True)
class XLOptions(Options):
    """Define the options of Transformer-XL and GCDF, which project a fixed encoding of the distance."""

    clamp: int | None = option(
        None,
        "Largest distance with an encoding of its own; longer distances use the encoding of this distance "
        "(Transformer-XL's clamp_len; unset: no limit).",
        between=(1, 10_000_000),
        example=2,
    )
    biases: str = option(
        "untied",
        "Biases u and v: one pair per layer (untied, as in XLNet), one pair for all layers (tied, as in "
        "Transformer-XL), or no biases (none).",
        choices=("untied", "tied", "none"),
    )
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class XL(CachingEncoding):
    """Transformer-XL projects sinusoids of the distance: e_ij = [(q_i + u)·k_j + (q_i + v)·W_r R_{i-j}] / sqrt(D).

    R_p [d] holds the sines and cosines of p, with all sines first. Each layer has its own W_r [d, d], in which row
    h D + c is for feature c of head h. u and v are [h, D]; `biases` sets whether layers share them. The option
    `init` applies to W_r. u and v start at zero instead of Transformer-XL's N(0, 0.02), so that no key is preferred at
    first. Transformer-XL also applies dropout to R; this is not implemented, because encodings do not know the dropout
    rate of the model.
    """

    Options = XLOptions
    facts = Facts(
        title="Transformer-XL: projected sinusoids of the distance",
        family="relative vectors",
        paper="Dai et al. 2019, section 3.3; without u and v: Huang et al. 2020 (M1-M4)",
        equation="section 3.4",
        formula=r"e_{ij} = \frac{(q_i + u) \cdot k_j + (q_i + v) \cdot W_r R_{i-j}}{\sqrt{D}}",
        count="m (d^2 + 2 d). With `biases=tied`, the number of parameters is m d^2 + 2 d. With `biases=none`, the "
        "number of parameters is m d^2.",
    )
    options: XLOptions
    reads_keys = False

    def __init__(self, options: XLOptions, stack: StackShape) -> None:
        super().__init__(options, stack)
        self._fixed = GrownTables()

    def reset_parameters(self) -> None:
        """Draw W_r according to the options, by default from N(0, 0.02), and set u and v to zero."""
        draw(self.weight[:, None], self.options.init, self.options.init_std)
        for name in self._biases:
            nn.init.zeros_(getattr(self, name))

    @property
    def _biases(self) -> tuple[str, ...]:
        return () if self.options.biases == "none" else ("u", "v")

    @property
    def unused_hooks(self) -> frozenset[str]:
        return frozenset() if self._biases else frozenset({"project_q"})

    @classmethod
    def shapes(cls, options: XLOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        biases = (stack.layers if options.biases == "untied" else 1, stack.heads, stack.head_dim)
        names = () if options.biases == "none" else ("u", "v")
        return {"weight": (stack.layers, stack.dim, stack.dim), **dict.fromkeys(names, biases)}

    # -- the vectors of distances ----------------------------------------------------------------------

    def encode(self, p: Tensor) -> Tensor:
        """Return R in float64 for p = i - j of either sign, [N] -> [N, d]."""
        half = (self.stack.dim + 1) // 2
        pairs = torch.arange(half, dtype=torch.float64, device=p.device)
        speeds = torch.exp(pairs * (-2 * math.log(10000.0) / self.stack.dim))
        angles = p[:, None] * speeds
        return torch.cat([angles.sin(), angles.cos()], -1)[:, : self.stack.dim]

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the projected encodings r = W_r R of all distances that occur, and the biases u and v."""
        by_layer = [{"r": r} for r in self._vectors(positions).unbind(0)]
        for name in self._biases:
            give(by_layer, name, getattr(self, name))
        return by_layer

    def _vectors(self, positions: Positions) -> Tensor:
        """Return W_r R for all distances, [L, h, Q+K-1, D].

        The result is computed once per forward pass and cached in evaluation mode.
        """
        if positions.ids is not None:
            weight = promoted(self.weight)
            p = -positions.distances.to("cpu", torch.float64)
            return self._with_weight(self.encode(self._clamped(p)).to(weight), weight)
        vectors, n = self._cache.get(
            positions.key_length, [self.weight], self._projected, positions, training=self.training
        )
        first = n - positions.key_length
        return vectors[:, :, first : first + positions.key_length + positions.query_length - 1]

    def _projected(self, n: int) -> Tensor:
        """Return W_r R for the distances j - i from -(n-1) to n-1, [L, h, 2n-1, D].

        R stays in float32 until it is projected, because large distances would have equal rows in bfloat16.
        """
        weight = promoted(self.weight)
        return self._with_weight(self._fixed_rows(n, weight), weight)

    def _with_weight(self, fixed: Tensor, weight: Tensor) -> Tensor:
        """Return W_r R, [L, h, N, D], for R [N, d] and the weight W_r in at least float32."""
        with torch.autocast(weight.device.type, enabled=False):
            vectors = F.linear(fixed, weight.flatten(0, 1))
        vectors = vectors.unflatten(-1, (self.stack.layers, self.stack.heads, self.stack.head_dim))
        return vectors.permute(1, 2, 0, 3).to(self.weight.dtype, memory_format=torch.contiguous_format)

    def _fixed_rows(self, n: int, like: Tensor) -> Tensor:
        """Return R [2n-1, d] for the distances j - i from -(n-1) to n-1, with the dtype and device of `like`."""
        (table,) = self._fixed.get(2 * n - 1, 2 * self.stack.max_length - 1, like.device, like.dtype, self._encoded)
        middle = len(table) // 2
        return table[middle - n + 1 : middle + n]

    def _encoded(self, rows: int) -> tuple[Tensor]:
        """Return R with an odd number of rows, at least `rows`; the row of j - i = 0 is in the middle."""
        p = torch.arange(rows // 2, -(rows // 2) - 1, -1, dtype=torch.float64)
        return (self.encode(self._clamped(p)),)

    def _clamped(self, p: Tensor) -> Tensor:
        longest = self.options.clamp
        return p if longest is None else p.clamp(-longest, longest)

    # -- hooks -----------------------------------------------------------------------------------------

    def project_q(self, q: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return q + layer.tensors["u"][:, None].to(q.dtype)

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        if "v" in layer.tensors:
            q = q + layer.tensors["v"][:, None].to(q.dtype)
        r = layer.tensors["r"]
        return toeplitz.query_product(q * self.stack.head_dim**-0.5, r, positions, slice(0, r.shape[-2]))

    # -- literal references ----------------------------------------------------------------------------

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        heads, dim = self.stack.heads, self.stack.head_dim
        fixed = self.reference_encode(self._clamped(-positions.delta)).to(q.dtype)  # [Q, K, d]
        weight = self.weight[layer.rank - 1].reshape(heads, dim, -1)
        r = torch.einsum("hcd,ijd->hijc", weight, fixed)
        u, v = (self._reference_bias(name, layer, q) for name in ("u", "v"))
        content = torch.einsum("bhic,bhjc->bhij", q + u, k)
        return (content + torch.einsum("bhic,hijc->bhij", q + v, r)) / dim**0.5

    def reference_encode(self, p: Tensor) -> Tensor:
        """Return R_p, computed literally by the paper's formula, p [Q, K] -> [Q, K, d]."""
        half = (self.stack.dim + 1) // 2
        angles = [p.double() / 10000 ** (2 * c / self.stack.dim) for c in range(half)]
        rows = [angle.sin() for angle in angles] + [angle.cos() for angle in angles]
        return torch.stack(rows[: self.stack.dim], -1)

    def _reference_bias(self, name: str, layer: Layer, q: Tensor) -> Tensor:
        """Return the bias u or v of a layer, [h, 1, D], or zero if the encoding has no biases."""
        if not self._biases:
            return q.new_zeros(())
        return tables.of_layer(getattr(self, name), layer.rank, self.stack.heads)[:, None]
