"""Content-free methods as score_mod of torch's FlexAttention (METHODS.md section 10, oracle 14).

Its forward runs uncompiled on a CPU; it has no backward there (torch 2.13).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from oracle_ways import (
    HEAD_DIM,
    KEYS,
    Literal,
    Mine,
    Peer,
    Problem,
    Way,
    both_dtypes,
    difference,
    differs,
    tolerance,
    ways,
)
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

CLIP = 11  # n - 1
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def raffel(mine: Mine, sign: int = 1, late: int = 0) -> ScoreMod:
    table = mine.table[0]
    return lambda score, b, h, i, j: score + table[sign * (j - i) + late + CLIP] * HEAD_DIM**-0.5


def m2(mine: Mine, sign: int = 1, late: int = 0) -> ScoreMod:
    table = mine.table[0]
    return lambda score, b, h, i, j: score * table[sign * (j - i) + late + CLIP]


def m2_per_head(mine: Mine, sign: int = 1, late: int = 0) -> ScoreMod:
    table = mine.table
    return lambda score, b, h, i, j: score * table[h, sign * (j - i) + late + CLIP]


METHODS = {
    "raffel": ("raffel", "", raffel),
    "m2": ("m2", "", m2),
    "m2 per head": ("m2", "share=none", m2_per_head),
}


def of_flex(mine: Mine, score_mod: ScoreMod) -> Peer:
    """The peer: masked within score_mod."""

    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, None]:
        def masked(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score_mod(score, b, h, i, j) + mask[b, 0, i, j]

        q, k, v = Literal(mine, torch.matmul).heads(x)
        attended = flex_attention(q, k, v, score_mod=masked)
        return mine.attention.out_proj(attended.transpose(1, 2).flatten(2)), None

    return run


all_methods = pytest.mark.parametrize("method", METHODS)
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@both_dtypes
@all_methods
@ways(paths=("explicit", "auto"))
def test_score_mod(way: Way, method: str, dtype: torch.dtype) -> None:
    spec, args, score_mod = METHODS[method]
    mine = Mine(spec, args, dtype=dtype)
    assert difference(mine, of_flex(mine, score_mod(mine)), Problem.of(way, dtype)) <= tolerance(dtype)


@all_methods
def test_mistakes_show(method: str) -> None:
    spec, args, score_mod = METHODS[method]
    mine = Mine(spec, args)
    for projection in (mine.attention.q_proj, mine.attention.k_proj):
        projection.weight *= 2  # a factor shows only on logits that differ
    assert not differs(mine, of_flex(mine, score_mod(mine)))
    assert differs(mine, of_flex(mine, score_mod(mine, sign=-1)))
    assert differs(mine, of_flex(mine, score_mod(mine, late=1)))


def test_auto_is_fused_where_it_can_be() -> None:
    """So that `auto` above has tested the fused kernel for raffel, and the explicit path for m2."""
    problem = Problem.of(Way("whole", "fused"), torch.float64)
    Mine("raffel").run(problem)
    with pytest.raises(ValueError, match="replaces the product"):
        Mine("m2").run(problem)
    assert problem.x.shape[1] == KEYS
