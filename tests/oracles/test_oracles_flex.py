"""Compare encodings with score_mod functions in torch's FlexAttention.

On a CPU, its forward pass runs uncompiled, and torch refuses its backward pass (torch 2.13).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch
from oracle_ways import (
    HEAD_DIM,
    HEADS,
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


Row = Callable[[Tensor, Tensor], Tensor]  # query and key column -> row of the table
Made = Callable[[Tensor, Tensor], ScoreMod]  # q and k [B, h, K, D] -> function that changes a score


def rows(clip: int = CLIP, sign: int = 1, late: int = 0) -> Row:
    """Return the row of j - i or, for a deliberate mistake, of i - j or of a later key."""
    return lambda i, j: (sign * (j - i) + late).clamp(-clip, clip) + clip


def raffel(mine: Mine, row: Row) -> Made:
    table = mine.table[0]
    return lambda q, k: lambda score, b, h, i, j: score + table[row(i, j)] * HEAD_DIM**-0.5


def diet_rel(mine: Mine, row: Row) -> Made:
    table = mine.table.expand(HEADS, -1)
    return lambda q, k: lambda score, b, h, i, j: score + table[h, row(i, j)]


def m2(mine: Mine, row: Row) -> Made:
    table = mine.table.expand(HEADS, -1)
    return lambda q, k: lambda score, b, h, i, j: score * table[h, row(i, j)]


def m1(mine: Mine, row: Row) -> Made:
    table = mine.table[0]
    return lambda q, k: lambda score, b, h, i, j: score * table[(row(i, j) - CLIP).abs()]


def m4(mine: Mine, row: Row, s: float = 1.0) -> Made:
    def made(q: Tensor, k: Tensor) -> ScoreMod:
        of_q, of_k = q @ mine.table.mT, k @ mine.table.mT  # (B, h, K, R): all rows, of which each pair reads one
        factor = (s * HEAD_DIM) ** -0.5

        def score_mod(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score * s**-0.5 + (of_q[b, h, i, row(i, j)] + of_k[b, h, j, row(i, j)]) * factor

        return score_mod

    return made


def m4_scaled(mine: Mine, row: Row) -> Made:
    return m4(mine, row, 3.0)


def m4m(mine: Mine, row: Row) -> Made:
    def made(q: Tensor, k: Tensor) -> ScoreMod:
        of_q, of_k = q @ mine.table.mT, k @ mine.table.mT
        return lambda score, b, h, i, j: score * of_q[b, h, i, row(i, j)] * of_k[b, h, j, row(i, j)]

    return made


METHODS = {
    "raffel": ("raffel", "", raffel, CLIP),
    "m1": ("m1", "", m1, CLIP),
    "m2": ("m2", "", m2, CLIP),
    "m2 per head": ("m2", "share=none", m2, CLIP),
    "diet-rel": ("diet-rel", "", diet_rel, CLIP),
    "diet-rel clipped": ("diet-rel", "clip=3", diet_rel, 3),
    "diet-rel, one table": ("diet-rel", "share=layer-wise", diet_rel, CLIP),
    "m4": ("m4", "", m4, CLIP),
    "m4 clipped, per head": ("m4", "clip=3,share=none", m4, 3),
    "m4 scaled": ("m4", "scale=3", m4_scaled, CLIP),
    "m4m": ("m4m", "", m4m, CLIP),
    "m4m clipped, per head": ("m4m", "clip=3,share=none", m4m, 3),
}


def layer_of(method: str, dtype: torch.dtype = torch.float64) -> Mine:
    """Return our layer with the table that `Mine` draws. M4M's table is smaller, to keep logits exact in float32."""
    spec, args, _, _ = METHODS[method]
    mine = Mine(spec, args, dtype=dtype)
    if spec == "m4m":
        mine.table.mul_(HEAD_DIM**-0.5)
    return mine


def of_flex(mine: Mine, made: Made) -> Peer:
    """Run the peer, which applies the mask in score_mod."""

    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, None]:
        q, k, v = Literal(mine, torch.matmul).heads(x)
        score_mod = made(q, k)

        def masked(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score_mod(score, b, h, i, j) + mask[b, 0, i, j]

        attended = flex_attention(q, k, v, score_mod=masked)
        return mine.attention.out_proj(attended.transpose(1, 2).flatten(2)), None

    return run


all_methods = pytest.mark.parametrize("method", METHODS)
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@both_dtypes
@all_methods
@ways(paths=("explicit", "auto"))
def test_score_mod(way: Way, method: str, dtype: torch.dtype) -> None:
    mine, theirs = with_output_of_flex(method, dtype, way.causal, way.pads)
    assert difference(mine, lambda x, mask: (theirs, None), Problem.of(way, dtype)) <= tolerance(dtype)


@functools.cache  # torch traces flex_attention anew in every call, which takes most of the time
@torch.no_grad()
def with_output_of_flex(method: str, dtype: torch.dtype, causal: bool, pads: str) -> tuple[Mine, Tensor]:
    """Return ours, and the output of the peer, which sees all columns at once, however ours computes them."""
    _, _, made, clip = METHODS[method]
    mine, problem = layer_of(method, dtype), Problem.of(Way("whole", causal=causal, pads=pads), dtype)
    return mine, of_flex(mine, made(mine, rows(clip)))(problem.x, problem.mask)[0]


@all_methods
def test_mistakes_show(method: str) -> None:
    _, _, made, clip = METHODS[method]
    mine = layer_of(method)
    for projection in (mine.attention.q_proj, mine.attention.k_proj):
        projection.weight *= 2  # a wrong factor shows only if logits differ enough
    assert not differs(mine, of_flex(mine, made(mine, rows(clip))))
    assert differs(mine, of_flex(mine, made(mine, rows(clip, sign=-1)))) != (method == "m1")  # M1 is symmetric
    assert differs(mine, of_flex(mine, made(mine, rows(clip, late=1))))
