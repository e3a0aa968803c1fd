"""Build the steps that a benchmark times: steps of a layer, a model or decoding, with or without an encoding.

The baseline is the same layer without an encoding, and uses `F.scaled_dot_product_attention`. The layers have no
dropout, because torch does not fuse attention with dropout on a CPU. A training step is a forward pass, and a backward
pass to the input and all parameters. A step has no optimizer, because an encoding hardly changes the time of an
optimizer. Each forward pass computes the positions of the tokens, as in a model.

Legend: B batch size, n tokens, h heads, D head width, d width.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...attention import KeyValueCache, SelfAttention
from ...encodings import StackShape
from ...ops.content import dot_products, of_values
from ...positions import Positions, restart_ids
from ...stack import Stack
from ..clock import Step
from ..steps import step_on, without_gradients
from .settings import Setting, Subject

BOS, PAD, EOS = 0, 1, 2
#: BERT's vocabulary. BERT predicts 15 % of the tokens, which is about every seventh.
VOCABULARY, PREDICTED = 30_522, 7
#: Tokens of one timed decoding step. Each makes the cache longer, so that no shape repeats.
TOKENS = 8


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
        elif positions.padding is None:
            causal = positions.causal and positions.query_length > 1
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        else:
            assert positions.forbidden is not None
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=~positions.forbidden)
        return self.out_proj(self._merge(attended)), None


def stack_of(subject: Subject | None, shape: StackShape, device: torch.device, dtype: torch.dtype) -> Stack:
    """Return layers with the encoding, or the baseline if `subject` is None.

    The weights outside the encoding are the same with every encoding and in the baseline.
    """
    with torch.random.fork_rng(), torch.device(device):
        torch.manual_seed(0)
        stack = Stack(subject.encoding if subject else "none", subject.options if subject else None, shape)
        if subject is None:
            for block in stack.layers:
                block.self_attn = PlainAttention(shape.dim, shape.heads)
    return stack.to(dtype)


class Batch:
    """Hold random tokens, and return their positions in the form in which a model passes them to an encoding."""

    def __init__(self, setting: Setting) -> None:
        generator = torch.Generator().manual_seed(0)
        tokens = torch.randint(EOS + 1, VOCABULARY, (setting.batch, setting.length), generator=generator)
        tokens[:, 31::32] = EOS  # sentences of 32 tokens
        if setting.padded:
            for row in range(1, setting.batch):
                tokens[row, : row * setting.length // (2 * setting.batch)] = PAD
        self.tokens, self.causal = tokens.to(setting.device), setting.causal
        padding = self.tokens.eq(PAD)
        self.padding = padding if setting.padded else None
        self.first = None if setting.causal else (~padding).long().argmax(1)
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
        pos = stack.pos
        return Positions(
            query_length=queries or seen.shape[1],
            key_length=seen.shape[1],
            device=seen.device,
            causal=self.causal,
            padding=self.padding,
            restart_ids=restart_ids(seen, PAD, (BOS, EOS)) if pos.needs_boundaries else None,
            segments=self.segments[:, :columns] if pos.needs_segments else None,
            cls_column=self.first,
        )


class Model(nn.Module):
    """Compute a masked language model: word embeddings, Transformer layers, and the logits of the predicted tokens."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, stack.shape.dim)
        self.stack = stack

    def forward(self, tokens: Tensor, positions: Positions) -> Tensor:
        """Return the logits of every seventh token (see `PREDICTED`), [B, ceil(n / 7), vocabulary].

        Args:
            tokens: [B, n] int64.
        """
        x, _ = self.stack(self.words(tokens), positions)
        return F.linear(x[:, ::PREDICTED], self.words.weight)


def step_of(subject: Subject | None, setting: Setting) -> Step:
    """Return a function that runs one step with the encoding `subject`, or with the baseline if `subject` is None."""
    stack = stack_of(subject, setting.stack, setting.device, setting.dtype)
    make = {"layer": _layer_step, "model": _model_step, "decode": _decoding_step}[setting.what]
    return make(stack.train(setting.mode == "train"), setting, Batch(setting))


def _layer_step(stack: Stack, setting: Setting, batch: Batch) -> Step:
    x = torch.randn(setting.batch, setting.length, setting.shape.dim, device=setting.device, dtype=setting.dtype)
    return step_on(x, lambda x: stack(x, batch.positions(stack))[0], stack)


def _model_step(stack: Stack, setting: Setting, batch: Batch) -> Step:
    model = Model(stack).to(setting.device, setting.dtype).train(stack.training)
    targets = batch.tokens[:, ::PREDICTED].flatten()

    def forward() -> Tensor:
        return model(batch.tokens, batch.positions(stack))

    if setting.mode == "infer":
        return without_gradients(forward)
    parameters = list(model.parameters())
    return lambda: torch.autograd.grad(
        F.cross_entropy(forward().flatten(0, 1).float(), targets), parameters, allow_unused=True
    )


def _decoding_step(stack: Stack, setting: Setting, batch: Batch) -> Step:
    """Return a step that decodes the last `TOKENS` tokens one by one.

    The cache is filled with the earlier tokens before the step, so their time is not measured.
    """
    x = torch.randn(setting.batch, setting.length, setting.shape.dim, device=setting.device, dtype=setting.dtype)
    start = setting.length - TOKENS
    caches = [KeyValueCache() for _ in stack.layers]
    with torch.no_grad():
        stack(x[:, :start], batch.positions(stack, start), caches=caches)

    def decode() -> None:
        for cache in caches:
            cache.length = start
        for seen in range(start, setting.length):
            stack(x[:, seen : seen + 1], batch.positions(stack, seen + 1, 1), caches=caches)

    return without_gradients(decode)
