"""Check the part `laws`: on the device, each path gives the results of float64 up to rounding, and each law holds.

Legend: B batch, T tokens, L layers, d width.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ...attention import PATHS, KeyValueCache
from ...attention.flex import gradients_on_a_cpu
from ...positions import Positions
from ...stack import Block, Stack
from ..rounding import PRECISIONS, relative
from .results import Row, Task
from .subjects import Sizes, Subject

PAD, END, WORDS = 1, 2, 30
#: Bounds of the relative rms of outputs and of gradients, by precision.
BOUNDS = {one.dtype: (one.outputs, one.gradients) for one in PRECISIONS if not one.autocast}


@dataclass(frozen=True)
class Scene:
    """Hold a stack with an encoding in one precision, the same stack in float64, and their inputs.

    Args:
        exact: The stack in float64, whose attention is computed explicitly. stack: The stack in the precision `dtype`.
        x: Embedded tokens of all columns, [2, T, d], in float64. tokens: Their ids; the second sample has padding.
    """

    exact: Stack
    stack: Stack
    x: Tensor
    tokens: Tensor
    dtype: torch.dtype

    @classmethod
    def of(cls, subject: Subject, sizes: Sizes, dtype: torch.dtype) -> Scene:
        """Make the stacks and the inputs."""
        stack = sizes.stack(subject)
        generator = torch.Generator().manual_seed(0)
        tokens = torch.randint(END + 1, WORDS, (2, sizes.length), generator=generator)
        tokens[1, -(sizes.length // 4) :] = PAD
        x = torch.randn(*tokens.shape, stack.shape.dim, generator=generator, dtype=torch.float64)
        exact = _using(copy.deepcopy(stack).double(), "explicit")
        return cls(exact, stack.to(dtype), x.to(sizes.device), tokens.to(sizes.device), dtype)

    def positions(self, tokens: Tensor, *, cached: int = 0, memory: int = 0) -> Positions:
        """Return the positions of the tokens, [B, T]."""
        pos = self.stack.pos
        segments = torch.nn.functional.pad(tokens % 2, (memory, 0))  # the same for a token in any column
        read = segments if pos.needs_segments else None
        return pos.positions(tokens, pad=PAD, boundaries=(END,), cached=cached, memory=memory, segments=read)

    def far(self, actual: Tensor, expected: Tensor, what: str, bound: float | None = None) -> list[str]:
        """Return a line if the relative difference exceeds `bound` (default: that of outputs), otherwise none."""
        if not expected.numel():
            return []
        difference = relative(actual.double(), expected.double())
        bound = BOUNDS[self.dtype][0] if bound is None else bound
        return [] if difference is not None and difference <= bound else [f"{what} differ by {difference}"]


def tasks(sizes: Sizes) -> list[Task]:
    """Return one task per precision and encoding."""
    pairs = [(dtype, subject) for dtype in sizes.precisions for subject in sizes.subjects()]
    return [Task(f"{subject} {_name(dtype)}", partial(check, subject, sizes, dtype)) for dtype, subject in pairs]


def check(subject: Subject, sizes: Sizes, dtype: torch.dtype) -> list[Row]:
    """Return one row per law and path."""
    with _flex(sizes.device):
        scene = Scene.of(subject, sizes, dtype)
        rows = [_row(f"equals float64, {path}", lines) for path, lines in _equal(scene)]
        rows += [_row(law, lines) for law, holds in LAWS.items() if (lines := _checked(holds, scene)) is not None]
    facts = {"encoding": subject.encoding, "options": subject.options, "causal": subject.causal}
    return [{**row, **facts, "precision": _name(dtype)} for row in rows]


def _checked(law: Callable[[Scene], list[str] | None], scene: Scene) -> list[str] | None:
    with torch.no_grad():
        return law(scene)


def _flex(device: torch.device) -> AbstractContextManager[None]:
    """Forget the compiled kernels of other encodings; on a CPU, also let FlexAttention compute gradients."""
    if device.type == "cpu":
        return gradients_on_a_cpu()
    torch._dynamo.reset()
    return nullcontext()


def _row(law: str, lines: list[str]) -> Row:
    return {"law": law, "ok": not lines, "text": f"{law}: {'; '.join(lines)}" if lines else ""}


# -- the laws ----------------------------------------------------------------------------------------------


def _equal(scene: Scene) -> Iterator[tuple[str, list[str]]]:
    """Yield each path that is exact here, and how its outputs and gradients differ from float64."""
    positions = scene.positions(scene.tokens)
    real = scene.tokens.ne(PAD)
    expected, right = _with_gradients(scene.exact, scene.x, positions, real)
    for path in PATHS:
        try:
            _using(scene.stack, path)
            actual, gradients = _with_gradients(scene.stack, scene.x.to(scene.dtype), positions, real)
        except ValueError:  # the path is not exact here
            continue
        lines = scene.far(actual, expected, "outputs")
        for tables in (False, True):
            own, other = (_vector(of, tables) for of in (gradients, right))
            lines += scene.far(own, other, "gradients of " + ("tables" if tables else "projections"), _steep(scene))
        yield path, lines
    _using(scene.stack, "auto")


def _steep(scene: Scene) -> float:
    return BOUNDS[scene.dtype][1]


def _causal(scene: Scene) -> list[str] | None:
    """Check that a token does not see later tokens."""
    if not scene.stack.shape.causal:
        return None
    x, half = scene.x.to(scene.dtype), scene.x.shape[1] // 2
    changed = torch.cat([x[:, :half], x[:, half:].flip(1)], 1)
    one, other = (_attended(scene.stack, of, scene.positions(scene.tokens)) for of in (x, changed))
    return scene.far(other[:, :, :half], one[:, :, :half], "outputs before a change", 0.0)


def _padding(scene: Scene) -> list[str]:
    """Check that padding on the left does not change the outputs of the other tokens."""
    pads = scene.tokens.new_full((2, 3), PAD)
    tokens, x = torch.cat([pads, scene.tokens[:, :-3]], 1), torch.nn.functional.pad(scene.x[:, :-3], (0, 0, 3, 0))
    positions = scene.positions(tokens)
    actual = _attended(scene.stack, x.to(scene.dtype), positions)
    expected = _attended(scene.exact, scene.x[:, :-3], scene.positions(scene.tokens[:, :-3]))
    real = tokens.ne(PAD)[:, 3:]
    return scene.far(actual[:, :, 3:][:, real], expected[:, real], "outputs of samples that are padded on the left")


def _empty(scene: Scene) -> list[str]:
    """Check that a sample that consists only of padding gives neither NaN nor infinity."""
    tokens = torch.cat([scene.tokens[:1], torch.full_like(scene.tokens[:1], PAD)])
    out = _attended(scene.stack, scene.x.to(scene.dtype), scene.positions(tokens))
    return [] if bool(out.isfinite().all()) else ["a sample that consists only of padding gives NaN or infinity"]


def _memory(scene: Scene) -> list[str] | None:
    """Check that a segment with a memory of the segment before it has the same outputs as in one pass over both."""
    if not scene.stack.pos.capabilities.memory:
        return None
    half, tokens = scene.x.shape[1] // 2, scene.tokens[:1]
    whole = _attended(scene.exact, scene.x[:1], scene.positions(tokens))
    x, positions = scene.x[:1].to(scene.dtype), scene.positions(tokens[:, half:], memory=half)
    parts = _attended(scene.stack, x[:, half:], positions, memory=x[:, :half])
    return scene.far(parts, whole[:, :, half:], "outputs with memory")


def _decoding(scene: Scene) -> list[str] | None:
    """Check that decoding a prefix, a chunk and then single tokens gives the same results as a single pass."""
    if not scene.stack.shape.causal or any("compress" in m.hooks for m in scene.stack.pos.members.values()):
        return None
    length = scene.x.shape[1]
    ends = [length // 2, length - 3, length - 2, length - 1, length]
    caches = [KeyValueCache() for _ in scene.stack.layers]
    outputs, done, tokens = [], 0, scene.tokens[:1]
    for end in ends:
        positions = scene.positions(tokens[:, :end], cached=done)
        x = scene.x[:1, done:end].to(scene.dtype)
        outputs.append(_attended(scene.stack, x, positions, caches=caches))
        done = end
    whole = _attended(scene.exact, scene.x[:1], scene.positions(tokens))
    return scene.far(torch.cat(outputs, 2), whole, "outputs of decoding")


LAWS: dict[str, Callable[[Scene], list[str] | None]] = {
    "causality": _causal,
    "padding": _padding,
    "empty samples": _empty,
    "memory": _memory,
    "decoding": _decoding,
}


# -- running a stack ---------------------------------------------------------------------------------------


def _using(stack: Stack, path: str) -> Stack:
    for block in _blocks(stack):
        block.self_attn.path = path
    return stack


def _attended(
    stack: Stack,
    x: Tensor,
    positions: Positions,
    *,
    memory: Tensor | None = None,
    caches: list[KeyValueCache] | None = None,
) -> Tensor:
    """Return the output of each layer's attention for the same input, [L, B, T, d]."""
    stack.pos.check(positions)
    x = stack.pos.embed(x, positions)
    parts = enumerate(zip(_blocks(stack), stack.pos.per_layer(positions), strict=True))
    given = [
        block.self_attn(x, positions, tensors, memory=memory, cache=caches[i] if caches else None)[0]
        for i, (block, tensors) in parts
    ]
    return torch.stack(given)


def _with_gradients(stack: Stack, x: Tensor, positions: Positions, real: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the outputs at tokens, and the gradient of each parameter by name."""
    stack.zero_grad()
    out = _attended(stack, x, positions)[:, real]
    wide = out.to(torch.promote_types(out.dtype, torch.float32))
    direction = torch.arange(wide.numel(), device=wide.device, dtype=torch.float64).sin().view_as(wide)
    (wide * direction.to(wide.dtype)).sum().backward()
    named = ((name, p) for name, p in stack.named_parameters() if name.startswith("pos.") or ".self_attn." in name)
    return out.detach(), {name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in named}


def _vector(gradients: dict[str, Tensor], tables: bool) -> Tensor:
    """Return the gradients of the encoding (if `tables`) or of the projections, as one vector."""
    parts = [x.flatten().double() for name, x in gradients.items() if name.startswith("pos.") == tables]
    return torch.cat(parts) if parts else torch.empty(0)


def _blocks(stack: Stack) -> list[Block]:
    return [block for block in stack.layers if isinstance(block, Block)]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
