"""Compute TUPE as in its authors' code (Ke et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from ..core import tables
from ..core.base import Capabilities, Cost, Layer, StackShape
from ..core.refusal import InputError
from ..ops.precision import exact_product, promoted
from ..positions import Positions
from .t5 import bucket, literal_bucket
from .tupe import Tupe, TupeOptions, resets

#: Number of T5's buckets and the distance from which all larger distances share the last bucket.
BUCKETS, MAX_DISTANCE = 32, 128
#: Number that the layer norm adds to variances.
EPSILON = 1e-5


class OriginalTupe(Tupe):
    """Learn p [n, d] with a layer norm, U^Q and U^K [d, d] with biases, and a scalar for each of T5's 32 buckets.

    All layers share all parameters, so the option `share` is refused. With reset, p has an additional first row
    p_0, which is used for theta_1 only: theta_1 = (p_0 U^Q)·(p_0 U^K) / sqrt(2D) + b_16. theta_2 is computed in the
    same way from the first position and b_32. With `form=original`, reset changes the absolute part and the relative
    part separately. No distance falls into bucket 16 or 32; these buckets are used for the reset only.
    """

    norm_weight: Tensor
    norm_bias: Tensor
    u_q_bias: Tensor
    u_k_bias: Tensor

    def __init__(self, options: TupeOptions, stack: StackShape) -> None:
        super().__init__(options, stack)
        tables.refuse_sharing(options.share)

    @classmethod
    def _check_start(cls, options: TupeOptions) -> None:
        super()._check_start(options)
        if options.init == "ones":
            raise InputError(
                "init=ones works with form=paper only. With form=original, the layer norm turns a table of equal "
                "numbers into zeros, so the table would never learn: choose another init"
            )

    @classmethod
    def shapes(cls, options: TupeOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        extra, dim = int(resets(options, stack)), stack.dim
        shapes: dict[str, tuple[int, ...]] = {"weight": (stack.max_length + extra, dim)}
        shapes |= {"norm_weight": (dim,), "norm_bias": (dim,)}
        shapes |= {"u_q": (dim, dim), "u_q_bias": (dim,), "u_k": (dim, dim), "u_k_bias": (dim,)}
        if options.relative:
            shapes["scalars"] = (stack.heads, BUCKETS + extra)
        return shapes

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities. In a decoder, the relative scalars are for keys on the left only."""
        one_way = self.options.relative and self.stack.causal
        return replace(super().capabilities, bidirectional=not one_way)

    @property
    def costs(self) -> tuple[Cost, ...]:
        return Cost("n^2d", "hn^2"), Cost("mhn^2", "0")  # the products of h heads are computed once for all layers

    @property
    def constant_along_row(self) -> tuple[str, ...]:
        """Return the parameters that the softmax cancels: those of theta_1 or, without reset, the bias of U^K."""
        if not self.resets:
            return ("u_k_bias",)
        return ("weight[0]", f"scalars[..., {BUCKETS // 2}]") if self.options.relative else ("weight[0]",)

    layer_tables = ()  # all layers get the same bias

    def project(self, length: int) -> Tensor:
        """Return the projected positions; with reset, the row for theta_1 comes first."""
        extra = int(self.resets)
        p = self.rows(self.weight[extra:], torch.arange(length, device=self.weight.device))
        norm = promoted(self.norm_weight), promoted(self.norm_bias), EPSILON
        p = F.layer_norm(promoted(torch.cat([self.weight[:extra], p])), p.shape[-1:], *norm)
        factors = []
        for weight, bias in ((self.u_q, self.u_q_bias), (self.u_k, self.u_k_bias)):
            product = exact_product(p, weight.t()) + promoted(bias)
            factors.append(product.unflatten(-1, (self.stack.heads, -1)).transpose(0, 1))  # [h, rows, D]
        return torch.stack([factors[0] * (2 * self.stack.head_dim) ** -0.5, factors[1]])[:, None]

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        if not self.resets:
            return super().bias_of(tensors, positions)
        if "product" in tensors:
            product = tensors["product"]
            own = product[:, [0, 1], [0, 1]]  # [h, 2] for the additional row and position 0
            return super().bias_of({"product": product[:, 1:, 1:], "theta": own}, positions)
        projected = tensors["projected"]
        own = (projected[0, :, :2] * projected[1, :, :2]).sum(-1)
        return super().bias_of({"projected": projected[:, :, 1:], "theta": own}, positions)

    def by_distance(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        buckets = bucket(positions.distances, BUCKETS, MAX_DISTANCE, not self.stack.causal)
        return promoted(self.scalars).index_select(-1, buckets)

    def thetas(self, tensors: Mapping[str, Tensor]) -> Tensor:
        own = tensors["theta"]
        return own + promoted(self.scalars[:, [BUCKETS // 2, BUCKETS]]) if self.options.relative else own

    def reference_parts(self, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
        heads, extra = self.stack.heads, int(self.resets)
        rows = [self.literal_row(self.weight[extra:], i) for i in range(positions.extent)]
        p = torch.stack([*self.weight[:extra], *rows])
        centred = p - p.mean(-1, keepdim=True)
        p = centred / (centred.square().mean(-1, keepdim=True) + EPSILON).sqrt() * self.norm_weight + self.norm_bias
        pairs = ((self.u_q, self.u_q_bias), (self.u_k, self.u_k_bias))
        factors = [torch.stack((p @ w.t() + b).split(self.stack.head_dim, -1)) for w, b in pairs]
        absolute = torch.einsum("hid,hjd->hij", *factors) / (2 * self.stack.head_dim) ** 0.5
        thetas = absolute[:, [0, 1], [0, 1]] if self.resets and len(p) > 1 else absolute.new_zeros(heads, 2)
        relative = absolute.new_zeros(())
        if self.options.relative:
            settings = BUCKETS, MAX_DISTANCE, not self.stack.causal
            buckets = tables.pair_by_pair(positions, lambda delta: literal_bucket(delta, *settings))
            relative = self.scalars[:, buckets]
            thetas = thetas + self.scalars[:, [BUCKETS // 2, BUCKETS]] if self.resets else thetas
        return absolute[:, extra:, extra:], relative, thetas
