"""Measure the attention of a stack while it trains: the largest logit, the entropy of the weights, and table norms.

Legend: B batch, h heads, Q queries, K keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..core.compose import LayerView
from ..positions import Positions
from .choice import Projected
from .formula import logits
from .module import SelfAttention


@dataclass
class LayerStatistics:
    """Hold what was measured in the forward passes of one layer.

    Args:
        attention: The self-attention of the layer.
        table_norm: Euclidean norm of the parameters of the encoding that the layer uses; see `table_norm`.
        largest: Largest logit of a real token and a key that it may see, float32 or float64 without axes.
        entropy: Sum of the entropies of the attention weights of all real tokens and heads, in nats.
        rows: Number of these tokens times the number of heads.
    """

    attention: SelfAttention
    table_norm: Tensor
    largest: Tensor
    entropy: Tensor
    rows: Tensor

    @property
    def name(self) -> str:
        """Return the name of the layer, such as `encoder_1`."""
        view = self.attention.view
        return f"{'decoder' if view.encoding.stack.causal else 'encoder'}_{view.index}"

    def add(self, x: Projected, call: LayerView) -> None:
        """Add one forward pass. The attention is computed explicitly, whatever path the layer takes itself."""
        largest, entropy, rows = _of_pass(x, call)
        self.largest = torch.maximum(self.largest, largest.double())
        self.entropy, self.rows = self.entropy + entropy.double(), self.rows + rows


@contextmanager
def measuring(model: nn.Module) -> Iterator[list[LayerStatistics]]:
    """Measure every forward pass of each self-attention of a model in a `with` block."""
    modules = [m for m in model.modules() if isinstance(m, SelfAttention)]
    layers = [_begun(module) for module in modules]
    for layer in layers:
        layer.attention.watch = layer.add
    try:
        yield layers
    finally:
        for module in modules:
            module.watch = None


def _begun(attention: SelfAttention) -> LayerStatistics:
    zero = torch.zeros((), dtype=torch.float64, device=attention.q_proj.weight.device)
    return LayerStatistics(attention, table_norm(attention.view), zero - math.inf, zero, zero)


@torch.no_grad()
def table_norm(view: LayerView) -> Tensor:
    """Return the Euclidean norm of the parameters of the encoding that a layer uses, as float64 without axes.

    If a table has a part for each layer, only the part of this layer counts. All other parameters count in every layer
    in which their encoding is active.
    """
    squares = [torch.zeros((), dtype=torch.float64)]
    for name, member in view.members.items():
        rank = view.layers[name].rank
        for parameter, values in member.learned.items():
            part = values[(rank - 1) % len(values)] if parameter in member.layer_tables else values
            squares.append(part.double().square().sum())
    return sum(squares[1:], squares[0].to(squares[-1].device)).sqrt()


@torch.no_grad()
def _of_pass(x: Projected, call: LayerView) -> tuple[Tensor, Tensor, Tensor]:
    """Return three numbers over all rows [B, h, Q] except those of `_ignored`: the largest logit, the sum of the
    entropies, and the number of rows."""
    scores = logits(x, call).expand(x.q.shape[0], x.q.shape[1], -1, -1)
    if x.positioned and call.positions.forbidden is not None:
        scores = scores.masked_fill(call.positions.forbidden, -math.inf)
    ignored = _ignored(call.positions)
    if ignored is None:
        rows = scores.new_tensor(scores[..., 0].numel(), dtype=torch.float64)
    else:
        ignored = ignored.expand(*scores.shape[:3], 1)
        rows = (~ignored).sum(dtype=torch.float64)
    entropies = torch.special.entr(scores.softmax(-1)).sum(-1, keepdim=True)
    if ignored is not None:
        scores, entropies = scores.masked_fill(ignored, -math.inf), entropies.masked_fill(ignored, 0.0)
    return scores.amax(), entropies.sum(dtype=torch.float64), rows


def _ignored(positions: Positions) -> Tensor | None:
    """Return which queries are padding or have no allowed key, [B, 1, Q, 1] bool; None if there is no padding."""
    if positions.padding is None:
        return None
    pads = positions.padding[:, None, positions.offset :, None]
    return pads if positions.empty_rows is None else pads | positions.empty_rows


def values_of(layers: Sequence[LayerStatistics]) -> dict[str, float]:
    """Return the statistics by name, such as `largest_logit_encoder_1`; layers that did not run are left out."""
    values: dict[str, float] = {}
    for layer in layers:
        if layer.rows:
            values[f"largest_logit_{layer.name}"] = float(layer.largest)
            values[f"entropy_{layer.name}"] = float(layer.entropy / layer.rows)
            if any(member.learned for member in layer.attention.view.members.values()):
                values[f"table_norm_{layer.name}"] = float(layer.table_norm)
    return values
