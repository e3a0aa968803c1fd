"""Implement FIRE: a network computes a bias from the distance relative to the query's position (Li et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..core import tables
from ..core.base import ABSOLUTE, Capabilities, Facts, Layer, StackShape
from ..core.caches import CachingEncoding
from ..core.options import Options, option
from ..core.relative import SharedBias
from ..ops import compiled, shifting
from ..ops.precision import promoted
from ..positions import Positions

#: Maximum number of activations of the hidden layer at a time if every row has its own bias.
CHUNK = 2**22


@dataclass(frozen=True)
class FireOptions(Options):
    """Define the options of FIRE."""

    threshold: float = option(
        512.0,
        "Initial threshold T. Distances are measured relative to T if the position of the query is at most T, and "
        "relative to the position of the query otherwise.",
        between=(0.001, 1e6),
        example=3.0,
    )
    width: int = option(32, "Width of the hidden layer.", between=(1, 4096), example=5)
    share: str = tables.share_option("none")


class Fire(SharedBias, CachingEncoding):
    """FIRE adds f_h(log(1 + |c (i-j)|) / (log(1 + |c max(i, T)|) + 1e-6)) to the logits, with T = |l threshold|.

    The network f has `width` ReLUs and one output per head; f, c and l are learned. By default each layer has its own
    f, c and l. With share=layer-wise, all layers share f, c and l, which is the paper's FIRE-S. If heads share f
    (`share=head-wise` or `all`), f has a single output. The position i counts the tokens of its sample from 0, without
    padding. For query positions up to T, the bias depends on |i - j| alone, so an encoder cannot distinguish left from
    right. For query positions beyond T, the bias also depends on i. FIRE is therefore not shift invariant, and it does
    not support segment memory, which would change the positions. The output biases of f add the same number to all
    logits of a query. These biases have no effect after the softmax, but the paper's code contains them.
    """

    Options = FireOptions
    facts = Facts(
        title="FIRE: functional interpolation",
        family="biases",
        paper="Li et al. 2024 (FIRE)",
        equation="section 3 and the code in the appendix",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + "
        r"f_h\left(\frac{\log(|c(i-j)|+1)}{\log(|c\max(i,T)|+1)+\epsilon}\right)",
        count="m (2 + 2 w + (w + 1) h), where w is `width`. By default, the number of parameters is m (66 + 33 h).",
    )
    options: FireOptions

    c: Tensor
    multiplier: Tensor  # l
    hidden_weight: Tensor
    hidden_bias: Tensor
    output_weight: Tensor
    output_bias: Tensor

    @classmethod
    def shapes(cls, options: FireOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        (layers, heads), width = tables.copies(options.share, stack), options.width
        scalars: dict[str, tuple[int, ...]] = {"c": (layers,), "multiplier": (layers,)}
        hidden = {"hidden_weight": (layers, width), "hidden_bias": (layers, width)}
        return {**scalars, **hidden, "output_weight": (layers, heads, width), "output_bias": (layers, heads)}

    def reset_parameters(self) -> None:
        """Set c = 0.1 and l = 1, and initialise the network like `nn.Linear`, as in the paper's code."""
        nn.init.constant_(self.c, 0.1)
        nn.init.ones_(self.multiplier)
        for weight in (self.hidden_weight, self.hidden_bias):
            nn.init.uniform_(weight, -1.0, 1.0)
        for weight in (self.output_weight, self.output_bias):
            nn.init.uniform_(weight, -(self.options.width**-0.5), self.options.width**-0.5)

    @property
    def capabilities(self) -> Capabilities:
        return replace(ABSOLUTE, directional=self.stack.max_length - 1 > self.options.threshold)

    constant_along_row = ("output_bias",)

    def parts(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the bias at each distance if no position is beyond T, otherwise the parameters of each layer.

        For query positions beyond T, the bias at a distance also depends on the position of the query.
        """
        if self._within_threshold(positions):
            vectors = self.of_distances(positions, list(self.learned.values()), self._of_all_layers)
            return [{"by_distance": vector} for vector in vectors.unbind(0)]
        return [{name: promoted(x) for name, x in tensors.items()} for tensors in super().parts(positions)]

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        if "by_distance" in tensors:
            return shifting.to_pairs(tensors["by_distance"], positions)
        return self._by_row(tensors, positions)

    def small(self, part: Mapping[str, Tensor]) -> bool:
        return "by_distance" in part

    def _within_threshold(self, positions: Positions) -> bool:
        """Return whether no position is beyond T in any layer. A compiled graph cannot read T, so the result in such a
        graph is False."""
        if torch.compiler.is_compiling():
            return False
        smallest = float(promoted(self.multiplier.detach()).abs().min()) * self.options.threshold
        return positions.extent - 1 <= smallest

    def _of_all_layers(self, distances: Tensor) -> Tensor:
        """Return the biases of all layers at the given distances, [L or 1, h or 1, len(distances)]."""
        learned = self.learned
        parts = zip(*(promoted(table).unbind(0) for table in learned.values()), strict=True)
        return torch.stack([self._by_distance(dict(zip(learned, part, strict=True)), distances) for part in parts])

    def _by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        """Return the bias of one layer at the given distances, [h or 1, len(distances)]."""
        x = self._numerator(tensors, distances) / self._denominator(tensors, distances.new_zeros(()))
        return self._network(x[None, None], tensors)[0, :, 0]

    def _by_row(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        """Return the bias [1 or B, h or 1, Q, K], computed in chunks of rows because the hidden layer is large."""
        numerator = shifting.to_pairs(self._numerator(tensors, positions.distances), positions)
        x = numerator / self._denominator(tensors, positions.query_ids)[..., None]  # [1 or B, Q, K]
        if compiled.exporting():  # the number of chunks depends on the sizes, but an exported graph must not
            return self._network(x, tensors)
        rows = max(1, CHUNK // (x.shape[0] * x.shape[2] * self.options.width))
        if rows >= x.shape[1]:
            return self._network(x, tensors)
        parts = [
            checkpoint(self._network, part, tensors, use_reentrant=False, preserve_rng_state=False)
            for part in x.split(rows, 1)
        ]
        return torch.cat(parts, 2)

    @staticmethod
    def _numerator(tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        """Return the numerator of the network's input, [len(distances)]."""
        return torch.log1p(tensors["c"].abs() * distances.abs())

    def _denominator(self, tensors: Mapping[str, Tensor], ids: Tensor) -> Tensor:
        """Return the denominator of the network's input for queries at the positions `ids`, in the shape of `ids`."""
        c, threshold = tensors["c"].abs(), tensors["multiplier"].abs() * self.options.threshold
        return torch.log1p(c * torch.maximum(ids.to(c.dtype), threshold)) + 1e-6

    @staticmethod
    def _network(x: Tensor, tensors: Mapping[str, Tensor]) -> Tensor:
        """Apply f: [B, Q, K] -> [B, h or 1, Q, K]."""
        named = ("hidden_weight", "hidden_bias", "output_weight", "output_bias")
        weight, bias, output_weight, output_bias = (tensors[name] for name in named)
        with torch.autocast(x.device.type, enabled=False):  # autocast would round distances to half precision
            hidden = torch.relu(x[..., None] * weight + bias)
            return (torch.matmul(hidden, output_weight.t()) + output_bias).movedim(-1, 1)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        own, heads = (layer.rank - 1) % len(self.c), self.stack.heads
        c, threshold = self.c[own], (self.multiplier[own] * self.options.threshold).abs()
        i = positions.query_ids[..., None].to(q.dtype)  # [Q, 1] or [B, Q, 1]
        relative = torch.log((c * positions.delta).abs() + 1) / (torch.log((c * i.maximum(threshold)).abs() + 1) + 1e-6)
        relative = relative.reshape(-1, 1, *positions.delta.shape)  # [1 or B, 1, Q, K]
        f = tables.of_layer(self.output_bias, layer.rank, heads)[:, None, None]
        for weight, bias, out in zip(
            self.hidden_weight[own],
            self.hidden_bias[own],
            tables.of_layer(self.output_weight, layer.rank, heads).unbind(-1),
            strict=True,
        ):
            f = f + out[:, None, None] * (weight * relative + bias).clamp(min=0)
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + f
