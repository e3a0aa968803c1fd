"""Implement FoX, attention with a forget gate for each token (Lin et al. 2025)."""

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


class Fox(PositionEncoding):
    """FoX adds to each logit the sum of log f_t over the tokens t after key j, up to query i.

    Each layer and head has a forget gate f_t = sigmoid(w·x_t + b) for each token, where x_t is the layer's input. The
    sum is the difference c_i - c_j of running sums, so only one number per token and head must be kept. At padding, log
    f is 0, so nothing is forgotten. Decoding caches the log f of earlier tokens. FoX works in decoders only, because
    the sum has no meaning for later keys. The logits do not change if all tokens are shifted.
    """

    facts = Facts(
        title="FoX: forget gates",
        family="biases",
        paper="Lin et al. 2025 (Forgetting Transformer)",
        equation="the definition of Forgetting Attention",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + \sum_{t=j+1}^{i} \log f_t,\quad "
        r"f_t = \sigma(w_h \cdot x_t + b_h)",
        count="m h (d + 1)",
        notes="`fox` alone corresponds to the paper's default models, which have no other position encoding; "
        "`rope+fox` corresponds to its models with RoPE. The paper's variant 'Pro' also has output gates, norms of "
        "queries and keys, and shifts of keys and values. `fox` leaves out these gates, norms and shifts, because "
        "they are not position encodings.",
    )
    reads_keys = False

    gate_weight: Tensor
    gate_bias: Tensor

    capabilities = replace(RELATIVE, bidirectional=False)
    uses_positions = False

    costs = (Cost("mnhd", "mnh"), Cost("mhn^2", "mhn^2"))

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {
            "gate_weight": tables.shape("none", stack, stack.dim),
            "gate_bias": tables.shape("none", stack),
        }

    def reset_parameters(self) -> None:
        """Draw w ~ N(0, 0.02) and set b = 0, as in the authors' code, so that all gates start near 1/2."""
        nn.init.normal_(self.gate_weight, std=0.02)
        nn.init.zeros_(self.gate_bias)

    def project_input(self, x: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return log f_t, [B, T, d] -> [B, h, T, 1], in at least float32."""
        weight, bias = layer.tensors["gate_weight"], layer.tensors["gate_bias"]
        gates = exact_product(x, weight.t()) + promoted(bias)  # [B, T, h]
        log_gates = F.logsigmoid(gates).transpose(1, 2)
        if positions.padding is not None:
            log_gates = log_gates.masked_fill(positions.padding[:, None, -x.shape[1] :], 0.0)
        return log_gates[..., None]

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        sums = _running_sums(layer)
        return sums[..., positions.offset :, None] - sums[..., None, :]

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        assert layer.inputs is not None
        weight, bias = self.gate_weight[layer.rank - 1], self.gate_bias[layer.rank - 1]
        gates = torch.sigmoid(torch.einsum("btd,hd->bht", layer.inputs, weight) + bias[:, None])
        if positions.padding is not None:
            gates = torch.where(positions.padding[:, None], torch.ones_like(gates), gates)
        log_gates = gates.log()
        queries, keys = range(positions.offset, positions.key_length), range(positions.key_length)
        rows = [torch.stack([log_gates[..., j + 1 : i + 1].sum(-1) for j in keys], -1) for i in queries]
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + torch.stack(rows, -2)


def _running_sums(layer: Layer) -> Tensor:
    """Return c, the sum of log f over all columns up to each column, [B, h, K]."""
    return layer.tensors["project_input"].squeeze(-1).cumsum(-1)
