"""Compare our attention with an independent implementation (the oracle, or peer) on the same numbers.

A peer gets all K columns at once. Our attention gets them in every way that a model uses: all at once, with segment
memory, in two chunks with a cache, or step by step. The path is explicit or fused, the attention is causal or not, and
the batch has padding or not.

Legend: B batch, Q queries, K keys, h heads, D head width, d model width.
"""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_posenc.attention import KeyValueCache, SelfAttention
from fairseq_posenc.core.compose import LayerView
from fairseq_posenc.encodings import PositionEncoding, StackShape, build
from fairseq_posenc.positions import Positions

HEADS, HEAD_DIM, KEYS, QUERIES, LAYER = 4, 6, 9, 4, 2
DIM = HEADS * HEAD_DIM
MODELS = "transformers.models."
CPU = torch.device("cpu")
CLEARLY = 1e-2  # a wrong sign or index makes a far larger difference than rounding

Peer = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]  # x, additive mask -> output, weights


def oracle(module: str) -> ModuleType:
    """Import a peer. If it is missing, fail in an environment that claims to be complete, otherwise skip."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if os.environ.get("POSENC_REQUIRE_ORACLES", "0") not in ("", "0"):
            pytest.fail(f"the oracle {module} is missing though POSENC_REQUIRE_ORACLES is set: {error}")
        pytest.skip(f"the oracle {module} is not installed (extra: test): {error}")


@dataclass(frozen=True)
class Way:
    """Describe how the last Q columns are computed. how: whole | memory | chunk | steps; pads: none | left | right."""

    how: str
    path: str = "explicit"
    causal: bool = False
    pads: str = "none"

    def __str__(self) -> str:
        return f"{self.how}-{self.path}-{'causal' if self.causal else 'both'}-{self.pads}"


def ways(
    *,
    causal: tuple[bool, ...] = (False, True),
    paths: tuple[str, ...] = ("explicit", "fused"),
    now: tuple[str, ...] = ("whole", "memory", "chunk", "steps"),
) -> Any:
    """Parametrise a test over all possible ways: there is no memory with padding, and single steps are causal.

    `make test` tries the ways in `now`, and `make test-long` the others, too.
    """
    padded = {"whole": ("none", "left", "right"), "memory": ("none",), "chunk": ("none", "left")}
    padded["steps"] = ("none", "left")
    every = [
        Way(how, path, direction, pads)
        for how, path, direction in itertools.product(padded, paths, causal)
        for pads in padded[how]
        if direction or how != "steps"
    ]
    marks = {True: [], False: [pytest.mark.long]}
    return pytest.mark.parametrize(
        "way", [pytest.param(way, id=str(way), marks=marks[way.how in now]) for way in every]
    )


#: Formulas are compared in float64; float32 only rounds more.
both_dtypes = pytest.mark.parametrize(
    "dtype", [torch.float64, pytest.param(torch.float32, marks=pytest.mark.long)], ids=["fp64", "fp32"]
)


def tolerance(dtype: torch.dtype, keeps_double: bool = True) -> float:
    """Return 1e-10 if the peer computes in float64, otherwise 1e-6."""
    return 1e-10 if dtype == torch.float64 and keeps_double else 1e-6


@dataclass
class Problem:
    """Hold the input of both implementations: x [B, K, d] and padding [B, K]."""

    x: Tensor
    padding: Tensor
    way: Way

    @classmethod
    def of(cls, way: Way, dtype: torch.dtype, *, keys: int = KEYS, dim: int = HEADS * HEAD_DIM) -> Problem:
        """Return three samples with 0, 1 and 3 columns of padding, on the side that the way names."""
        x = torch.randn(3, keys, dim, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        columns = torch.arange(keys).expand(3, -1)
        pads = torch.tensor([0, 1, 3])[:, None]
        padding = {"none": columns < 0, "left": columns < pads, "right": columns >= keys - pads}[way.pads]
        return cls(x.to(dtype), padding, way)

    @property
    def mask(self) -> Tensor:
        """Return the additive mask, which is 0 or -inf, [B, 1, K, K]."""
        keys = self.x.shape[1]
        forbidden = self.padding[:, None, :].expand(-1, keys, -1)
        if self.way.causal:
            forbidden = forbidden | torch.ones(keys, keys, dtype=torch.bool).triu(1)
        return torch.zeros_like(forbidden, dtype=self.x.dtype).masked_fill(forbidden, float("-inf"))[:, None]

    def positions(self, start: int, end: int, memory: int = 0) -> Positions:
        """Return positions whose queries are the columns start to end-1 and whose keys are the columns 0 to end-1."""
        padding = self.padding[:, :end]
        return Positions(
            end - start,
            end,
            self.x.device,
            causal=self.way.causal,
            padding=padding if bool(padding.any()) else None,
            memory=memory,
        )


class Mine(nn.Module):
    """Hold our self-attention as layer 2 of 2, with large random parameters, so that a wrong one makes a difference."""

    def __init__(
        self,
        spec: str,
        args: str = "",
        *,
        dtype: torch.dtype = torch.float64,
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
        self.to(dtype).eval().requires_grad_(False)

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

    def run(self, problem: Problem) -> tuple[Tensor, Tensor | None]:
        """Return the output at the last Q columns, [B, Q, d], and, by the explicit path, the weights [B, h, Q, K]."""
        keys, how = problem.x.shape[1], problem.way.how
        split = keys - QUERIES
        if how == "whole":
            return self._step(problem, 0, keys)
        if how == "memory":
            return self._step(problem, split, keys, memory=problem.x[:, :split])
        cache = KeyValueCache()
        self._step(problem, 0, split, cache=cache)
        if how == "chunk":
            return self._step(problem, split, keys, cache=cache)
        steps = [self._step(problem, t, t + 1, cache=cache) for t in range(split, keys)]
        weights = [nn.functional.pad(w, (0, keys - w.shape[-1])) for _, w in steps if w is not None]
        return torch.cat([out for out, _ in steps], 1), torch.cat(weights, 2) if weights else None

    def _step(
        self,
        problem: Problem,
        start: int,
        end: int,
        memory: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        positions = problem.positions(start, end, 0 if memory is None else start)
        self.pos.stack = replace(self.pos.stack, causal=positions.causal)  # the same weights in both directions
        self.attention.path = problem.way.path
        tensors = self.pos.per_layer(positions)[LAYER - 1]
        given: dict[str, Any] = {"memory": memory, "cache": cache}
        need_weights = problem.way.path == "explicit"
        return self.attention(problem.x[:, start:end], positions, tensors, need_weights=need_weights, **given)


class Literal:
    """Compute attention from the logits of a peer that is only a bias or a rotation.

    Args:
        mine: Our attention, whose projections are used. logits: Function from q and k, [B, h, K, D] each, to logits [B,
            h, K, K].
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
def difference(mine: Mine, peer: Peer, problem: Problem) -> float:
    """Return the largest absolute difference of outputs and weights over the queries that are not padding."""
    out, weights = mine.run(problem)
    their_out, their_weights = peer(problem.x, problem.mask)
    real = ~problem.padding[:, -out.shape[1] :]
    worst = (out - their_out[:, -out.shape[1] :])[real].abs().max().item()
    if weights is not None and their_weights is not None:
        gap = (weights - their_weights[:, :, -out.shape[1] :]).transpose(1, 2)[real]
        worst = max(worst, gap.abs().max().item())
    return worst


def differs(mine: Mine, peer: Peer, *, causal: bool = False, keys: int = KEYS) -> bool:
    """Return whether a deliberate mistake changes the result."""
    projection = mine.attention.q_proj
    problem = Problem.of(Way("whole", causal=causal), projection.weight.dtype, keys=keys, dim=projection.in_features)
    return difference(mine, peer, problem) > CLEARLY
