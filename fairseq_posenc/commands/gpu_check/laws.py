"""Run the part `laws`: check that each attention path agrees with float64, and that encodings obey laws.

A law is a rule for every encoding, for example that no token of a decoder sees later tokens.

Legend: B batch, T tokens, L layers, d width.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from ...attention import PATHS, KeyValueCache, PathRefusedError
from ...attention.choice import NAMES
from ...attention.flex import gradients_on_a_cpu
from ...positions import Positions
from ...stack import Stack
from ..rounding import PRECISIONS, attend_all, blocks_of, relative
from .results import Row, Task, described
from .subjects import Sizes, Subject

PAD, END, WORDS = 1, 2, 30
#: Bounds of the relative rms of outputs and of gradients, by precision.
BOUNDS = {one.dtype: (one.outputs, one.gradients) for one in PRECISIONS if not one.autocast}


@dataclass(frozen=True)
class Scene:
    """Hold a stack with an encoding in one precision, the same stack in float64, and their inputs.

    Args:
        exact: The stack in float64, whose attention is computed explicitly. stack: The stack in the precision `dtype`.
        x: Embedded tokens of all columns, [2, T, d], in float64. tokens: Ids of the tokens, [2, T]; the second sample
            has padding.
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

    @cached_property
    def expected(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the outputs and gradients in float64."""
        return self.run(self.exact, torch.float64)

    def run(self, stack: Stack, dtype: torch.dtype) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the outputs of a stack at the tokens, and the gradient of each parameter by name."""
        stack.zero_grad()
        out = attend_all(stack, self.x.to(dtype), self.positions(self.tokens))[:, self.tokens.ne(PAD)]
        wide = out.to(torch.promote_types(out.dtype, torch.float32))
        direction = torch.arange(wide.numel(), device=wide.device, dtype=torch.float64).sin().view_as(wide)
        (wide * direction.to(wide.dtype)).sum().backward()
        named = ((name, p) for name, p in stack.named_parameters() if name.startswith("pos.") or ".self_attn." in name)
        return out.detach(), {name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in named}

    def positions(self, tokens: Tensor, *, cached: int = 0, memory: int = 0) -> Positions:
        """Return the positions of the tokens, [B, T]."""
        pos = self.stack.pos
        segments = torch.nn.functional.pad(tokens % 2, (memory, 0))  # the same for a token in any column
        read = segments if pos.needs_segments else None
        return pos.positions(tokens, pad=PAD, boundaries=(END,), cached=cached, memory=memory, segments=read)

    def far(self, actual: Tensor, expected: Tensor, what: str, bound: float | None = None) -> list[str]:
        """Return a line of text if the relative difference exceeds `bound` (default: the bound of outputs)."""
        if not expected.numel():
            return []
        difference = relative(actual.double(), expected.double())
        bound = BOUNDS[self.dtype][0] if bound is None else bound
        return [] if difference is not None and difference <= bound else [f"{what} differ by {difference}"]


#: A function that returns how a law is broken, in no lines if it holds, or None if it does not apply.
Law = Callable[[Scene], list[str] | None]


def tasks(sizes: Sizes) -> list[Task]:
    """Return one task per precision and encoding."""
    pairs = [(dtype, subject) for dtype in sizes.precisions for subject in sizes.subjects()]
    return [Task(f"{subject} {_name(dtype)}", partial(check, subject, sizes, dtype)) for dtype, subject in pairs]


def check(subject: Subject, sizes: Sizes, dtype: torch.dtype) -> list[Row]:
    """Return one row for each law that applies to the encoding."""
    with gradients_on_a_cpu() if sizes.device.type == "cpu" else nullcontext():
        scene = Scene.of(subject, sizes, dtype)
        rows = [row for law, holds in LAWS.items() if (row := _checked(law, holds, scene))]
    facts = {"encoding": subject.encoding, "options": subject.options, "causal": subject.causal}
    return [{**row, **facts, "precision": _name(dtype)} for row in rows]


def _checked(law: str, holds: Law, scene: Scene) -> Row | None:
    """Return the row of a law, or None if the law does not apply.

    If the check of the law raises an exception, the law fails, and the other laws are still checked.
    """
    try:
        lines = holds(scene)
    except Exception as error:  # noqa: BLE001 - the other laws go on
        if isinstance(error, PathRefusedError) and law in REFUSABLE:
            return {"law": law, "ok": True, "text": "", "refused": str(error)}
        lines = [described(error)]
    if lines is None:
        return None
    return {"law": law, "ok": not lines, "text": f"{law}: {'; '.join(lines)}" if lines else ""}


# -- the laws ----------------------------------------------------------------------------------------------


def _equal(scene: Scene, path: str) -> list[str]:
    """Check that the outputs and gradients of a path equal those in float64, up to rounding."""
    expected, right = scene.expected
    try:
        actual, gradients = scene.run(_using(scene.stack, path), scene.dtype)
    finally:
        _using(scene.stack, "auto")
    lines = scene.far(actual, expected, "outputs")
    for tables in (False, True):
        own, other = (_vector(of, tables) for of in (gradients, right))
        what = "gradients of " + ("tables" if tables else "projections")
        lines += scene.far(own, other, what, BOUNDS[scene.dtype][1])
    return lines


def _causal(scene: Scene) -> list[str] | None:
    """Check that a token does not see later tokens."""
    if not scene.stack.shape.causal:
        return None
    x, half = scene.x.to(scene.dtype), scene.x.shape[1] // 2
    changed = torch.cat([x[:, :half], x[:, half:].flip(1)], 1)
    one, other = (attend_all(scene.stack, of, scene.positions(scene.tokens)) for of in (x, changed))
    return scene.far(other[:, :, :half], one[:, :, :half], "outputs before a change", 0.0)


def _padding(scene: Scene) -> list[str]:
    """Check that padding on the left does not change the outputs of the other tokens."""
    pads = scene.tokens.new_full((2, 3), PAD)
    tokens, x = torch.cat([pads, scene.tokens[:, :-3]], 1), torch.nn.functional.pad(scene.x[:, :-3], (0, 0, 3, 0))
    positions = scene.positions(tokens)
    actual = attend_all(scene.stack, x.to(scene.dtype), positions)
    expected = attend_all(scene.exact, scene.x[:, :-3], scene.positions(scene.tokens[:, :-3]))
    real = tokens.ne(PAD)[:, 3:]
    return scene.far(actual[:, :, 3:][:, real], expected[:, real], "outputs of samples that are padded on the left")


def _empty(scene: Scene) -> list[str]:
    """Check that a sample that consists only of padding gives neither NaN nor infinity."""
    tokens = torch.cat([scene.tokens[:1], torch.full_like(scene.tokens[:1], PAD)])
    out = attend_all(scene.stack, scene.x.to(scene.dtype), scene.positions(tokens))
    return [] if bool(out.isfinite().all()) else ["a sample that consists only of padding gives NaN or infinity"]


def _memory(scene: Scene) -> list[str] | None:
    """Check that a segment with a memory of the previous segment has the same outputs as both segments in one pass."""
    if not scene.stack.pos.capabilities.memory:
        return None
    half, tokens = scene.x.shape[1] // 2, scene.tokens[:1]
    whole = attend_all(scene.exact, scene.x[:1], scene.positions(tokens))
    x, positions = scene.x[:1].to(scene.dtype), scene.positions(tokens[:, half:], memory=half)
    parts = attend_all(scene.stack, x[:, half:], positions, memory=x[:, :half])
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
        outputs.append(attend_all(scene.stack, x, positions, caches=caches))
        done = end
    whole = attend_all(scene.exact, scene.x[:1], scene.positions(tokens))
    return scene.far(torch.cat(outputs, 2), whole, "outputs of decoding")


def _law_of(path: str) -> str:
    return f"equals float64, {path}"


LAWS: dict[str, Law] = {
    **{_law_of(path): partial(_equal, path=path) for path in PATHS},
    "causality": torch.no_grad()(_causal),
    "padding": torch.no_grad()(_padding),
    "empty samples": torch.no_grad()(_empty),
    "memory": torch.no_grad()(_memory),
    "decoding": torch.no_grad()(_decoding),
}
#: Laws of paths that may be refused, with the reason. The paths auto and explicit work always.
REFUSABLE = {_law_of(path) for path in NAMES}


# -- running a stack ---------------------------------------------------------------------------------------


def _using(stack: Stack, path: str) -> Stack:
    for block in blocks_of(stack):
        block.self_attn.path = path
    return stack


def _vector(gradients: dict[str, Tensor], tables: bool) -> Tensor:
    """Return the gradients of the encoding (if `tables`) or of the projections, as one vector."""
    parts = [x.flatten().double() for name, x in gradients.items() if name.startswith("pos.") == tables]
    return torch.cat(parts) if parts else torch.empty(0)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
