"""Test law 16: in the first step, W_Q, W_K and every parameter of an encoding get a gradient.

The exceptions are exactly the parameters in `constant_along_row`, which add the same number to all logits of a query.
The input has two segments and, if the stack has one, a [CLS].
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case, in_turn, without_options
from .scene import PAD, batch_of, normal, segments_of

LAYERS, HEADS, LENGTH = 5, 2, 32
#: Gradients below this fraction of the stack's largest gradient count as zero. Parameters that learn have at least 1e-8
#: of it, and rounding errors at most 1e-15.
ROUNDING = 1e-12
#: Encodings whose parameters have gradients only for some initial values, with the reason and the number of draws. Each
#: part of a parameter must get a gradient in at least one draw.
DRAWS = {"fire": ("ReLUs that are open at all distances, and add the same to a whole row, until drawn otherwise", 100)}

#: Tables as a converter of checkpoints initialises them, other initial values, and compositions.
MORE = [
    ("m4m", {"init_std": 0.02}),
    ("learned+m4m", {"m4m.init_std": 0.02}),
    ("m4m+segments", {}),
    ("xl+t5", {}),
    ("tupe", {"init": "ones", "relative": False}),
    ("tupe", {"init": "xavier-uniform", "relative": False}),
    ("tupe", {"form": "original", "init": "xavier-uniform", "relative": False}),
]
CASES = [*in_turn(now=without_options), *(pytest.param(Case(*more), id=str(Case(*more))) for more in MORE)]


def inputs(stack: Stack) -> tuple[Tensor, Positions, Tensor]:
    """Return embedded tokens [B, T, d], their positions, and weights of the loss that are zero at padding."""
    tokens, x, positions = batch_of(stack, [LENGTH, LENGTH - 5])
    assert (positions.segments is not None) == stack.pos.needs_segments
    assert all(set(sample.tolist()) == {0, 1} for sample in segments_of(tokens))
    assert (positions.cls_column is not None) == stack.shape.has_cls
    wanted = normal(*x.shape, generator=torch.Generator().manual_seed(1))
    return x, positions, wanted * tokens.ne(PAD)[..., None]


def gradients(stack: Stack) -> dict[str, Tensor]:
    """Return the gradients of all parameters, relative to the largest entry."""
    x, positions, wanted = inputs(stack)
    stack.zero_grad()
    (stack(x, positions)[0] * wanted).sum().backward()
    gradients = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in stack.named_parameters()}
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    return {name: gradient / largest for name, gradient in gradients.items()}


def listed(stack: Stack) -> dict[str, Tensor]:
    """Return for each parameter a mask in its shape, true where `constant_along_row` lists it."""
    marks = {name: torch.zeros_like(p, dtype=torch.bool) for name, p in stack.pos.named_parameters(prefix="pos")}
    for owner, member in stack.pos.members.items():
        for part in member.constant_along_row:
            name, _, index = part.rstrip("]").partition("[")
            where = [... if word.strip() == "..." else int(word) for word in index.split(",") if word]
            marks[f"pos.{owner}.{name}"][tuple(where)] = True
    return marks


def of_layers_and_heads(x: Tensor) -> Iterator[Tensor]:
    """Yield the part of each layer and head, or the whole parameter if it has no such axes."""
    for part in x.unbind(0) if x.shape[0] in (1, LAYERS) else [x]:
        yield from part.unbind(0) if part.dim() and part.shape[0] == HEADS else [part]


def norms(stack: Stack, found: dict[str, Tensor]) -> dict[str, float]:
    """Return the gradient of each part that must learn, by the name of the part.

    That of each index of each axis too, unless it is exactly zero: a row that no token reads gets none, while
    what is constant along a row gets what rounding leaves of a sum of zero.
    """
    parts: dict[str, Tensor] = {}
    for name, mark in listed(stack).items():
        kept = found[name].masked_fill(mark, 0.0)
        pairs = enumerate(zip(of_layers_and_heads(kept), of_layers_and_heads(~mark), strict=True))
        parts |= {f"{name}, part {i}": part for i, (part, learns) in pairs if learns.any()}
        for axis in range(kept.dim()):
            parts |= {f"{name}, axis {axis}, {i}": one for i, one in enumerate(kept.unbind(axis)) if one.any()}
    for name in found:
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            parts |= {f"{name}, head {i}": rows for i, rows in enumerate(found[name].chunk(HEADS))}
    return {label: float(part.norm()) for label, part in parts.items()}


def check_step_zero(case: Case) -> None:
    """Check that all parts learn in the first draw (or one of `DRAWS`), except those that are listed."""
    stack = case.stack(case.shape(layers=LAYERS, heads=HEADS, max_length=LENGTH)).train()
    best: dict[str, float] = {}
    for draw in range(max(DRAWS.get(name, ("", 1))[1] for name in case.spec.split("+"))):
        found = gradients(stack)
        for name, mark in listed(stack).items():
            wrong = found[name][mark].abs() > ROUNDING
            assert not wrong.any(), f"{name} is listed as constant along a row, and has a gradient"
        best |= {label: max(norm, best.get(label, 0.0)) for label, norm in norms(stack, found).items()}
        still = [label for label, norm in best.items() if norm <= ROUNDING]
        if not still:
            return
        torch.manual_seed(draw)
        for member in stack.pos.members.values():
            member.reset_parameters()
    raise AssertionError(f"no gradient at the start: {'; '.join(still)}")


@pytest.mark.parametrize("case", CASES)
def test_at_the_start_everything_learns_but_what_is_listed(case: Case) -> None:
    check_step_zero(case)
