"""Build the steps that layers.py times: a layer in training or inference, a decoding step, and the attention core.

The baseline is the same layer without positions, on torch's fused kernel. A training step is a forward pass, and a
backward pass to the input and all parameters, without dropout. It has no optimizer, because an encoding hardly changes
the time of an optimizer. Each forward pass computes the positions of the tokens, as in a model.

Legend: B batch size, n tokens, h heads, D head width, d width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from fairseq_posenc.attention import KeyValueCache, Projected, SelfAttention, attend
from fairseq_posenc.encodings import StackShape
from fairseq_posenc.encodings.building import parse
from fairseq_posenc.encodings.facts import BASE, at_base_size, on_meta
from fairseq_posenc.ops.content import dot_products, of_values
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

Step = Callable[[], object]
BOS, EOS, VOCABULARY = 0, 2, 30_522
#: Tokens of one timed decoding step. Each makes the cache longer, so that no shape repeats.
TOKENS = 8


def checked(text: str, flag: str = "--encodings") -> str:
    """Return the label of an encoding with its options, such as `m4[clip=64]`.

    Raises:
        ValueError: The encoding is unknown or works nowhere; the message names the setting `flag`.
    """
    label = parse(text, None, flag).label
    at_base_size(label, None, flag)
    return label


def works(label: str, *, causal: bool) -> bool:
    """Return whether an encoding works in decoders (if `causal` is true) or in encoders (otherwise)."""
    return on_meta(label, None, replace(BASE, causal=causal, has_cls=not causal)) is not None


def hooks(label: str) -> set[str]:
    """Return the hooks that an encoding implements with its options."""
    return {hook for member in at_base_size(label).members.values() for hook in member.hooks}


@dataclass(frozen=True)
class Setting:
    """Hold the conditions of a measurement. Encodings with equal conditions are measured together.

    Args:
        what: What is measured: layer, decode or memory.
        mode: train or infer.
        length: Number n of tokens in a sequence; in decoding, the number of tokens to which the last token attends.
        batch: Number of sequences.
    """

    what: str
    mode: str
    length: int
    batch: int
    dim: int
    heads: int
    device: torch.device
    dtype: torch.dtype
    causal: bool = False

    def random(self, *size: int) -> Tensor:
        """Return random numbers of this size; without a size, those of the input [B, n, d]."""
        return torch.randn(*(size or (self.batch, self.length, self.dim)), device=self.device, dtype=self.dtype)

    def __str__(self) -> str:
        return f"{self.what} {self.mode}, width {self.dim}, n = {self.length} x {self.batch}"


class PlainAttention(SelfAttention):
    """Compute the baseline's attention by torch's kernel or, for single queries on a CPU, by plain operations."""

    def forward(self, x: Tensor, positions: Positions, _: Any, *, cache: Any = None, **_more: Any) -> Any:
        q, k, v = self.project_query(x), self.project_key(x), self._split(self.v_proj(x))
        if cache is not None:
            k, v = cache.append(k, v)
        if positions.query_length == 1 and x.device.type == "cpu":  # cheaper than the fused kernel
            attended = of_values(dot_products(q * self.head_dim**-0.5, k).softmax(-1), v)
        else:
            causal = positions.causal and positions.query_length > 1
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.out_proj(self._merge(attended)), None


def stack_of(label: str | None, setting: Setting) -> Stack:
    """Return a layer with an encoding, or the baseline if `label` is None.

    The weights outside the encoding are the same with every encoding and in the baseline. The maximum length is n, so
    that every row of a table is read.
    """
    size = 1, setting.heads, setting.dim, setting.length
    shape = StackShape(*size, causal=setting.causal, has_cls=not setting.causal)
    with torch.random.fork_rng(), torch.device(setting.device):
        torch.manual_seed(0)
        stack = Stack(label or "none", None, shape)
        if label is None:
            stack.layers[0].self_attn = PlainAttention(shape.dim, shape.heads)
    return stack.to(setting.dtype).train(setting.mode == "train")


def positions_of(stack: Stack, setting: Setting) -> Callable[..., Positions]:
    """Return a function that makes positions as a model does: of all tokens, or of the last of the first `seen` ones.

    Sentences have 32 tokens, and the second half of each sequence is its second segment.
    """
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(EOS + 1, VOCABULARY, (setting.batch, setting.length), generator=generator)
    tokens[:, 31::32] = EOS
    tokens = tokens.to(setting.device)
    segments = (torch.arange(setting.length, device=setting.device) >= setting.length // 2).long().expand_as(tokens)

    def positions(seen: int = setting.length, cached: int = 0) -> Positions:
        own = segments[:, :seen] if stack.pos.needs_segments else None
        return stack.positions(tokens[:, :seen], pad=None, boundaries=(BOS, EOS), cached=cached, segments=own)

    return positions


def step_of(label: str | None, setting: Setting) -> Step:
    """Return a function that runs one step with an encoding, or with the baseline if `label` is None."""
    stack = stack_of(label or ("none" if setting.what == "memory" else None), setting)
    positions, x = positions_of(stack, setting), setting.random()
    if setting.what == "memory":
        return _core_step(stack, setting, positions)
    if setting.what == "decode":
        return _decoding_step(stack, x, positions)
    return step_on(x, lambda x: stack(x, positions())[0], stack)


def step_on(x: Tensor, run: Callable[[Tensor], Tensor], module: nn.Module) -> Step:
    """Return a step that computes `run(x)`. In training, it also computes the gradients of x and of all parameters."""
    if not module.training:
        return torch.no_grad()(lambda: run(x))
    inputs, gradient = [x.requires_grad_(), *module.parameters()], torch.randn_like(x)
    return lambda: torch.autograd.grad(run(x), inputs, gradient, allow_unused=True)


@torch.no_grad()
def _decoding_step(stack: Stack, x: Tensor, positions: Callable[..., Positions]) -> Step:
    """Return a step that decodes the last `TOKENS` tokens one by one.

    The cache is filled with the earlier tokens before the step, so their time is not measured.
    """
    start, caches = x.shape[1] - TOKENS, [KeyValueCache()]
    stack(x[:, :start], positions(start), caches=caches)

    @torch.no_grad()
    def decode() -> None:
        caches[0].length = start
        for seen in range(start, x.shape[1]):
            stack(x[:, seen : seen + 1], positions(seen + 1, seen), caches=caches)

    return decode


def _core_step(stack: Stack, setting: Setting, positions: Callable[..., Positions]) -> Step:
    """Return a training step of the attention core: everything between the projections, forward and backward."""
    size = setting.batch, setting.heads, setting.length, setting.dim // setting.heads
    q, k, v = (setting.random(*size).requires_grad_() for _ in range(3))
    inputs, gradient = [q, k, v, *stack.pos.parameters()], setting.random(*size)

    def attended() -> Tensor:
        where, attention = positions(), stack.layers[0].self_attn
        merged = k.transpose(1, 2).flatten(2)
        call = attention.view.at(where, stack.pos.per_layer(where)[0]).with_inputs(merged)
        keys, values, compressed = k, v, attention.view.has("compress")
        if compressed:  # as if the projections that follow it were the identity
            both = call.compress(merged, v.transpose(1, 2).flatten(2))
            keys, values = (x.unflatten(-1, (setting.heads, -1)).transpose(1, 2) for x in both)
        x = Projected(call.project_q(q), call.project_k(keys), values, q, keys, positioned=not compressed)
        return attend(x, call, training=True)[0]

    return lambda: torch.autograd.grad(attended(), inputs, gradient, allow_unused=True)


def peak(step: Step, device: torch.device) -> int:
    """Return the peak memory of a step in bytes, not counting memory that was in use before the step."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        result = step()
        del result
    kind = ("[memory]", torch.autograd.DeviceType.CPU)
    every = record.profiler.kineto_results.events()
    events = [event for event in every if (event.name(), event.device_type()) == kind]
    events.sort(key=lambda event: event.start_ns())
    return max(accumulate(event.nbytes() for event in events), default=0)
