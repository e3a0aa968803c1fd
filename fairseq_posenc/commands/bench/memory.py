"""Measure the peak memory of the attention core by counting every allocation instead of sampling.

The core is everything between the projections: the forward pass from q, k and v to the attended values, and the
backward pass. The memory of the core's inputs and parameters is not counted. The memory of all results that are
computed from the inputs and parameters is counted, including temporary memory inside kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from ...attention import Projected, SelfAttention, attend
from ...stack import Stack
from ..clock import Step
from ..steps import peak_on_gpu
from . import targets
from .rows import Row
from .settings import Setting, Subject
from .subjects import Batch, stack_of

PLAIN = Subject("none")


def peak(step: Step, device: torch.device) -> int:
    """Return the peak memory of a step in bytes, not counting memory that was in use before the step."""
    return _peak_on_cpu(step) if device.type == "cpu" else peak_on_gpu(step, device)


def _peak_on_cpu(step: Step) -> int:
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


def core_step(subject: Subject, setting: Setting) -> Step:
    """Return a step of the attention core: a forward pass and, in training, a backward pass.

    The backward pass computes the gradients of q, k, v and all parameters. In training, no fused kernel is used.
    """
    stack = stack_of(subject, setting.stack, setting.device, setting.dtype).train(setting.mode == "train")
    batch, training = Batch(setting), setting.mode == "train"
    size = setting.batch, setting.shape.heads, setting.length, setting.stack.head_dim
    kind: dict[str, Any] = {"device": setting.device, "dtype": setting.dtype}
    q, k, v = (torch.randn(*size, **kind, requires_grad=training) for _ in range(3))
    inputs = [q, k, v, *(p for p in stack.pos.parameters())]
    grad = torch.randn(*size, **kind)

    def step() -> object:
        with torch.set_grad_enabled(training):
            attended = _attended(stack, batch, q, k, v)
            return torch.autograd.grad(attended, inputs, grad, allow_unused=True) if training else attended

    return step


def _attended(stack: Stack, batch: Batch, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    positions = batch.positions(stack)
    attention = stack.layers[0].self_attn
    assert isinstance(attention, SelfAttention)
    call = attention.view.at(positions, stack.pos.per_layer(positions)[0]).with_inputs(_merged(k))
    compressed = attention.view.has("compress")
    if compressed:  # as if the projections that follow it were the identity
        k, v = (_heads(x, q.shape[1]) for x in call.compress(_merged(k), _merged(v)))
    x = Projected(call.project_q(q), call.project_k(k), v, q, k, positioned=not compressed)
    return attend(x, call, training=stack.training)[0]


def _merged(x: Tensor) -> Tensor:
    """Reshape [B, h, K, D] to [B, K, d]."""
    return x.transpose(1, 2).flatten(2)


def _heads(x: Tensor, heads: int) -> Tensor:
    """Reshape [B, K, d] to [B, h, K, D]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def measured(subject: Subject, setting: Setting) -> int:
    """Return the peak memory of the attention core in bytes, after one run that compiles and fills caches."""
    step = core_step(subject, setting)
    step()
    return peak(step, setting.device)


def rows(pairs: Sequence[tuple[Subject, Setting]], tell: Callable[[str, int], None]) -> Iterator[Row]:
    """Yield one row per encoding, with its memory relative to the core without positions and without a fused kernel."""
    plain: dict[Setting, int] = {}
    for i, (subject, setting) in enumerate(pairs):
        tell(f"{setting}: {subject}", len(pairs) - i)
        if setting not in plain:
            plain[setting] = measured(PLAIN, setting)
        size = measured(subject, setting)
        yield _row(subject, setting, size, size / plain[setting])


def _row(subject: Subject, setting: Setting, size: int, ratio: float) -> Row:
    has_target = setting.shape.has_targets and setting.device.type == "cpu" and not setting.padded
    return Row.of(
        subject,
        setting,
        ratio=round(ratio, 4),
        spread=0.0,
        target=targets.of_memory(subject.encoding, subject.options, setting.length) if has_target else None,
        mib=round(size / setting.batch / 2**20, 2),
    )
