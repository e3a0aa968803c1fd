"""Law 15: six compositions against sums written out here, from METHODS.md alone; two that multiply are refused.

Nothing of the encodings but their tables is read. Legend: B batch, h heads, T tokens, D head width, d width.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention import SelfAttention
from fairseq_posenc.encodings import Composition, build, names
from fairseq_posenc.stack import Stack

from .cases import Case, defaults, directions, works
from .compare import assert_close, assert_refused
from .literal import literal_mask
from .scene import attend_all, drawn, embedded, padded, positions_of, segments_of, use_path
from .test_shift_and_direction import logits_of

LENGTH = 20  # tokens: longer than what T5 counts one by one, in both directions
MAX_LENGTH = 22


class Given(NamedTuple):
    """q and k [B, h, T, D] of the second of two layers, j - i [T, T], segments [B, T], and the tables."""

    q: Tensor
    k: Tensor
    delta: Tensor
    segments: Tensor
    pos: Composition
    causal: bool

    def table(self, member: str, name: str = "weight") -> Tensor:
        """[h or 1, ...] of the layer, which is the last, or of all layers."""
        table: Tensor = getattr(self.pos.members[member], name)[-1]
        return table

    @property
    def content(self) -> Tensor:
        """[B, h, T, T], q_i . k_j."""
        return torch.einsum("bhid,bhjd->bhij", self.q, self.k)

    def vectors(self, member: str) -> Tensor:
        """[h or 1, T, T, D], a_ij = w[j - i]: unclipped, row n - 1 is that of 0."""
        return self.table(member)[:, self.delta + MAX_LENGTH - 1]

    def with_vectors(self, member: str) -> tuple[Tensor, Tensor]:
        """q_i . a_ij and k_j . a_ij, [B, h, T, T] each."""
        a = self.vectors(member).expand(self.q.shape[1], -1, -1, -1)
        return torch.einsum("bhid,hijd->bhij", self.q, a), torch.einsum("bhjd,hijd->bhij", self.k, a)


def segment_biases(given: Given) -> Tensor:
    """2.23: S[seg(i), seg(j)], undivided."""
    i, j = given.segments[:, :, None], given.segments[:, None, :]
    return given.table("segments")[:, i, j].transpose(0, 1)


def t5_biases(given: Given) -> Tensor:
    """2.7: b[bucket(j - i)] with N = 32 and 128, undivided."""
    left, right = (-given.delta).clamp(min=0), given.delta.clamp(min=0)
    distance, buckets, first = (left, 32, 0) if given.causal else (left + right, 16, 16 * (right > 0))
    exact = buckets // 2
    growth = (distance.clamp(min=1).double() / exact).log() / math.log(128 / exact) * (buckets - exact)
    row = torch.where(distance < exact, distance, (exact + growth.floor().long()).clamp(max=buckets - 1))
    return given.table("t5")[:, first + row]


def m4m(given: Given) -> Tensor:
    """2.13: (q . k) (q . a) (k . a) / sqrt(D)."""
    of_q, of_k = given.with_vectors("m4m")
    return given.content * of_q * of_k / given.q.shape[-1] ** 0.5


def m4m_segments(given: Given) -> Tensor:
    return m4m(given) + segment_biases(given)


def t5_m2(given: Given) -> Tensor:
    """2.9 in place of the product, and T5's bias added."""
    w = given.table("m2")[:, given.delta + MAX_LENGTH - 1]
    return given.content * w / given.q.shape[-1] ** 0.5 + t5_biases(given)


def rope_m4(given: Given) -> Tensor:
    """2.11 with 9: the product of the rotated, the position terms of what is not rotated."""
    dim = given.q.shape[-1]
    angles = torch.arange(LENGTH)[:, None] * 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    turn = torch.polar(torch.ones_like(angles), angles)  # (T, D/2), each times one pair (x_2i, x_2i+1)
    q, k = (torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * turn for x in (given.q, given.k))
    rotated = torch.einsum("bhid,bhjd->bhij", q, k.conj()).real
    of_q, of_k = given.with_vectors("m4")
    return (rotated + of_q + of_k) / dim**0.5


def diet_abs_segments(given: Given) -> Tensor:
    """2.22: P_Q P_K^T, undivided."""
    p_q, p_k = (given.table("diet-abs", name)[:, :LENGTH] for name in ("query", "key"))
    return given.content / given.q.shape[-1] ** 0.5 + p_q @ p_k.mT + segment_biases(given)


def xl_t5(given: Given) -> Tensor:
    """2.15: ((q + u) . k + (q + v) . W_r R_{i-j}) / sqrt(D), R = [sin | cos] of width d."""
    heads, dim = given.q.shape[1], given.q.shape[-1]
    speeds = 10000.0 ** (-torch.arange(0, heads * dim, 2, dtype=torch.float64) / (heads * dim))
    angles = -given.delta[..., None] * speeds
    r = torch.cat([angles.sin(), angles.cos()], -1) @ given.table("xl").mT  # (T, T, d)
    u, v = given.table("xl", "u")[:, None], given.table("xl", "v")[:, None]
    position = torch.einsum("bhid,ijhd->bhij", given.q + v, r.unflatten(-1, (heads, dim)))
    return ((given.q + u) @ given.k.mT + position) / dim**0.5 + t5_biases(given)


BY_HAND: dict[str, Callable[[Given], Tensor]] = {
    "m4m+segments": m4m_segments,
    "t5+m2": t5_m2,
    "rope+m4": rope_m4,
    "learned+m4m": m4m,  # 2.2: the rest is in the input
    "diet-abs+segments": diet_abs_segments,
    "xl+t5": xl_t5,
}
CASES = [Case(spec, {}, causal) for spec in BY_HAND for causal in (False, True) if works(spec, {}, causal)]


def split(x: Tensor, projection: torch.nn.Linear, heads: int) -> Tensor:
    """[B, T, d] -> [B, h, T, D], projected."""
    projected = x @ projection.weight.mT + projection.bias
    return projected.unflatten(-1, (heads, -1)).transpose(1, 2)


def check_by_hand(case: Case, move: str = "") -> None:
    """Logits and output of the second layer; `move` changes a member's tables after the sum is made."""
    stack = drawn(case.stack(case.shape(max_length=MAX_LENGTH)))
    tokens = padded([LENGTH, LENGTH - 6], LENGTH)
    x, positions = embedded(tokens, stack.shape.dim), positions_of(tokens, stack)
    with torch.no_grad():
        logits, out = sums_by_hand(case, stack, x, tokens)
        for parameter in stack.pos.members[move].parameters() if move else []:
            parameter.add_(torch.linspace(0.01, 0.1, parameter.numel(), dtype=x.dtype).view_as(parameter))
        assert_close(logits_of(stack, x, positions, LENGTH)[1], logits, 1e-11, "logits")
        for path in ("explicit", "auto"):
            use_path(stack, path)
            assert_close(attend_all(stack, x, positions)[1], out, 1e-11, path)


def sums_by_hand(case: Case, stack: Stack, x: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """[B, h, T, T] and [B, T, d]."""
    attention: SelfAttention = stack.layers[1].self_attn
    positions = positions_of(tokens, stack)
    if "learned" in stack.pos.members:
        x = x + stack.pos.members["learned"].weight[:LENGTH]
    q, k, v = (split(x, getattr(attention, f"{name}_proj"), stack.shape.heads) for name in "qkv")
    columns = torch.arange(LENGTH)
    given = Given(q, k, columns - columns[:, None], segments_of(tokens), stack.pos, case.causal)
    logits = BY_HAND[case.spec](given)
    weights = logits.masked_fill(~literal_mask(positions), float("-inf")).softmax(-1)
    together = (weights @ v).transpose(1, 2).flatten(2)
    return logits, together @ attention.out_proj.weight.mT + attention.out_proj.bias


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_composition_is_the_sum_written_out_here(case: Case) -> None:
    check_by_hand(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_member_counts(case: Case) -> None:
    for name, member in case.encoding(case.shape()).members.items():
        if any(True for _ in member.parameters()):
            with pytest.raises(AssertionError, match="differs by"):
                check_by_hand(case, move=name)


SCORING = sorted({case.spec for case in defaults(lambda case: "scores" in case.hooks)})
PROJECTING = sorted({case.spec for case in defaults(lambda case: bool({"project_q", "project_k"} & case.hooks))})


@pytest.mark.parametrize("pair", list(itertools.permutations(SCORING, 2)), ids="+".join)
def test_two_that_replace_the_product_are_refused(pair: tuple[str, str]) -> None:
    for causal in (False, True):
        reason = f"{pair[0]} and {pair[1]} both replace the product of query and key"
        assert_refused(lambda causal=causal: build("+".join(pair), None, Case("none", {}, causal).shape()), reason)


@pytest.mark.parametrize("pair", list(itertools.product(PROJECTING, SCORING)), ids="+".join)
def test_one_that_replaces_the_product_and_one_that_needs_it_are_refused(pair: tuple[str, str]) -> None:
    shape = Case("none", {}, directions(pair[0])[0]).shape()
    reason = f"{pair[1]} replaces the product of query and key, which {pair[0]} needs"
    for spec in ("+".join(pair), "+".join(reversed(pair))):
        assert_refused(lambda spec=spec: build(spec, None, shape), reason)


def test_these_are_among_the_refused() -> None:
    assert {"m1", "m2", "m3", "m4m"} <= set(SCORING) <= set(names())
    assert {"rope", "xpos", "xl", "gcdf"} <= set(PROJECTING)
