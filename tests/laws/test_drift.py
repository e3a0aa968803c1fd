"""Test law 27: results in lower precisions differ little from float64, at the sizes of BERT's heads and inputs.

*Drift* is the rms of the difference from float64, divided by the rms in float64.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case, defaults, every
from .scene import BOS, PAD, WORDS, attend_all, normal, on_device, positions_of

#: Standard deviation of BERT's W_Q and W_K at its width, which gives queries a standard deviation of 0.55.
BERT_STD, BERT_DIM = 0.02, 768
#: Standard deviation of the noise that is added to an encoding's parameters. A parameter whose values all start alike
#: may have no effect, so its noise is nearly as large as the content logits (standard deviation 0.31). For the others,
#: it is five times the usual 0.02.
MOVED_CONSTANT, MOVED = 0.25, 0.1
#: Options that choose between readings of one method, that is, between ways to understand its paper.
READINGS = {"form", "reset"}
#: With 16 columns, a case takes a second. Beyond 256, bfloat16 rounds columns; `make test-long` tries this length.
SHORT, LONG = 16, 288


@dataclasses.dataclass(frozen=True)
class Precision:
    """Describe a precision: a module cast to `dtype`, or a float32 module under autocast.

    Args:
        outputs, gradients: Largest drift that is allowed. Bounds of outputs are ten times the drift of attention
            without positions. Those of gradients are wider, because the gradients of CoPE jump where a count passes a
            whole number.
    """

    dtype: torch.dtype
    outputs: float = 0.0
    gradients: float = 0.0
    autocast: bool = False

    def __str__(self) -> str:
        name = str(self.dtype).removeprefix("torch.")
        return f"autocast {name}" if self.autocast else name

    def cast(self, stack: Stack) -> Stack:
        """Return a copy of a float32 stack in this precision; under autocast its parameters stay float32."""
        copied = copy.deepcopy(stack)
        return copied if self.autocast else copied.to(self.dtype)

    def context(self) -> AbstractContextManager[Any]:
        """Return the context in which the forward pass runs."""
        return torch.autocast(torch.get_default_device().type, self.dtype) if self.autocast else nullcontext()


EXACT = Precision(torch.float64)
PRECISIONS = (
    Precision(torch.float32, 5e-6, 1e-3),
    Precision(torch.float16, 6e-3, 0.1),
    Precision(torch.bfloat16, 0.05, 0.4),
    Precision(torch.float16, 6e-3, 0.1, autocast=True),
    Precision(torch.bfloat16, 0.05, 0.4, autocast=True),
)


@dataclasses.dataclass(frozen=True)
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


def built(case: Case, length: int) -> Stack:
    """Return layers of a case whose content is as in BERT, and whose tables are away from their initial values."""
    stack = case.stack(case.shape(head_dim=64, max_length=length)).float()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for block in stack.layers:
            attention = block.self_attn
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj):
                random = normal(*projection.weight.shape, generator=generator)
                projection.weight.copy_(random * BERT_STD * (BERT_DIM / stack.shape.dim) ** 0.5)
                nn.init.zeros_(projection.bias)
        for parameter in stack.pos.parameters():
            constant = bool((parameter == parameter.flatten()[0]).all())
            parameter.add_(normal(*parameter.shape, generator=generator) * (MOVED_CONSTANT if constant else MOVED))
    return stack


def inputs(stack: Stack) -> Inputs:
    """Return two random samples of the maximum length. A quarter of the second sample is padding."""
    shape, generator = stack.shape, torch.Generator().manual_seed(3)
    size = 2, shape.max_length
    tokens = on_device(torch.randint(PAD + 1, WORDS, size, generator=generator, device="cpu"))
    tokens[:, 0] = BOS
    tokens[1, 3 * shape.max_length // 4 :] = PAD
    x = normal(*size, shape.dim, generator=generator)
    to_outputs = normal(shape.layers, *size, shape.dim, generator=generator)
    return Inputs(x, positions_of(tokens, stack), tokens.ne(PAD), to_outputs)


def run(stack: Stack, precision: Precision, data: Inputs) -> Mapping[str, Tensor]:
    """Return the outputs of training and of inference, and the gradients, in float64."""
    stack = precision.cast(stack)
    x = data.x.float() if precision.autocast else data.x.to(precision.dtype)
    with precision.context():
        trained = attend_all(stack.train(), x, data.positions)
    wide = trained.to(torch.promote_types(trained.dtype, torch.float32))
    (wide * data.to_outputs.to(wide.dtype))[:, data.real].sum().backward()
    with precision.context(), torch.no_grad():
        inferred = attend_all(stack.eval(), x, data.positions)
    gradients: dict[bool, list[Tensor]] = {True: [], False: []}
    for name, parameter in stack.named_parameters():
        if parameter.grad is not None:
            gradients[name.startswith("pos.")].append(parameter.grad.flatten().double())
    outputs = torch.stack([trained.detach(), inferred])[:, :, data.real].double()
    results = {"outputs": outputs, "gradients of projections": torch.cat(gradients[False])}
    return results | ({"gradients of tables": torch.cat(gradients[True])} if gradients[True] else {})


def check_drift(case: Case, length: int = SHORT) -> None:
    """Check that all results are finite, and that their drift is within the bounds of each precision."""
    stack = built(case, length)
    data = inputs(stack)
    exact = run(stack, EXACT, data)
    for precision in PRECISIONS:
        for name, actual in run(stack, precision, data).items():
            assert actual.isfinite().all(), f"{precision}: {name} are not finite"
            expected = exact[name]
            drift = float((actual - expected).square().mean().sqrt() / expected.square().mean().sqrt())
            bound = precision.outputs if name == "outputs" else precision.gradients
            assert drift <= bound, f"{precision}: the {name} drift by {drift:.2g}, more than {bound}"


@pytest.mark.parametrize("case", every(lambda case: set(case.args) <= READINGS), ids=str)
def test_lower_precisions_drift_little(case: Case) -> None:
    check_drift(case)


@pytest.mark.long
@pytest.mark.parametrize("case", defaults(), ids=str)
def test_lower_precisions_drift_little_at_length(case: Case) -> None:
    check_drift(case, LONG)
