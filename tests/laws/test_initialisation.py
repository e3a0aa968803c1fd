"""Test laws 16 and 17: how parameters start, and that all of them learn in the first step.

They start as in the papers or their code, or as the options `init` and `init_std` say. In the first step, W_Q, W_K and
every parameter of an encoding get a gradient, except the parameters in `constant_along_row`, which add the same number
to all logits of a query. The input of this step has two segments and, if the stack has one, a [CLS].
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch

import pytest
import torch
from torch import Tensor

from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.core.syntax import parse_options
from fairseq_posenc.encodings import get, names
from fairseq_posenc.stack import Stack

from .cases import Case, defaults, every, in_turn, tables, without_options
from .scene import PAD, batch_of, outcome

pytestmark = pytest.mark.usefixtures("_new_memory_is_nan")  # uninitialised parameters cannot look like zeros

LAYERS, HEADS, HEAD_DIM, LENGTH = 5, 2, 64, 32
TABLES = tables("initialisation")
RECOMMENDED: dict[str, dict[str, str]] = TABLES["recommended"]
#: Mean and standard deviation of each kind of start.
STARTS = {"normal": (0.0, 0.02), "ones": (1.0, 0.0), "zeros": (0.0, 0.0), "scaled": (0.0, HEAD_DIM**-0.5)}


def values_of(kind: str, x: Tensor) -> tuple[float, float]:
    """Return the mean and the standard deviation of the initial values of a parameter with this kind of start."""
    if kind == "xavier":  # E and F [slots, n] with the gain 1/sqrt(2) of fairseq's Linformer
        return 0.0, float(sum(x.shape[-2:])) ** -0.5
    if kind == "reset":  # a vector is drawn, a scalar is not
        kind = "normal" if x.shape[-1] == HEAD_DIM else "zeros"
    return STARTS[kind]


def start(case: Case) -> dict[str, Tensor]:
    """Return the initial parameters of a single encoding."""
    torch.manual_seed(0)
    shape = case.shape(layers=LAYERS, heads=HEADS, head_dim=HEAD_DIM, max_length=LENGTH)
    member = case.encoding(shape).members[case.name]
    return {name: parameter.detach() for name, parameter in member.named_parameters()}


def of_layers_and_heads(x: Tensor) -> Iterator[Tensor]:
    """Yield the part of each layer and head, or the whole parameter if it has no such axes."""
    for part in x.unbind(0) if x.shape[0] in (1, LAYERS) else [x]:
        yield from part.unbind(0) if part.dim() and part.shape[0] == HEADS else [part]


def check_start(name: str, x: Tensor, mean: float, deviation: float) -> None:
    """Check mean and deviation of each layer and head within six standard errors."""
    for number, part in enumerate(of_layers_and_heads(x)):
        where, error = f"{name}, part {number}", 6 * part.numel() ** -0.5
        assert bool(part.isfinite().all()), f"{where} is not drawn"
        statistics = float(part.mean()), float(part.std(correction=0))
        if not deviation:
            assert bool((part == mean).all()), f"{where} is not {mean}: mean and deviation {statistics}"
            continue
        assert abs(statistics[0] - mean) <= error * deviation, f"{where}: mean {statistics[0]}, not {mean}"
        assert abs(statistics[1] / deviation - 1) <= error, f"{where}: deviation {statistics[1]}, not {deviation}"


def check_recommended(case: Case, starts: dict[str, str]) -> None:
    """Check every parameter against the first pattern that matches its name."""
    for name, x in start(case).items():
        kind = next(kind for pattern, kind in starts.items() if fnmatch(name, pattern))
        check_start(name, x, *values_of(kind, x))


@pytest.mark.parametrize("name", names())
def test_parameters_start_as_recommended(name: str) -> None:
    """Where nothing is recommended, all numbers are at least drawn."""
    for case in every(lambda case: case.name == name):
        if name in RECOMMENDED:
            check_recommended(case, RECOMMENDED[name])
        else:
            assert all(bool(x.isfinite().all()) for x in start(case).values())


@pytest.mark.parametrize("case", defaults(lambda case: "init" in option_names(get(case.name).Options)), ids=str)
def test_init_is_that_of_the_same_parameters_whatever_it_is(case: Case) -> None:
    """`init` applies to the table or to all tables, but never to a matrix that projects them."""
    plain = start(case)
    wide = start(Case(case.spec, {"init": "normal", "init_std": 0.3}, case.causal))
    changed = [name for name, x in wide.items() if not torch.equal(x, plain[name])]
    assert changed
    for name in changed:
        check_start(name, wide[name], 0.0, 0.3)
    for init, value in (("zeros", 0.0), ("ones", 1.0)):
        try:
            constant = start(Case(case.spec, {"init": init}, case.causal))
        except ValueError:
            continue  # such a start is refused, because the encoding would never learn
        for name in changed:
            check_start(name, constant[name], value, 0.0)


# -- the first step ----------------------------------------------------------------------------------------

#: Gradients below this fraction of the stack's largest gradient count as zero. Parameters that learn have at least 1e-8
#: of it, and rounding errors at most 1e-15.
ROUNDING = 1e-12
#: Encodings whose parameters have gradients only for some initial values, with the reason and the number of draws. Each
#: part of a parameter must get a gradient in at least one draw.
DRAWS = {"fire": ("ReLUs that are open at all distances, and add the same to a whole row, until drawn otherwise", 100)}

MORE = [Case(spec, parse_options(args)) for spec, args in TABLES["first_step"]["cases"]]
CASES = [*in_turn(now=without_options), *(pytest.param(case, id=str(case)) for case in MORE)]


def gradients(stack: Stack) -> dict[str, Tensor]:
    """Return the gradients of all parameters, relative to the largest entry."""
    tokens, x, positions = batch_of(stack, [LENGTH, LENGTH - 5])
    results = outcome(stack, stack(x, positions)[0][tokens.ne(PAD)])
    gradients = {name: results[f"gradient of {name}"] for name, _ in stack.named_parameters()}
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
    raise AssertionError(f"no gradient: {'; '.join(still)}")


@pytest.mark.parametrize("case", CASES)
def test_at_the_start_everything_learns_but_what_is_listed(case: Case) -> None:
    check_step_zero(case)
