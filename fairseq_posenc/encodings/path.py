"""Implement PaTH attention, in which each token reflects the keys before it (Yang et al. 2025)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core import tables
from ..core.base import RELATIVE, Cost, Facts, Layer, PositionEncoding, StackShape
from ..core.options import Options, option
from ..ops.precision import exact_product, promoted
from ..positions import Positions

#: Number that is added to the squared length of w before the division, as in the authors' code.
EPSILON = 1e-6
#: Number of keys in a block; see `Path.scores`.
BLOCK = 64


@dataclass(frozen=True)
class PathOptions(Options):
    """Define the options of PaTH attention."""

    rank: int = option(
        32, "Rank r of the matrix that computes the vectors w from the layer's input.", between=(1, 4096), example=3
    )


class Path(PositionEncoding):
    """PaTH attention multiplies keys by a matrix of each later token: e_ij = q_i·H_i ... H_(j+1) k_j / sqrt(D).

    Each token t has a matrix H_t = I - b_t w_t w_t^T for each head, which multiplies the part of a vector along w_t by
    1 - b_t, a number between -1 and 1. The vector w_t of length 1 is U V x_t divided by its length, and
    b_t = 2 sigmoid(u·x_t + c), where x_t is the layer's input.

    - Index: the product runs over t = j + 1 to i, so the key of the query itself is not changed.
    - Parameters: V [r, d] for each layer, and U [D, r], u and c for each head of each layer, m (2 r d + h (d + 1))
      numbers. U, V and u are drawn from N(0, 0.02), and c starts at 0. The initial b_t are therefore near 1.
    - At padding, H is the identity. Decoding caches sqrt(b_t) w_t of earlier tokens, D numbers per token and head,
      beside keys and values. Segment memory and documents work: only the matrices between key and query count. PaTH
      works in decoders only, because the product has no meaning for later keys.
    - The scores replace the product of query and key, so `path` cannot be combined with `rope`. `path+fox` is the
      variant PaTH-FoX of the paper.
    - The products are computed by triangular systems of equations. ONNX has no operator that solves them, so models
      with PaTH cannot be exported to ONNX.

    Golden values for D = 1, q = k = 1 and b = 1, 1/2, 3/2 and 3/4 of four tokens: the logits of the last query are
    -1/16, -1/8, 1/4 and 1.
    """

    Options = PathOptions
    facts = Facts(
        title="PaTH: products of Householder matrices",
        family="multiplicative",
        paper="Yang et al. 2025 (PaTH attention)",
        equation="the definition of the attention logit in section 2",
        formula=r"e_{ij} = \frac{1}{\sqrt{D}}\, q_i^\top \left(\prod_{t=i}^{j+1} H_t\right) k_j,\quad "
        r"H_t = I - b_t w_t w_t^\top,\quad b_t = 2 \sigma(u_h \cdot x_t + c_h)",
        count="m (2 r d + h (d + 1)), where r is the option `rank`",
        notes="The paper's models also compute w from the last three tokens by a convolution, which is left out here.",
    )
    options: PathOptions

    down_weight: Tensor
    up_weight: Tensor
    gate_weight: Tensor
    gate_bias: Tensor

    capabilities = replace(RELATIVE, bidirectional=False)
    uses_positions = False
    costs = (Cost("mn^2d", "mhn^2"),)

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {
            "down_weight": tables.shape("head-wise", stack, options.rank, stack.dim),
            "up_weight": tables.shape("none", stack, stack.head_dim, options.rank),
            "gate_weight": tables.shape("none", stack, stack.dim),
            "gate_bias": tables.shape("none", stack),
        }

    def reset_parameters(self) -> None:
        """Draw U, V and u from N(0, 0.02), and set c = 0, so that b starts near 1."""
        for weight in (self.down_weight, self.up_weight, self.gate_weight):
            nn.init.normal_(weight, std=0.02)
        nn.init.zeros_(self.gate_bias)

    def project_input(self, x: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return sqrt(b_t) w_t, so that H_t is 1 minus its square: [B, T, d] -> [B, h, T, D], in at least float32."""
        down, up = layer.tensors["down_weight"][0], layer.tensors["up_weight"]
        directions = exact_product(exact_product(x, down.t()), up.flatten(0, 1).t()).unflatten(-1, up.shape[:2])
        gates = exact_product(x, layer.tensors["gate_weight"].t()) + promoted(layer.tensors["gate_bias"])  # [B, T, h]
        roots = ((F.logsigmoid(gates) + math.log(2)) / 2).exp()[..., None]  # finite gradients, however small b is
        lengths = (directions.square().sum(-1, keepdim=True) + EPSILON).sqrt()
        vectors = (roots * directions / lengths).transpose(1, 2)
        if positions.padding is not None:
            vectors = vectors.masked_fill(positions.padding[:, None, -x.shape[1] :, None], 0.0)
        return vectors

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the logits, computed by the UT transform of the paper in blocks of keys, from right to left.

        The queries move to the left: when a block begins, row i of `moved` is H_(e+1) ... H_i q_i, where e is the last
        column of the block. With w scaled by sqrt(b), the logits in the block are moved_i·k_j - sum_t a_it w_t·k_j over
        t > j in the block, where a_it = w_t·H_(t+1) ... H_e moved_i solves a_it + sum_(s>t) a_is w_s·w_t = moved_i·w_t.
        A token does not move the queries before it.
        """
        w, keys = layer.tensors["project_input"], torch.arange(positions.key_length, device=q.device)
        moved, k = promoted(q) * self.stack.head_dim**-0.5, promoted(k)
        # A compiled graph serves all lengths, so it cannot have a loop whose number of blocks depends on the length.
        size = positions.key_length if torch.compiler.is_compiling() else BLOCK
        blocks = []
        for w_t, k_j, columns in reversed(list(zip(w.split(size, 2), k.split(size, 2), keys.split(size), strict=True))):
            seen = columns <= positions.query_columns[:, None]
            a = torch.linalg.solve_triangular(
                exact_product(w_t, w_t.mT),
                exact_product(moved, w_t.mT) * seen,
                upper=False,
                left=False,
                unitriangular=True,
            )  # [B, h, Q, columns]
            later = columns < columns[:, None]
            blocks.append(exact_product(moved, k_j.mT) - exact_product(a, exact_product(w_t, k_j.mT) * later))
            moved = moved - exact_product(a, w_t)
        return torch.cat(blocks[::-1], -1)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        assert layer.inputs is not None
        down, up, gate, c = (getattr(self, name)[layer.rank - 1] for name in self.shapes(self.options, self.stack))
        w = torch.einsum("hcr,rd,btd->bhtc", up, down[0], layer.inputs)
        w = w / (w.square().sum(-1, keepdim=True) + EPSILON).sqrt()
        b = 2 * torch.sigmoid(torch.einsum("hd,btd->bht", gate, layer.inputs) + c[:, None])
        if positions.padding is not None:
            b = b.masked_fill(positions.padding[:, None], 0.0)
        one, keys, rows = torch.eye(w.shape[-1], dtype=w.dtype), list(k.unbind(2)), []
        for i in range(positions.key_length):
            matrix = one - b[:, :, i, None, None] * torch.einsum("bhc,bhd->bhcd", w[:, :, i], w[:, :, i])  # H_i
            keys[:i] = [torch.einsum("bhcd,bhd->bhc", matrix, key) for key in keys[:i]]
            if i >= positions.offset:
                rows.append(torch.einsum("bhd,bhjd->bhj", q[:, :, i - positions.offset], torch.stack(keys, 2)))
        return torch.stack(rows, 2) / self.stack.head_dim**0.5
