"""Compare our attention with an independent implementation (the oracle, or peer) on the same numbers.

The batches have no padding, or padding on either side. The laws show that memory, caches and steps give the same.

Legend: B batch, K columns, h heads, D head width, d model width.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from fairseq_posenc.attention import SelfAttention
from fairseq_posenc.core.compose import LayerView
from fairseq_posenc.encodings import PositionEncoding, StackShape, build
from fairseq_posenc.positions import Positions

HEADS, HEAD_DIM, KEYS, LAYER = 4, 6, 9, 2
DIM = HEADS * HEAD_DIM
MODELS = "transformers.models."
CPU = torch.device("cpu")
EXACT, ROUNDED = 1e-10, 1e-6  # for peers that compute in float64, and for peers that compute a part in float32
CLEARLY = 1e-2  # a wrong sign or index makes a far larger difference than rounding

Peer = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]  # x, additive mask -> output, weights
both_directions = pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])


def oracle(module: str) -> ModuleType:
    """Import a peer. If it is missing, fail in an environment that claims to be complete, otherwise skip."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if os.environ.get("POSENC_REQUIRE_ORACLES", "0") not in ("", "0"):
            pytest.fail(f"the oracle {module} is missing though POSENC_REQUIRE_ORACLES is set: {error}")
        pytest.skip(f"the oracle {module} is not installed (extra: test): {error}")


@dataclass
class Problem:
    """Hold the input of both implementations: x [B, K, d], positions of K columns, and padding [B, K]."""

    x: Tensor
    padding: Tensor
    causal: bool

    @classmethod
    def of(cls, dim: int, *, causal: bool, pads: str = "none") -> Problem:
        """Return three samples with 0, 1 and 3 columns of padding on the side `pads`: none, left or right."""
        x = torch.randn(3, KEYS, dim, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        columns = torch.arange(KEYS).expand(3, -1)
        number = torch.tensor([0, 1, 3])[:, None]
        return cls(x, {"none": columns < 0, "left": columns < number, "right": columns >= KEYS - number}[pads], causal)

    @property
    def mask(self) -> Tensor:
        """Return the additive mask, which is 0 or -inf, [B, 1, K, K]."""
        forbidden = self.padding[:, None, :].expand(-1, KEYS, -1)
        if self.causal:
            forbidden = forbidden | torch.ones(KEYS, KEYS, dtype=torch.bool).triu(1)
        return torch.zeros_like(forbidden, dtype=self.x.dtype).masked_fill(forbidden, float("-inf"))[:, None]

    @property
    def positions(self) -> Positions:
        """Return the positions of all columns."""
        padding = self.padding if bool(self.padding.any()) else None
        return Positions(KEYS, KEYS, CPU, causal=self.causal, padding=padding)


class Mine(nn.Module):
    """Hold our self-attention as layer 2 of 2, with large random parameters, so that a wrong one makes a difference."""

    def __init__(
        self,
        spec: str,
        args: str = "",
        *,
        heads: int = HEADS,
        head_dim: int = HEAD_DIM,
        max_length: int = 12,
        causal: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        stack = StackShape(LAYER, heads, heads * head_dim, max_length, causal=causal)
        self.pos = build(spec, args, stack)
        self.attention = SelfAttention(stack.dim, heads, bias=bias)
        self.attention.use(self.pos, LAYER)
        generator = torch.Generator().manual_seed(7)
        for parameter in self.pos.parameters():
            nn.init.normal_(parameter, generator=generator)
        self.double().eval().requires_grad_(False)

    @property
    def encoding(self) -> PositionEncoding:
        """Return the only member of the composition."""
        (member,) = self.pos.members.values()
        return member

    @property
    def table(self) -> Tensor:
        """Return this layer's part of `weight`, [1 or h, ...], for reading and writing."""
        return self.encoding.weight[-1]

    def copy(self, q: nn.Linear, k: nn.Linear, v: nn.Linear, out: nn.Linear | None = None) -> None:
        """Take a peer's projections; a peer without output projection has the identity."""
        mine = self.attention
        for ours, theirs in ((mine.q_proj, q), (mine.k_proj, k), (mine.v_proj, v)):
            ours.load_state_dict(theirs.state_dict())
        if out is not None:
            mine.out_proj.load_state_dict(out.state_dict())
        else:
            nn.init.eye_(mine.out_proj.weight)
            nn.init.zeros_(mine.out_proj.bias)

    def call(self, positions: Positions) -> LayerView:
        """Return the hooks of this layer at these positions."""
        return self.attention.view.at(positions, self.pos.per_layer(positions)[LAYER - 1])

    def run(self, problem: Problem, path: str) -> tuple[Tensor, Tensor | None]:
        """Return the output [B, K, d] and, by the explicit path, the weights [B, h, K, K]."""
        positions = problem.positions
        self.pos.stack = replace(self.pos.stack, causal=problem.causal)  # the same weights in both directions
        self.attention.path = path
        tensors = self.pos.per_layer(positions)[LAYER - 1]
        return self.attention(problem.x, positions, tensors, need_weights=path == "explicit")


class Literal:
    """Compute attention with our projections and the logits of a peer that is only a bias or a rotation.

    Args:
        mine: Our attention, whose projections are used.
        logits: Function from q and k, [B, h, K, D] each, to logits [B, h, K, K].
    """

    def __init__(self, mine: Mine, logits: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.attention, self.logits = mine.attention, logits

    def __call__(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = self.heads(x)
        weights = (self.logits(q, k) + mask).softmax(-1)
        return self.attention.out_proj((weights @ v).transpose(1, 2).flatten(2)), weights

    def heads(self, x: Tensor) -> Iterator[Tensor]:
        """Return q, k and v."""
        projections = (self.attention.q_proj, self.attention.k_proj, self.attention.v_proj)
        return (p(x).unflatten(-1, (self.attention.num_heads, -1)).transpose(1, 2) for p in projections)


@torch.no_grad()
def difference(mine: Mine, peer: Peer, problem: Problem, path: str = "explicit") -> float:
    """Return the largest absolute difference of outputs and weights over the queries that are not padding."""
    out, weights = mine.run(problem, path)
    their_out, their_weights = peer(problem.x, problem.mask)
    real = ~problem.padding
    worst = (out - their_out)[real].abs().max().item()
    if weights is not None and their_weights is not None:
        worst = max(worst, (weights - their_weights).transpose(1, 2)[real].abs().max().item())
    return worst


def check_same(mine: Mine, peer: Peer, tolerance: float, *, causal: bool = False) -> None:
    """Compare our attention by two paths with the peer, without padding and with padding on either side.

    The comparison has to notice every mistake in the parameters of our encoding: a shift along any of their axes.
    """
    dim = mine.attention.q_proj.in_features
    for path in ("explicit", "auto"):
        for pads in ("none", "left", "right"):
            found = difference(mine, peer, Problem.of(dim, causal=causal, pads=pads), path)
            assert found <= tolerance, f"{path}, padding: {pads}"
    for name, parameter in mine.encoding.named_parameters():
        if name not in mine.encoding.constant_along_row:  # the softmax hides such a parameter
            for axis in (axis for axis, size in enumerate(parameter.shape) if size > 1):
                right = parameter.clone()
                parameter.copy_(right.roll(1, axis))
                assert differs(mine, peer, causal=causal), f"{name} may be shifted along axis {axis}"
                parameter.copy_(right)


def differs(mine: Mine, peer: Peer, *, causal: bool = False) -> bool:
    """Return whether a deliberate mistake changes the result."""
    return difference(mine, peer, Problem.of(mine.attention.q_proj.in_features, causal=causal)) > CLEARLY
