"""Measure decoders with a memory of earlier segments, relative to the same decoder without memory.

In training, measure the time of a step on a segment of T tokens with M memory states, relative to a step without
memory.

In evaluation, measure the time per token with memory, relative to the time per token without memory. Without memory,
the model reads a window of M + 1 tokens to predict one token, so each prediction has M earlier tokens as context. With
memory, a token has M to M + T - 1 earlier tokens as context.

Legend: B parallel streams of text, T tokens of a segment, M memory states, d model width.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ...encodings import StackShape
from ...positions import Positions
from ...stack import Stack
from .. import clock
from ..clock import Rounds, Step
from ..listing import on_meta
from ..steps import step_on
from . import targets
from .measure import Plan
from .rows import Row
from .settings import Setting, Shape, Subject

#: Transformer-XL's layer on WikiText-103, with its segment length and memory, at a quarter of its depth.
SHAPE = Shape("wt103", 410, 10, ((150, 4),), ((150, 60),))
FFN, MEMORY, LAYERS = 2100, 150, 4


def remembers(subject: Subject) -> bool:
    """Return whether a decoder with this encoding can have a memory of earlier segments."""
    built = on_meta(subject.encoding, subject.options, _shape(SHAPE, SHAPE.batches[0][0]))
    return built is not None and built.capabilities.memory


def rows(subjects: Iterable[Subject], device: torch.device, plan: Plan) -> Iterator[Row]:
    """Yield a training row and an evaluation row for each encoding that supports memory.

    Print on stderr the names of the encodings that do not support memory.
    """
    subjects = list(subjects)
    able = [subject for subject in subjects if remembers(subject)]
    left_out = ", ".join(str(subject) for subject in subjects if subject not in able)
    if left_out:
        print(f"bench: skips encodings without a memory of earlier segments: {left_out}", file=sys.stderr)
    length, batch = SHAPE.on(device)[0]
    for mode, target in (("train", targets.MEMORY_TRAINING), ("infer", targets.MEMORY_EVALUATION)):
        for number, subject in enumerate(able):
            setting = Setting("lm-memory", mode, SHAPE, length, batch, device, causal=True, layers=LAYERS)
            plan.tell(f"{setting}: {subject}", len(able) - number)
            yield _row(subject, setting, target, Rounds(plan.least, plan.most))


def _row(subject: Subject, setting: Setting, target: float, rounds: Rounds) -> Row:
    timed = clock.interleaved(steps(subject, setting), rounds, setting.device)
    tokens = setting.length if setting.mode == "infer" else 1  # a window scores one token, a segment scores all
    ratios = [memory / without / tokens for without, memory in timed]
    return Row.of(
        subject,
        setting,
        ratio=round(statistics.median(ratios), 5),
        spread=round(clock.spread(ratios), 5),
        target=target if setting.device.type == "cpu" else None,
        rounds=len(ratios),
        passes=1,
        milliseconds=round(1e3 * statistics.median(memory for _, memory in timed), 3),
    )


def steps(subject: Subject, setting: Setting) -> list[Step]:
    """Return two functions: the first runs a step without memory, the second runs a step with memory.

    In evaluation, a step without memory reads one window per stream.
    """
    with torch.random.fork_rng(), torch.device(setting.device):
        torch.manual_seed(0)
        stack = Stack(subject.encoding, subject.options, _shape(setting.shape, setting.length), ffn=FFN)
    stack = stack.to(setting.dtype).train(setting.mode == "train")
    without = setting if setting.mode == "train" else replace(setting, length=MEMORY + 1)
    return [_step(stack, without, 0), _step(stack, setting, MEMORY)]


def _shape(shape: Shape, length: int) -> StackShape:
    return StackShape(LAYERS, shape.heads, shape.dim, MEMORY + length, causal=True)


def _step(stack: Stack, setting: Setting, memory: int) -> Step:
    x, states = _inputs(setting, memory)
    return step_on(x, lambda x: _forward(stack, x, states), stack)


def _inputs(setting: Setting, memory: int) -> tuple[Tensor, list[Tensor]]:
    """Return random inputs [B, T, d], and a list with the memory [B, M, d] of each layer (empty without memory)."""

    def noise(length: int) -> Tensor:
        return torch.randn(setting.batch, length, setting.shape.dim, device=setting.device, dtype=setting.dtype)

    return noise(setting.length), [noise(memory) for _ in range(LAYERS if memory else 0)]


def _forward(stack: Stack, x: Tensor, states: list[Tensor]) -> Tensor:
    memory = states[0].shape[1] if states else 0
    where = Positions(x.shape[1], x.shape[1] + memory, x.device, causal=True, memory=memory)
    return stack(x, where, memory=states or None)[0]
