"""Implement Wall attention, with a forget gate for each token and feature (Tilde Research 2026)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core import tables
from ..core.base import RELATIVE, Cost, Facts, Layer, PositionEncoding, StackShape
from ..ops.precision import exact_product, promoted
from ..positions import Positions

#: Number of queries in a block; see `Wall.scores`. A single query is a block of its own.
BLOCK = 16


class Wall(PositionEncoding):
    """Wall attention lets each feature of a key fade: e_ij = sum_c q_ic k_jc f_(j+1)c ... f_ic / sqrt(D).

    Each feature c of each head has a forget gate f_tc = sigmoid(w_c·x_t + b_c) for each token t, where x_t is the
    layer's input. A feature of key j is multiplied by the gates of the tokens after j, up to query i. FoX adds the
    logarithm of one gate per head to the whole logit instead; `wall+fox` does both.

    - Index: the product runs over t = j + 1 to i, so the key of the query itself is not faded.
    - Parameters: w and b for each feature of each layer and head, m d (d + 1) numbers. w is drawn from N(0, 0.02), and
      b starts at 8, as in the authors' code, so that the gates start near 1 and attention as without positions.
    - At padding, all gates are 1, so nothing is forgotten. Decoding caches the logarithms of the gates of earlier
      tokens, D numbers per token and head, beside keys and values. Segment memory and documents work: only the gates
      between key and query count. Wall works in decoders only, because the product has no meaning for later keys.
    - The scores replace the product of query and key, so `wall` cannot be combined with `rope`.

    Golden values for D = 1, q = k = 1 and the gates 1/2, 3/4, 1/4 and 1/2 of four tokens: the logits of the last query
    are 3/32, 1/8, 1/2 and 1.
    """

    facts = Facts(
        title="Wall: forget gates for features",
        family="multiplicative",
        paper="Tilde Research 2026 (Wall Attention)",
        equation="the logit in flash-linear-attention's `WallAttention`",
        formula=r"e_{ij} = \frac{1}{\sqrt{D}} \sum_{c=1}^{D} q_{ic} k_{jc} \prod_{t=j+1}^{i} f_{tc},\quad "
        r"f_{tc} = \sigma(w_{hc} \cdot x_t + b_{hc})",
        count="m d (d + 1)",
        notes="The authors' models also have output gates and norms of queries and keys, which are left out, because "
        "they are not position encodings.",
    )

    gate_weight: Tensor
    gate_bias: Tensor

    capabilities = replace(RELATIVE, bidirectional=False)
    uses_positions = False
    costs = (Cost("mnd^2", "mnd"), Cost("mn^2d", "mhn^2"))

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {
            "gate_weight": tables.shape("none", stack, stack.head_dim, stack.dim),
            "gate_bias": tables.shape("none", stack, stack.head_dim),
        }

    def reset_parameters(self) -> None:
        """Draw w ~ N(0, 0.02) and set b = 8, as in the authors' code, so that all gates start near 1."""
        nn.init.normal_(self.gate_weight, std=0.02)
        nn.init.constant_(self.gate_bias, 8.0)

    def project_input(self, x: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return log f_tc, [B, T, d] -> [B, h, T, D], in at least float32."""
        weight, bias = layer.tensors["gate_weight"], layer.tensors["gate_bias"]
        gates = exact_product(x, weight.flatten(0, 1).t()).unflatten(-1, bias.shape) + promoted(bias)  # [B, T, h, D]
        log_gates = F.logsigmoid(gates).transpose(1, 2)
        if positions.padding is not None:
            log_gates = log_gates.masked_fill(positions.padding[:, None, -x.shape[1] :, None], 0.0)
        return log_gates

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the logits, computed in blocks of C queries, so that no exponential exceeds 1.

        With the running sums P of log f, the factor of a feature is exp(P_i - P_j). For keys up to the first query a of
        a block, it is split into exp(P_i - P_a) and exp(P_a - P_j). Both exponents are at most 0. The pairs within a
        block are computed one by one.
        """
        sums = layer.tensors["project_input"].cumsum(-2)  # P, [B, h, K, D]
        q, k = promoted(q) * self.stack.head_dim**-0.5, promoted(k)
        first, length = positions.offset, positions.query_length
        size = 1 if length == 1 else BLOCK
        of_queries, own_sums, own_keys = (_blocks(x, size) for x in (q, sums[:, :, first:], k[:, :, first:]))
        starts = own_sums[..., :1, :]  # P_a of each block, [B, h, blocks, 1, D]
        faded_q = of_queries * _fading(own_sums - starts)
        faded_k = k[:, :, None] * _fading(starts - sums[:, :, None])  # [B, h, blocks, K, D]
        across = faded_q @ faded_k.mT  # [B, h, blocks, C, K], right for the keys before the block
        pairs = _fading(own_sums[..., :, None, :] - own_sums[..., None, :, :])  # [B, h, blocks, C, C, D]
        within = torch.einsum("bhnid,bhnjd,bhnijd->bhnij", of_queries, own_keys, pairs)
        count = own_keys.shape[2]
        own = F.pad(across[..., first:], (0, count * size - length))
        own = own.unflatten(-1, (count, size))  # [B, h, blocks, C, blocks, C]
        blocks = torch.arange(count, device=q.device)
        same = (blocks[:, None] == blocks)[:, None, :, None]
        own = torch.where(same, within[..., None, :], own).flatten(-2).flatten(2, 3)
        return torch.cat([across.flatten(2, 3)[:, :, :length, :first], own[:, :, :length, :length]], -1)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        assert layer.inputs is not None
        weight, bias = self.gate_weight[layer.rank - 1], self.gate_bias[layer.rank - 1]
        gates = torch.sigmoid(torch.einsum("btd,hcd->bhtc", layer.inputs, weight) + bias[:, None])
        if positions.padding is not None:
            gates = torch.where(positions.padding[:, None, :, None], torch.ones_like(gates), gates)
        rows = []
        for row, i in enumerate(range(positions.offset, positions.key_length)):
            kept = [gates[:, :, j + 1 : i + 1].prod(2) for j in range(positions.key_length)]
            rows.append(torch.einsum("bhc,bhjc,bhjc->bhj", q[:, :, row], k, torch.stack(kept, 2)))
        return torch.stack(rows, 2) / self.stack.head_dim**0.5


def _blocks(x: Tensor, size: int) -> Tensor:
    """Split the queries' axis into blocks of C = `size` queries, [B, h, Q, D] -> [B, h, blocks, C, D].

    The last block may end with zeros.
    """
    count = (x.shape[2] + size - 1) // size
    rows = x.contiguous()  # padding by no rows would keep other strides, which a graph for all lengths does not expect
    return F.pad(rows, (0, 0, 0, count * size - x.shape[2])).unflatten(2, (count, size))


def _fading(exponents: Tensor) -> Tensor:
    """Return exponentials of numbers that are at most 0, except where the result is not used."""
    return exponents.clamp(max=0).exp()
