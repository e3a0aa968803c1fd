"""Measure the part `cost`: time and memory of a layer with each encoding on each path, and of layers of other packages.

All costs are relative to our layer without positions, whose attention is torch's fused kernel.

Legend: B batch, n tokens, d width.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ...attention import KeyValueCache, PathRefusedError
from ...positions import Positions
from ...stack import Block, Stack
from .. import clock
from ..clock import Rounds, Step
from ..peer_layers import FAIRSEQ, LAYERS, ORIGINS, Size
from ..steps import peak_on_gpu, step_on
from .results import Row, Task, described
from .subjects import Sizes, Subject

MODES = ("train", "infer", "decode")


class Setting(NamedTuple):
    """Define what is measured: training, inference or one decoding step, with B samples of n tokens."""

    mode: str
    length: int
    batch: int


def tasks(sizes: Sizes) -> list[Task]:
    """Return a task for each setting and each encoding.

    Except for decoding, also return a task for each setting and each installed layer of another package.
    """
    every: list[Task] = []
    for setting in (Setting(mode, *batch) for batch in sizes.batches for mode in MODES):
        where = f"{setting.mode} n={setting.length}"
        every += [Task(f"{one} {where}", partial(measured, one, setting, sizes)) for one in _subjects(sizes, setting)]
        peers = [] if setting.mode == "decode" else [name for name in peer_names() if not ORIGINS[name].missing()]
        every += [Task(f"{name} {where}", partial(measured_peer, name, setting, sizes)) for name in peers]
    return every


def peer_names() -> list[str]:
    """Return the names of the layers of other packages, except fairseq's layer, which has no positions."""
    return [name for name in ORIGINS if name != FAIRSEQ]


def _subjects(sizes: Sizes, setting: Setting) -> list[Subject]:
    """Return each encoding once: in an encoder if it works there, otherwise in a decoder.

    For decoding, return only the encodings that work in a decoder.
    """
    every = sizes.subjects()
    if setting.mode == "decode":
        return [s for s in every if s.causal and "compress" not in (sizes.hooks(s) or ())]
    encoders = {s[:2] for s in every if not s.causal}
    return [s for s in every if not s.causal or s[:2] not in encoders]


def measured(subject: Subject, setting: Setting, sizes: Sizes) -> list[Row]:
    """Return one row per path: the costs, or the reason why the path was refused or failed."""
    facts = {"encoding": subject.encoding, "options": subject.options, **setting._asdict()}
    rows = []
    for path in sizes.paths:
        try:
            row = _costs(step_of(subject, setting, sizes, path), subject.causal, setting, sizes)
        except Exception as error:  # noqa: BLE001 - the other paths go on
            refused = isinstance(error, PathRefusedError) and path != "auto"
            row = {"refused": str(error)} if refused else {"ok": False, "text": f"{path}: {described(error)}"}
        rows.append({"ok": True, **facts, "path": path, **row})
    return rows


def measured_peer(name: str, setting: Setting, sizes: Sizes) -> list[Row]:
    """Return the row of another package's layer.

    If the layer raises an error, the row contains the text of the error, but the check does not fail.
    """
    facts = {"encoding": name, "options": "", **setting._asdict(), "path": ORIGINS[name].label()}
    try:
        row = _costs(_peer_step(name, setting, sizes), False, setting, sizes)
    except Exception as error:  # noqa: BLE001 - for example, a layer that does not work in half precision
        row = {"refused": f"{name}: {described(error)}"}
    return [{"ok": True, **facts, **row}]


def _costs(step: Step, causal: bool, setting: Setting, sizes: Sizes) -> Row:
    """Return time and memory of a step, relative to the layer without positions on the fused path."""
    baseline = step_of(Subject("none", "", causal), setting, sizes, "fused")
    several = [partial(_repeated, one, sizes.steps) for one in (step, baseline)]
    seconds = clock.interleaved(several, Rounds(sizes.rounds, sizes.rounds), sizes.device)
    ratio = statistics.median(own / other for own, other in seconds)
    ms = 1000 / sizes.steps * statistics.median(own for own, _ in seconds)
    return {"ratio": ratio, "ms": ms, "memory": _memory_ratio(step, baseline, sizes.device)}


def _repeated(step: Step, times: int) -> None:
    """Run a step several times. On a GPU, a step is launched while the GPU still computes the previous step."""
    for _ in range(times):
        step()


def step_of(subject: Subject, setting: Setting, sizes: Sizes, path: str) -> Step:
    """Return a function that runs a step: a forward pass (in training also a backward pass) or one decoding step."""
    shape = sizes.shape(subject.causal, setting.length + 1, 1, sizes.dim)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        stack = Stack(subject.encoding, subject.options, shape).to(sizes.device, sizes.dtype)
    for block in stack.layers:
        assert isinstance(block, Block)
        block.self_attn.path = path
    stack.train(setting.mode == "train")
    if setting.mode == "decode":
        return _decoding(stack, _input(setting, sizes))
    return step_on(_input(setting, sizes), lambda x: stack(x, _positions(stack, x))[0], stack)


def _peer_step(name: str, setting: Setting, sizes: Sizes) -> Step:
    size = Size(sizes.dim, sizes.heads, setting.length, setting.batch, sizes.device)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = LAYERS[name](size)
    module = layer.module.to(sizes.device, sizes.dtype).train(setting.mode == "train")
    return step_on(_input(setting, sizes), layer.run, module)


def _input(setting: Setting, sizes: Sizes) -> Tensor:
    return torch.randn(setting.batch, setting.length, sizes.dim, device=sizes.device, dtype=sizes.dtype)


def _decoding(stack: Stack, x: Tensor) -> Step:
    """Return a step that decodes one token after the tokens x."""
    cache, length = KeyValueCache(), x.shape[1]

    def step() -> object:
        with torch.no_grad():
            if not cache.length:
                stack(x, _positions(stack, x), caches=[cache])
            cache.length = length  # forget the token of the step before
            return stack(x[:, :1], _positions(stack, x, 1), caches=[cache])[0]

    return step


def _positions(stack: Stack, x: Tensor, new: int = 0) -> Positions:
    """Return the positions of the tokens x or, if `new` is not 0, of the `new` tokens that follow them."""
    columns = x.shape[1] + new
    tokens = torch.full((len(x), columns), 3, device=x.device)
    segments = torch.zeros_like(tokens) if stack.pos.needs_segments else None
    return stack.positions(tokens, pad=1, boundaries=(2,), cached=x.shape[1] if new else 0, segments=segments)


def _memory_ratio(step: Step, baseline: Step, device: torch.device) -> float | None:
    """Return the peak memory of a step relative to that of the baseline, or None on a CPU."""
    if device.type != "cuda":
        return None
    return peak_on_gpu(step, device) / max(1, peak_on_gpu(baseline, device))
