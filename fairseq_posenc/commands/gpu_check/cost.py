"""Measure the part `cost`: time and memory of a layer with each encoding on each path, relative to the layer without
positions.

The layer without positions uses torch's fused attention. Legend: B batch, n tokens, d width.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from ...attention import PATHS, KeyValueCache
from ...positions import Positions
from ...stack import Block, Stack
from .results import Row, Task
from .subjects import Sizes, Subject

Step = Callable[[], object]
MODES = ("train", "infer", "decode")


class Setting(NamedTuple):
    """Say what is measured: training, inference or one decoding step, with B samples of n tokens."""

    mode: str
    length: int
    batch: int


def tasks(sizes: Sizes) -> list[Task]:
    """Return one task per encoding and setting."""
    settings = [Setting(mode, *batch) for batch in sizes.batches for mode in MODES]
    return [
        Task(f"{subject} {setting.mode} n={setting.length}", partial(measured, subject, setting, sizes))
        for setting in settings
        for subject in _subjects(sizes, setting)
    ]


def _subjects(sizes: Sizes, setting: Setting) -> list[Subject]:
    """Return each encoding once, in an encoder if it works there; in the mode decode, all that can decode."""
    every = sizes.subjects()
    if setting.mode == "decode":
        return [s for s in every if s.causal and not s.encoding.endswith(("linformer", "lin"))]
    encoders = {s[:2] for s in every if not s.causal}
    return [s for s in every if not s.causal or s[:2] not in encoders]


def measured(subject: Subject, setting: Setting, sizes: Sizes) -> list[Row]:
    """Return one row per path that is exact in this setting."""
    if sizes.device.type == "cuda":
        torch._dynamo.reset()
    plain = Subject("none", "", subject.causal)
    rows = []
    for path in PATHS if sizes.device.type == "cuda" else ("auto",):  # forced paths are compared on a GPU only
        step = step_of(subject, setting, sizes, path)
        try:
            step()
        except ValueError:  # the path is not exact here
            continue
        baseline = step_of(plain, setting, sizes, "auto")
        seconds = [_interleaved(step, baseline, sizes) for _ in range(sizes.rounds)]
        ratio = statistics.median(own / other for own, other in seconds)
        row = {"ok": True, "path": path, "ratio": ratio, "ms": 1000 * statistics.median(own for own, _ in seconds)}
        rows.append({**row, "memory": _memory_ratio(step, baseline, sizes.device)})
    facts = {"encoding": subject.encoding, "options": subject.options, **setting._asdict()}
    return [{**row, **facts} for row in rows]


def step_of(subject: Subject, setting: Setting, sizes: Sizes, path: str) -> Step:
    """Return a step: a forward pass of a layer, in training also a backward pass, or a token in decoding."""
    shape = sizes.shape(subject.causal, setting.length + 1, 1, sizes.dim)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        stack = Stack(subject.encoding, subject.options, shape).to(sizes.device, sizes.dtype)
    for block in stack.layers:
        assert isinstance(block, Block)
        block.self_attn.path = path
    x = torch.randn(setting.batch, setting.length, shape.dim, device=sizes.device, dtype=sizes.dtype)
    if setting.mode == "decode":
        return _decoding(stack.eval(), x)
    training = setting.mode == "train"
    stack.train(training)
    x.requires_grad_(training)

    def step() -> object:
        with torch.set_grad_enabled(training):
            out = stack(x, _positions(stack, x))[0]
            if training:
                out.sum().backward()
        return out

    return step


def _decoding(stack: Stack, x: torch.Tensor) -> Step:
    """Return a step that decodes the one token that follows the tokens x."""
    cache, length = KeyValueCache(), x.shape[1]

    def step() -> object:
        with torch.no_grad():
            if not cache.length:
                stack(x, _positions(stack, x), caches=[cache])
            cache.length = length  # forget the token of the step before
            return stack(x[:, :1], _positions(stack, x, 1), caches=[cache])[0]

    return step


def _positions(stack: Stack, x: torch.Tensor, new: int = 0) -> Positions:
    """Return the positions of the tokens x or, if `new` is not 0, of the `new` tokens that follow them."""
    columns = x.shape[1] + new
    tokens = torch.full((len(x), columns), 3, device=x.device)
    segments = torch.zeros_like(tokens) if stack.pos.needs_segments else None
    return stack.positions(tokens, pad=1, boundaries=(2,), cached=x.shape[1] if new else 0, segments=segments)


def _interleaved(step: Step, baseline: Step, sizes: Sizes) -> tuple[float, float]:
    """Return the seconds of a step and of its baseline, one after the other."""
    return _seconds(step, sizes.device), _seconds(baseline, sizes.device)


def _seconds(step: Step, device: torch.device) -> float:
    _wait(device)
    start = time.perf_counter()
    step()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _memory_ratio(step: Step, baseline: Step, device: torch.device) -> float | None:
    """Return the peak memory of a step relative to that of the baseline, or None on a CPU."""
    if device.type != "cuda":
        return None
    return _peak(step, device) / max(1, _peak(baseline, device))


def _peak(step: Step, device: torch.device) -> int:
    """Return the peak memory of a step in bytes, without the memory that was in use before it."""
    _wait(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    step()
    _wait(device)
    return torch.cuda.max_memory_allocated(device) - before
