"""Build the steps that layers.py times: a layer in training or inference, a decoding step, and the attention core.

The baseline is the same layer without positions, on torch's fused kernel. The layers have no dropout unless it is
asked for. A training step is a forward pass, and a backward pass to the input and all parameters. It has no optimizer,
because an encoding hardly changes the time of an optimizer. Each forward pass computes the positions of the tokens, as
in a model.

Legend: B batch size, n tokens, h heads, D head width, d width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from fairseq_posenc.attention import KeyValueCache, Projected, SelfAttention, attend
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.encodings.building import parse
from fairseq_posenc.encodings.facts import on_meta
from fairseq_posenc.ops.content import dot_products, of_values
from fairseq_posenc.positions import Positions, restart_ids
from fairseq_posenc.stack import Stack

from .clock import Step

BOS, PAD, EOS, VOCABULARY = 0, 1, 2, 30_522
#: Tokens of one timed decoding step. Each makes the cache longer, so that no shape repeats.
TOKENS = 8


@dataclass(frozen=True)
class Subject:
    """Hold an encoding with its options, written as `m4` or `m4[clip=64]`."""

    encoding: str
    options: str = ""

    @classmethod
    def of(cls, text: str, flag: str = "--encodings") -> Subject:
        """Parse a text such as `m4[clip=64]`.

        Raises:
            ValueError: The name or the options of the encoding are unknown; the message names the setting `flag`.
        """
        spec = parse(text, None, flag)
        subject = cls(spec.name, spec.args or "")
        subject.causal(flag)
        return subject

    def __str__(self) -> str:
        return f"{self.encoding}[{self.options}]" if self.options else self.encoding

    def causal(self, flag: str = "--encodings") -> bool:
        """Return whether the encoding is measured in a decoder, because it does not work in encoders.

        Raises:
            ValueError: The encoding does not work in decoders either; the message names the setting `flag`.
        """
        if self.works(causal=False):
            return False
        with torch.device("meta"):
            build(str(self), None, replace(_shape(causal=True), name_flag=flag, args_flag=flag))
        return True

    def works(self, *, causal: bool) -> bool:
        """Return whether the encoding works in decoders (if `causal` is true) or in encoders (otherwise)."""
        return on_meta(self.encoding, self.options, _shape(causal)) is not None

    def hooks(self) -> set[str]:
        """Return the hooks that the encoding implements with its options."""
        with torch.device("meta"):
            members = build(self.encoding, self.options, _shape(self.causal())).members.values()
        return {hook for member in members for hook in member.hooks}


def _shape(causal: bool) -> StackShape:
    return StackShape(1, 12, 768, 512, causal=causal, has_cls=not causal)


@dataclass(frozen=True)
class Setting:
    """Hold the conditions of a measurement. Subjects with equal conditions are measured together.

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
    dropout: float = 0.0

    @property
    def shape(self) -> StackShape:
        """Return the shape of the layer, whose maximum length is n, so that every row of a table is read."""
        size = 1, self.heads, self.dim, self.length
        return StackShape(*size, causal=self.causal, has_cls=not self.causal)

    def random(self, *size: int) -> Tensor:
        """Return random numbers of this size."""
        return torch.randn(*size, device=self.device, dtype=self.dtype)

    def __str__(self) -> str:
        dropout = f", dropout {self.dropout}" if self.dropout else ""
        return f"{self.what} {self.mode}, width {self.dim}, n = {self.length} x {self.batch}{dropout}"


class PlainAttention(SelfAttention):
    """Compute the baseline's attention by torch's kernel or, for single queries on a CPU, by plain operations."""

    def forward(
        self,
        x: Tensor,
        positions: Positions,
        tensors: Mapping[str, Tensor],
        *,
        memory: Tensor | None = None,
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, None]:
        q, k, v = self.project_query(x), self.project_key(x), self._split(self.v_proj(x))
        if cache is not None:
            k, v = cache.append(k, v)
        if positions.query_length == 1 and x.device.type == "cpu":  # cheaper than the fused kernel
            weights = dot_products(q * self.head_dim**-0.5, k).softmax(-1)
            attended = of_values(weights, v)
        else:
            causal = positions.causal and positions.query_length > 1
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=causal, dropout_p=self.dropout_rate)
        return self.out_proj(self._merge(attended)), None


def stack_of(subject: Subject | None, setting: Setting) -> Stack:
    """Return a layer with the encoding, or the baseline if `subject` is None.

    The weights outside the encoding are the same with every encoding and in the baseline.
    """
    shape = setting.shape
    with torch.random.fork_rng(), torch.device(setting.device):
        torch.manual_seed(0)
        encoding, options = (subject.encoding, subject.options) if subject else ("none", None)
        stack = Stack(encoding, options, shape, attention_dropout=setting.dropout)
        if subject is None:
            stack.layers[0].self_attn = PlainAttention(shape.dim, shape.heads, dropout=setting.dropout)
    return stack.to(setting.dtype).train(setting.mode == "train")


class Batch:
    """Hold random tokens, and return their positions in the form in which a model passes them to an encoding."""

    def __init__(self, setting: Setting) -> None:
        generator = torch.Generator().manual_seed(0)
        tokens = torch.randint(EOS + 1, VOCABULARY, (setting.batch, setting.length), generator=generator)
        tokens[:, 31::32] = EOS  # sentences of 32 tokens
        self.tokens, self.causal = tokens.to(setting.device), setting.causal
        self.first = None if setting.causal else self.tokens.new_zeros(setting.batch)
        #: the second half of each sequence is its second segment
        columns = torch.arange(setting.length, device=setting.device)
        self.segments = (columns >= setting.length // 2).long().expand_as(self.tokens)

    def positions(self, stack: Stack, columns: int | None = None, queries: int | None = None) -> Positions:
        """Return the positions of queries and keys.

        Args:
            columns: Number of tokens from the start that are keys; None for all tokens.
            queries: Number of keys from the end that are also queries; None for all keys.
        """
        seen = self.tokens[:, :columns]
        return Positions(
            query_length=queries or seen.shape[1],
            key_length=seen.shape[1],
            device=seen.device,
            causal=self.causal,
            restart_ids=restart_ids(seen, PAD, (BOS, EOS)) if stack.pos.needs_boundaries else None,
            segments=self.segments[:, :columns] if stack.pos.needs_segments else None,
            cls_column=self.first,
        )


def step_of(subject: Subject | None, setting: Setting) -> Step:
    """Return a function that runs one step with the encoding `subject`, or with the baseline if `subject` is None."""
    if setting.what == "memory":
        return _core_step(subject or Subject("none"), setting)
    stack, batch = stack_of(subject, setting), Batch(setting)
    if setting.what == "decode":
        return _decoding_step(stack, setting, batch)
    x = setting.random(setting.batch, setting.length, setting.dim)
    return step_on(x, lambda x: stack(x, batch.positions(stack))[0], stack)


def step_on(x: Tensor, run: Callable[[Tensor], Tensor], module: nn.Module) -> Step:
    """Return a step that computes `run(x)`. In training, it also computes the gradients of x and of all parameters."""
    if not module.training:
        return torch.no_grad()(lambda: run(x))
    inputs, gradient = [x.requires_grad_(), *module.parameters()], torch.randn_like(x)
    return lambda: torch.autograd.grad(run(x), inputs, gradient, allow_unused=True)


def _decoding_step(stack: Stack, setting: Setting, batch: Batch) -> Step:
    """Return a step that decodes the last `TOKENS` tokens one by one.

    The cache is filled with the earlier tokens before the step, so their time is not measured.
    """
    x, start = setting.random(setting.batch, setting.length, setting.dim), setting.length - TOKENS
    caches = [KeyValueCache()]
    with torch.no_grad():
        stack(x[:, :start], batch.positions(stack, start), caches=caches)

    @torch.no_grad()
    def decode() -> None:
        caches[0].length = start
        for seen in range(start, setting.length):
            stack(x[:, seen : seen + 1], batch.positions(stack, seen + 1, 1), caches=caches)

    return decode


def _core_step(subject: Subject, setting: Setting) -> Step:
    """Return a training step of the attention core: everything between the projections, forward and backward."""
    stack, batch = stack_of(subject, setting), Batch(setting)
    size = setting.batch, setting.heads, setting.length, setting.dim // setting.heads
    q, k, v = (setting.random(*size).requires_grad_() for _ in range(3))
    inputs, gradient = [q, k, v, *stack.pos.parameters()], setting.random(*size)
    return lambda: torch.autograd.grad(_attended(stack, batch, q, k, v), inputs, gradient, allow_unused=True)


def _attended(stack: Stack, batch: Batch, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    positions, attention = batch.positions(stack), stack.layers[0].self_attn
    assert isinstance(attention, SelfAttention)
    merged = k.transpose(1, 2).flatten(2)
    call = attention.view.at(positions, stack.pos.per_layer(positions)[0]).with_inputs(merged)
    compressed = attention.view.has("compress")
    if compressed:  # as if the projections that follow it were the identity
        values = v.transpose(1, 2).flatten(2)
        k, v = (x.unflatten(-1, (q.shape[1], -1)).transpose(1, 2) for x in call.compress(merged, values))
    x = Projected(call.project_q(q), call.project_k(k), v, q, k, positioned=not compressed)
    return attend(x, call, training=True)[0]


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
    assert record.profiler is not None
    assert record.profiler.kineto_results is not None
    events = [event for event in record.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        if event.device_type() == torch.autograd.DeviceType.CPU:
            now += event.nbytes()
            highest = max(highest, now)
    return highest
