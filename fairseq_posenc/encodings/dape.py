"""Implement DAPE, a bias that an MLP adapts to the content of query and key (Zheng et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core.base import RELATIVE, Cost, Facts, Layer, PositionEncoding, StackShape
from ..core.options import Options, option
from ..ops.precision import exact_product, promoted
from ..positions import Positions


@dataclass(frozen=True)
class DapeOptions(Options):
    """Define the options of DAPE."""

    hidden: int = option(32, "Number of hidden units of the MLP.", between=(1, 4096), example=5)


class Dape(PositionEncoding):
    """DAPE adds f(A, B) to the logits A + B, where A is the content product and B the bias of another encoding.

    For each query and key, the MLP f reads the numbers A and B of all h heads and returns h numbers. The MLP has one
    hidden layer with the activation LeakyReLU. Each layer of the stack has its own MLP. B is the sum of the biases of
    all other encodings, for example in `kerple+dape`. DAPE is refused if no other encoding of the composition has a
    bias, or if another encoding has a term that depends on the content. DAPE treats each pair of tokens separately, so
    the capabilities of a composition depend on the other encodings.
    """

    Options = DapeOptions
    facts = Facts(
        title="DAPE: biases adapted to the content",
        family="biases",
        paper="Zheng et al. 2024 (DAPE)",
        equation="the definition of DAPE, as in the authors' code",
        formula=r"e_{ij} = a_{ij} + b_{ij} + f(a_{ij}, b_{ij}),\quad a_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}},\quad "
        r"f(a, b) = W_2\,\mathrm{LeakyReLU}(W_1 [a; b] + c_1) + c_2",
        count="m (3 h w + w + h), where w is `hidden`",
        notes="The paper combines DAPE with ALiBi, KERPLE and FIRE. Tables in the documentation show `alibi+dape`, "
        "because `alibi` has no parameters of its own. Training needs much memory: each layer keeps a float32 number "
        "for each hidden unit and each pair of tokens.",
    )
    companion = "alibi"
    options: DapeOptions

    in_weight: Tensor
    in_bias: Tensor
    out_weight: Tensor
    out_bias: Tensor

    capabilities = replace(RELATIVE, directional=False)
    uses_positions = False
    costs = (Cost("mhn^2", "mhn^2"),)
    constant_along_row = ("out_bias",)

    @classmethod
    def shapes(cls, options: DapeOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        layers, heads, hidden = stack.layers, stack.heads, options.hidden
        return {
            "in_weight": (layers, hidden, 2 * heads),
            "in_bias": (layers, hidden),
            "out_weight": (layers, heads, hidden),
            "out_bias": (layers, heads),
        }

    def reset_parameters(self) -> None:
        """Draw all parameters from U(-a, a), as in the authors' code, where torch initialises `nn.Linear`.

        Here a is one over the square root of the number of inputs.
        """
        for name, parameter in self.named_parameters():
            bound = (2 * self.stack.heads if name.startswith("in_") else self.options.hidden) ** -0.5
            nn.init.uniform_(parameter, -bound, bound)

    def adapt(self, content: Tensor, bias: Tensor, positions: Positions, layer: Layer) -> Tensor:
        heads, tensors = self.stack.heads, layer.tensors
        bias = bias.to(content.dtype).expand(-1, heads, -1, -1)
        of_content, of_bias = tensors["in_weight"].split(heads, -1)  # the bias is multiplied once for all samples
        hidden = _mixed(of_content, content) + _mixed(of_bias, bias, tensors["in_bias"])
        # In place, so that training keeps the numbers of the hidden units once, not twice.
        return _mixed(tensors["out_weight"], F.leaky_relu(hidden, inplace=True), tensors["out_bias"])

    def reference_adapt(self, content: Tensor, bias: Tensor, positions: Positions, layer: Layer) -> Tensor:
        names = ("in_weight", "in_bias", "out_weight", "out_bias")
        w1, c1, w2, c2 = (getattr(self, name)[layer.rank - 1] for name in names)
        pairs = torch.cat([content, bias.expand_as(content)], 1).permute(0, 2, 3, 1)  # [B, Q, K, 2h]
        hidden = torch.einsum("bqki,oi->bqko", pairs, w1) + c1
        hidden = torch.where(hidden > 0, hidden, 0.01 * hidden)
        return (torch.einsum("bqki,oi->bqko", hidden, w2) + c2).permute(0, 3, 1, 2)


def _mixed(weight: Tensor, x: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply the vector of each pair by `weight` and add `bias`: [o, i], [B, i, Q, K] -> [B, o, Q, K]."""
    product = exact_product(weight, x.flatten(2)).unflatten(-1, x.shape[-2:])
    return product if bias is None else product + promoted(bias)[:, None, None]
