"""Make tokens, their positions, and stacks whose parameters differ from their initial values.

Legend: B batch, T tokens, M columns of memory, P columns already cached, K all columns, d width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from fairseq_posenc.attention import KeyValueCache
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import WIDTH, Case

BOS, PAD, EOS, WORDS = 0, 1, 2, 12


@dataclass(frozen=True)
class Scene:
    """Hold the sizes of an input.

    Args:
        before: Number of columns before the queries. They are memory if the encoding allows memory, otherwise cached.
        side: Side of the padding: left, right or none.
        room: Number of columns by which the maximum length exceeds the length of the input.
        span: See `Positions`.
    """

    batch: int = 3
    heads: int = 2
    head_dim: int = WIDTH
    queries: int = 6
    before: int = 0
    side: str = "none"
    room: int = 4
    span: int | None = None
    seed: int = 0
    layers: int = 2

    def stack(self, case: Case) -> Stack:
        """Return the stack of a case with parameters drawn from the seed."""
        length = max(2, self.queries + self.before + self.room)
        shape = case.shape(layers=self.layers, heads=self.heads, head_dim=self.head_dim, max_length=length)
        return drawn(case.stack(shape), self.seed)

    def tokens(self, width: int) -> Tensor:
        """Return tokens [B, width]; the first sample has no padding, and another may be padding only."""
        generator = torch.Generator().manual_seed(self.seed)
        lengths = torch.randint(0, width + 1, (self.batch,), generator=generator, device="cpu").tolist()
        return padded([width, *lengths[1:]], width, self.side, self.seed)


def on_device(x: Tensor) -> Tensor:
    """Move a tensor to the device of the laws (`--device`), which is torch's default device."""
    return x.to(torch.get_default_device())


def normal(*shape: int, generator: torch.Generator) -> Tensor:
    """Return normally distributed numbers in float64, the same on every device."""
    return on_device(torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu"))


def scenes() -> st.SearchStrategy[Scene]:
    """Return small scenes of all kinds."""
    return st.builds(
        Scene,
        batch=st.integers(1, 3),
        heads=st.integers(1, 3),
        head_dim=st.sampled_from([4, 6]),
        queries=st.integers(1, 6),
        before=st.integers(0, 5),
        side=st.sampled_from(["none", "left", "right"]),
        room=st.integers(0, 4),
        span=st.none() | st.integers(1, 4),
        seed=st.integers(0, 99),
        layers=st.integers(1, 3),
    )


def padded(lengths: Sequence[int], width: int, side: str = "right", seed: int = 0) -> Tensor:
    """Return random words and sentence ends [B, width], padded unless side=none."""
    generator = torch.Generator().manual_seed(seed)
    tokens = on_device(torch.randint(EOS, WORDS, (len(lengths), width), generator=generator, device="cpu"))
    for row, length in zip(tokens, lengths, strict=True):
        if side == "right":
            row[length:] = PAD
        elif side == "left":
            row[: width - length] = PAD
    return tokens


def segments_of(tokens: Tensor) -> Tensor:
    """Return two alternating segments, [B, T]. Each sentence end begins the next one; padding is in segment 0."""
    return (tokens.eq(EOS).cumsum(1) % 2) * tokens.ne(PAD)


def positions_of(tokens: Tensor, stack: Stack, *, memory: int = 0, **given: Any) -> Positions:
    """Make the positions as a model does, with everything that the encoding reads; see `Composition.positions`."""
    segments = F.pad(segments_of(tokens), (memory, 0)) if stack.pos.needs_segments else None
    return stack.positions(tokens, pad=PAD, boundaries=(BOS, EOS), memory=memory, segments=segments, **given)


def embedded(tokens: Tensor, dim: int) -> Tensor:
    """Return a vector for each token, also for padding, in float64: [B, T, d]."""
    return normal(WORDS, dim, generator=torch.Generator().manual_seed(1))[tokens]


def batch_of(stack: Stack, lengths: Sequence[int] = (6, 4), side: str = "right") -> tuple[Tensor, Tensor, Positions]:
    """Return tokens [B, T] of these lengths, their vectors [B, T, d] in the stack's dtype, and their positions."""
    tokens = padded(lengths, max(lengths), side)
    dtype = next(stack.layers.parameters()).dtype
    return tokens, embedded(tokens, stack.shape.dim).to(dtype), positions_of(tokens, stack)


def directed(out: Tensor) -> Tensor:
    """Return a loss whose gradient differs from zero. The sum of squares of a layer norm's output would be constant."""
    return (out * normal(*out.shape, generator=torch.Generator().manual_seed(3)).to(out.dtype)).sum()


def outcome(stack: Stack, output: Tensor, **inputs: Tensor) -> dict[str, Tensor]:
    """Return an output and, if it has gradients, those of a loss for the inputs and all parameters, by name.

    The gradients are zero where the loss does not depend on a parameter.
    """
    results = {"output": output.detach()}
    if output.requires_grad:
        named = {**inputs, **dict(stack.named_parameters())}
        for x in named.values():
            x.grad = None
        directed(output).backward()
        results |= {
            f"gradient of {name}": torch.zeros_like(x) if x.grad is None else x.grad for name, x in named.items()
        }
    return results


def drawn(stack: Stack, seed: int = 0, size: float = 0.4) -> Stack:
    """Draw all parameters anew, away from their initial values, and return the stack in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.add_(normal(*parameter.shape, generator=generator).to(parameter.dtype), alpha=size)
    return stack.eval()


def use_path(stack: Stack, path: str) -> None:
    """Set the path of all layers: explicit, or auto, which takes the fused path if possible."""
    for block in stack.layers:
        block.self_attn.path = path


def run(stack: Stack, tokens: Tensor, path: str = "auto", **given: Any) -> Tensor:
    """Run the whole stack without gradients, [B, T] -> [B, T, d]."""
    use_path(stack, path)
    with torch.no_grad():
        return stack(embedded(tokens, stack.shape.dim), positions_of(tokens, stack, **given))[0]


def attend_all(
    stack: Stack,
    x: Tensor,
    positions: Positions,
    *,
    memory: Tensor | None = None,
    caches: Sequence[KeyValueCache] | None = None,
) -> Tensor:
    """Return the attention output of each layer on the same input, [L, B, T, d].

    All layers get the same input. If each layer read the output of the layer before it, layer norms would hide the
    drift, and the drift would add up over the layers.
    """
    stack.pos.check(positions)
    x = stack.pos.embed(x, positions)
    outputs = []
    for i, (block, tensors) in enumerate(zip(stack.layers, stack.pos.per_layer(positions), strict=True)):
        cache = None if caches is None else caches[i]
        outputs.append(block.self_attn(x, positions, tensors, memory=memory, cache=cache)[0])
    return torch.stack(outputs)


def expose(stack: Stack) -> Stack:
    """Replace the output projections by identities and return the stack."""
    for block in stack.layers:
        nn.init.eye_(block.self_attn.out_proj.weight)
        nn.init.zeros_(block.self_attn.out_proj.bias)
    return stack


def observed(patch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """Return a list that gets the result of each call of a function, method or property of `Positions`."""
    results: list[Any] = []
    original = vars(owner)[name]
    make = getattr(original, "make", original)

    def call(*args: Any, **kwargs: Any) -> Any:
        results.append(make(*args, **kwargs))
        return results[-1]

    if make is not original:
        call = type(original)(call)
        call.__set_name__(owner, name)
    patch.setattr(owner, name, call)
    return results


def new_caches(stack: Stack) -> list[KeyValueCache]:
    """Return a new cache for each layer."""
    return [KeyValueCache() for _ in stack.layers]
