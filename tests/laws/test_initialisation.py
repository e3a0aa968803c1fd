"""Test law 17: parameters start as in the papers or their code, or as the options `init` and `init_std` say."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch

import pytest
import torch
from torch import Tensor

from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.encodings import get, names

from .cases import Case, defaults, every
from .test_step_zero import HEADS, LAYERS, of_layers_and_heads

pytestmark = pytest.mark.usefixtures("_new_memory_is_nan")  # uninitialised parameters cannot look like zeros

Start = tuple[float, float] | Callable[[Tensor], tuple[float, float]]  # mean and deviation, or their function

HEAD_DIM, LENGTH = 64, 32
NORMAL, ONES, ZEROS = (0.0, 0.02), (1.0, 0.0), (0.0, 0.0)


def xavier(slots: Tensor) -> tuple[float, float]:
    """Return mean and deviation of E and F [slots, n] with the gain 1/sqrt(2) of fairseq's Linformer."""
    return 0.0, float(sum(slots.shape[-2:])) ** -0.5


#: Recommended initial values for each group of encodings, by the pattern of a parameter's name.
RECOMMENDED: dict[str, dict[str, Start]] = {
    "m1 m2 m3": {"weight": ONES},
    "m4m": {"weight": (0.0, HEAD_DIM**-0.5)},
    "m4": {"weight": NORMAL, "theta": lambda theta: NORMAL if theta.shape[-1] == HEAD_DIM else ZEROS},
    "shaw": {"weight": NORMAL, "value_weight": NORMAL},
    "lfhc": {"weight": NORMAL},
    "deberta": {"*_bias": ZEROS, "norm_weight": ONES, "*": NORMAL},
    "xl gcdf": {"weight": NORMAL, "u": ZEROS, "v": ZEROS},
    "tupe": {"weight": NORMAL, "u_?": NORMAL, "norm_weight": ONES, "*_bias": ZEROS, "scalars": ZEROS, "theta": ZEROS},
    "diet-abs": {"query": NORMAL, "key": NORMAL},
    "raffel diet-rel t5 segments cope": {"weight": ZEROS},
    "learned sentence-restart segments-input": {"weight": NORMAL},
    "linformer": {"weight": xavier},
    "diet-abs-lin": {"weight": xavier, "query": NORMAL, "key": NORMAL},
}
BY_NAME = {name: starts for several, starts in RECOMMENDED.items() for name in several.split()}


def start(case: Case) -> dict[str, Tensor]:
    """Return the initial parameters of a single encoding."""
    torch.manual_seed(0)
    shape = case.shape(layers=LAYERS, heads=HEADS, head_dim=HEAD_DIM, max_length=LENGTH)
    member = case.encoding(shape).members[case.name]
    return {name: parameter.detach() for name, parameter in member.named_parameters()}


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


def check_recommended(case: Case, starts: dict[str, Start]) -> None:
    """Check every parameter against the first pattern that matches its name."""
    for name, x in start(case).items():
        wanted = next(value for pattern, value in starts.items() if fnmatch(name, pattern))
        check_start(name, x, *(wanted(x) if callable(wanted) else wanted))


@pytest.mark.parametrize("name", names())
def test_parameters_start_as_recommended(name: str) -> None:
    """Where nothing is recommended, all numbers are at least drawn."""
    for case in every(lambda case: case.name == name):
        if name in BY_NAME:
            check_recommended(case, BY_NAME[name])
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
