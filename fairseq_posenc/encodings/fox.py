"""Implement FoX, attention with a forget gate for each token (Lin et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core import tables
from ..core.base import RELATIVE, Capabilities, Cost, Facts, Layer, PositionEncoding, StackShape
from ..core.options import Options, option
from ..ops.precision import exact_product, promoted
from ..positions import Positions


@dataclass(frozen=True)
class FoxOptions(Options):
    """Define the options of FoX."""

    later: bool = option(
        False,
        "Whether each token has a second gate, for queries before it, so that FoX works in encoders (and only there).",
    )


class Fox(PositionEncoding):
    """FoX adds to each logit the sum of log f_t over the tokens t after key j, up to query i.

    Each layer and head has a forget gate f_t = sigmoid(w·x_t + b) for each token, where x_t is the layer's input. The
    sum is the difference c_i - c_j of running sums, so only one number per token and head must be kept. At padding, log
    f is 0, so nothing is forgotten. Decoding caches the log f of earlier tokens. The logits do not change if all tokens
    are shifted.

    By default, FoX works in decoders only, because the sum has no meaning for later keys. With `later=true`, it works
    in encoders: the logit of a key j after the query i is changed by the sum of log r_t over the tokens t after i, up
    to key j, where r_t = sigmoid(w'·x_t + b') is a second gate (as in x-transformers' `DataDependentAlibi`). This
    doubles the number of parameters. The paper has no encoders.
    """

    Options = FoxOptions
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

    options: FoxOptions
    gate_weight: Tensor
    gate_bias: Tensor
    later_weight: Tensor
    later_bias: Tensor

    uses_positions = False

    costs = (Cost("mnhd", "mnh"), Cost("mhn^2", "mhn^2"))

    @property
    def capabilities(self) -> Capabilities:
        return replace(RELATIVE, bidirectional=self.options.later, causal=not self.options.later)

    @property
    def cure_for_direction(self) -> str:
        if self.options.later:
            return "Without the option later=true, fox works in a decoder."
        return "With the option later=true, fox works in an encoder."

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        gates = ("gate", "later") if options.later else ("gate",)
        shapes = {f"{gate}_weight": tables.shape("none", stack, stack.dim) for gate in gates}
        return shapes | {f"{gate}_bias": tables.shape("none", stack) for gate in gates}

    def reset_parameters(self) -> None:
        """Draw w ~ N(0, 0.02) and set b = 0, as in the authors' code, so that all gates start near 1/2."""
        for name, table in self.learned.items():
            if name.endswith("weight"):
                nn.init.normal_(table, std=0.02)
            else:
                nn.init.zeros_(table)

    def project_input(self, x: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return log f_t and, with `later`, log r_t: [B, T, d] -> [B, h, T, 1 or 2], in at least float32."""
        log_gates = [self._log_gates(x, positions, layer, gate) for gate in ("gate", "later")[: 1 + self.options.later]]
        return torch.stack(log_gates, -1)

    def _log_gates(self, x: Tensor, positions: Positions, layer: Layer, gate: str) -> Tensor:
        weight, bias = layer.tensors[f"{gate}_weight"], layer.tensors[f"{gate}_bias"]
        gates = exact_product(x, weight.t()) + promoted(bias)  # [B, T, h]
        log_gates = F.logsigmoid(gates).transpose(1, 2)
        if positions.padding is None:
            return log_gates
        return log_gates.masked_fill(positions.padding[:, None, -x.shape[1] :], 0.0)

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        sums = layer.tensors["project_input"].cumsum(-2).unbind(-1)  # over all columns up to each column, [B, h, K]
        of_queries, of_keys = sums[0][..., positions.offset :, None], sums[0][..., None, :]
        if not self.options.later:
            return of_queries - of_keys
        later = sums[1][..., None, :] - sums[1][..., positions.offset :, None]
        columns = torch.arange(positions.key_length, device=q.device)
        return torch.where(columns > positions.query_columns[:, None], later, of_queries - of_keys)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        queries, keys = range(positions.offset, positions.key_length), range(positions.key_length)
        log_f = self._reference_gates("gate", positions, layer)
        rows = [torch.stack([log_f[..., j + 1 : i + 1].sum(-1) for j in keys], -1) for i in queries]
        if self.options.later:
            log_r = self._reference_gates("later", positions, layer)
            later = [torch.stack([log_r[..., i + 1 : j + 1].sum(-1) for j in keys], -1) for i in queries]
            rows = [row + more for row, more in zip(rows, later, strict=True)]  # one of the two sums is empty
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + torch.stack(rows, -2)

    def _reference_gates(self, gate: str, positions: Positions, layer: Layer) -> Tensor:
        """Return the logarithms of the gates literally by the formula, [B, h, K]."""
        assert layer.inputs is not None
        weight, bias = (getattr(self, f"{gate}_{part}")[layer.rank - 1] for part in ("weight", "bias"))
        gates = torch.sigmoid(torch.einsum("btd,hd->bht", layer.inputs, weight) + bias[:, None])
        if positions.padding is not None:
            gates = torch.where(positions.padding[:, None], torch.ones_like(gates), gates)
        return gates.log()
