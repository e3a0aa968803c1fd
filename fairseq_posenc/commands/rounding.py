"""Measure how much attention with an encoding, and its gradients, differ from float64 in lower precisions.

Legend: B batch size, T tokens, N tokens without padding, L layers, d model width.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..attention import KeyValueCache
from ..ops.precision import HALF
from ..positions import Positions
from ..stack import Block, Stack

BEGIN, PAD, END, WORDS = 0, 1, 2, 30  # token ids; encodings only read padding and sentence boundaries
#: Standard deviation of BERT's W_Q and W_K at its width, which gives queries a standard deviation of 0.55.
BERT_STD, BERT_DIM = 0.02, 768
#: Standard deviation of the noise that is added to an encoding's parameters. A parameter whose values all start alike
#: may have no effect, so its noise is nearly as large as the content logits (standard deviation 0.31). For the others,
#: it is five times the usual 0.02.
MOVED_CONSTANT, MOVED = 0.25, 0.1


@dataclass(frozen=True)
class Precision:
    """Describe a precision to measure: a module cast to `dtype`, or a float32 module under autocast.

    Args:
        outputs, gradients: Largest drift that is allowed: the rms of the difference, relative to the rms in float64.
    """

    dtype: torch.dtype
    outputs: float = 0.0
    gradients: float = 0.0
    autocast: bool = False

    def __str__(self) -> str:
        name = str(self.dtype).removeprefix("torch.")
        return f"autocast {name}" if self.autocast else name

    @property
    def rounds_weights(self) -> bool:
        """Return whether the weights themselves are in half precision; under autocast they stay float32."""
        return self.dtype in HALF and not self.autocast

    def cast(self, stack: Stack) -> Stack:
        """Return a copy of a float32 stack in this precision; under autocast its parameters stay float32."""
        copied = copy.deepcopy(stack)
        return copied if self.autocast else copied.to(self.dtype)

    def allows(self, drift: Mapping[str, float | None]) -> bool:
        """Return whether every drift is within its bound."""
        bounds = {"output_rms": self.outputs, "projections_rms": self.gradients, "tables_rms": self.gradients}
        return all((drift[name] or 0.0) <= most for name, most in bounds.items())

    def context(self, device: torch.device) -> AbstractContextManager[Any]:
        """Return the context in which the forward pass runs."""
        return torch.autocast(device.type, self.dtype) if self.autocast else nullcontext()


EXACT = Precision(torch.float64)
#: Bounds of outputs are ten times the drift of attention without positions. Those of gradients are wider, because the
#: gradients of CoPE jump where a count passes a whole number.
PRECISIONS = (
    Precision(torch.float32, 5e-6, 1e-3),
    Precision(torch.float16, 6e-3, 0.1),
    Precision(torch.bfloat16, 0.05, 0.4),
    Precision(torch.float16, 6e-3, 0.1, autocast=True),
    Precision(torch.bfloat16, 0.05, 0.4, autocast=True),
)


@dataclass(frozen=True)
class Inputs:
    """Hold the inputs and the gradients of the outputs, which are the same for every precision.

    Args:
        x: Random inputs of unit variance, [B, T, d].
        real: True for tokens, false for padding, [B, T].
        to_outputs: Random gradients of unit variance with respect to the outputs, [L, B, T, d].
    """

    x: Tensor
    positions: Positions
    real: Tensor
    to_outputs: Tensor


@dataclass(frozen=True)
class Run:
    """Hold the outputs and gradients of one precision, converted to float64.

    Args:
        outputs: Outputs [2, L, N, d], first in training (separate operations), then in inference (a fused kernel if
            possible).
        gradients: Gradients of the parameters, keyed by name.
    """

    outputs: Tensor
    gradients: Mapping[str, Tensor]

    @property
    def finite(self) -> bool:
        """Return whether all outputs and gradients are finite."""
        return all(bool(x.isfinite().all()) for x in (self.outputs, *self.gradients.values()))

    def of(self, tables: bool) -> Tensor:
        """Return the gradients of the encoding (if `tables`) or of the projections (otherwise) as one vector."""
        gradients = [x.flatten() for name, x in self.gradients.items() if name.startswith("pos.") == tables]
        return torch.cat(gradients) if gradients else torch.empty(0)


def drawn(stack: Stack, seed: int) -> Stack:
    """Initialise the projections as in BERT, add noise to the parameters of the encoding, and return the layers."""
    generator = torch.Generator().manual_seed(seed + 1)  # other random numbers than those of the encoding
    for block in blocks_of(stack):
        attention = block.self_attn
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj):
            nn.init.normal_(projection.weight, std=BERT_STD * (BERT_DIM / stack.shape.dim) ** 0.5, generator=generator)
            nn.init.zeros_(projection.bias)
    with torch.no_grad():
        for parameter in stack.pos.parameters():
            constant = bool((parameter == parameter.flatten()[0]).all())
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise, alpha=MOVED_CONSTANT if constant else MOVED)
    return stack


def inputs(stack: Stack, seed: int) -> Inputs:
    """Return two random samples of the maximum length, with two segments. A quarter of the second sample is padding."""
    shape, device = stack.shape, next(stack.layers.parameters()).device
    generator = torch.Generator().manual_seed(seed + 2)  # independent of the weights
    size = 2, shape.max_length
    tokens = torch.randint(END, WORDS, size, generator=generator)
    tokens[:, 0] = BEGIN
    tokens[1, 3 * shape.max_length // 4 :] = PAD
    x = torch.randn(*size, shape.dim, generator=generator)
    to_outputs = torch.randn(shape.layers, *size, shape.dim, generator=generator)
    tokens = tokens.to(device)
    real = tokens.ne(PAD)
    segments = (torch.arange(shape.max_length, device=device) >= shape.max_length // 2).long() * real
    read = segments if stack.pos.needs_segments else None
    positions = stack.positions(tokens, pad=PAD, boundaries=(BEGIN, END), segments=read)
    return Inputs(x.to(device), positions, real, to_outputs.to(device))


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
    for i, (block, tensors) in enumerate(zip(blocks_of(stack), stack.pos.per_layer(positions), strict=True)):
        cache = None if caches is None else caches[i]
        outputs.append(block.self_attn(x, positions, tensors, memory=memory, cache=cache)[0])
    return torch.stack(outputs)


def run(stack: Stack, precision: Precision, data: Inputs) -> Run:
    """Run a training step and an inference step in this precision, and return their outputs and gradients."""
    stack = precision.cast(stack)
    x = data.x if precision.autocast else data.x.to(precision.dtype)
    with precision.context(x.device):
        trained = attend_all(stack.train(), x, data.positions)
    wide = trained.to(torch.promote_types(trained.dtype, torch.float32))
    (wide * data.to_outputs.to(wide.dtype))[:, data.real].sum().backward()
    with precision.context(x.device), torch.no_grad():
        inferred = attend_all(stack.eval(), x, data.positions)
    outputs = torch.stack([trained.detach(), inferred])[:, :, data.real].double()
    used = ((name, p) for name, p in stack.named_parameters() if name.startswith("pos.") or ".self_attn." in name)
    return Run(outputs, {name: (torch.zeros_like(p) if p.grad is None else p.grad).double() for name, p in used})


def blocks_of(stack: Stack) -> list[Block]:
    """Return the layers of a stack."""
    return [block for block in stack.layers if isinstance(block, Block)]


def relative(actual: Tensor, expected: Tensor, *, largest: bool = False) -> float | None:
    """Return the rms of `actual - expected`, divided by the rms of `expected`; None if it is not finite.

    If `largest` is true, use the largest absolute values instead of the rms.
    """
    sizes = [float(x.abs().max() if largest else x.square().mean().sqrt()) for x in (actual - expected, expected)]
    ratio = sizes[0] / sizes[1] if sizes[1] else sizes[0]
    return ratio if torch.tensor(ratio).isfinite() else None


def measured(stack: Stack, seed: int) -> list[dict[str, Any]]:
    """Measure the drift of float32 layers at their maximum length, and return one row for each precision.

    The fields `weights_...` are the drifts of a computation in float64 whose weights were rounded to half precision.
    The fields `weights_...` are None for float32 and autocast, which do not round the weights.
    """
    data, plain = inputs(stack, seed), _plain(stack)
    exact = run(stack, EXACT, data)
    positions = relative(run(plain, EXACT, inputs(plain, seed)).outputs, exact.outputs)
    rows = []
    for precision in PRECISIONS:
        result = run(stack, precision, data)
        drift, finite = _drift(result, exact), result.finite and exact.finite
        verdict = {"precision": str(precision), "finite": finite, "near": finite and precision.allows(drift)}
        weights: dict[str, float | None] = {f"weights_{name}": None for name in drift}
        if precision.rounds_weights:
            alone = _drift(run(precision.cast(stack).double(), EXACT, data), exact)
            weights = {f"weights_{name}": value for name, value in alone.items()}
        rows.append({"positions": positions, **verdict, **drift, **weights})
    return rows


def _plain(stack: Stack) -> Stack:
    """Return a copy of the layers without a position encoding."""
    (width,) = {block.fc1.out_features for block in blocks_of(stack)}
    plain = Stack("none", None, stack.shape, ffn=width)
    plain.layers.load_state_dict(stack.layers.state_dict())
    return plain.to(next(stack.layers.parameters()).device)


def _drift(result: Run, exact: Run) -> dict[str, float | None]:
    tables = exact.of(tables=True)
    return {
        "output_rms": relative(result.outputs, exact.outputs),
        "output_max": relative(result.outputs, exact.outputs, largest=True),
        "projections_rms": relative(result.of(tables=False), exact.of(tables=False)),
        "tables_rms": relative(result.of(tables=True), tables) if len(tables) else None,
    }
