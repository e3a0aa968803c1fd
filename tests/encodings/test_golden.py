"""Values worked out by hand or printed in the sources (METHODS.md section 8), through the code that models run.

A new encoding adds its rows to the tables in here.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention.paths import Projected, logits
from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.encodings.alibi import slopes_of
from fairseq_posenc.encodings.t5 import bucket
from fairseq_posenc.positions import Positions, restart_ids

CPU = torch.device("cpu")
lengths = pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 3), (2, 5), (1, 5)])


def made(spec: str, args: str = "", *, heads: int = 1, dim: int = 2, n: int = 8, causal: bool = False) -> Composition:
    """One layer in float64, in evaluation."""
    return build(spec, args, StackShape(1, heads, dim, n, causal=causal)).double().eval().requires_grad_(False)


def logits_of(pos: Composition, q: Tensor, k: Tensor, positions: Positions) -> Tensor:
    """[B, h, Q, K] of raw q and k, as the attention makes them."""
    call = pos.layer(1).at(positions, pos.per_layer(positions)[0])
    return logits(Projected(call.project_q(q), call.project_k(k), k, q, k), call)


def vectors(row: list[float], length: int) -> Tensor:
    """[1, 1, T, D], the same at every column."""
    return torch.tensor(row, dtype=torch.float64).expand(1, 1, length, -1)


# -- the hand example: q = (1, 2), k = (3, -1), so q.k = 1; D = 2 ----------------------------------------------------

VECTOR = [0.5, 1.0]  # a: q.a = 2.5, k.a = 0.5
SCALAR = 0.5
HAND = [
    ("none", "", None, 0.707107),
    ("shaw", "", VECTOR, 2.474874),
    ("shaw", "clip=1,share=none", VECTOR, 2.474874),
    ("raffel", "", SCALAR, 1.060660),
    ("t5", "", SCALAR, 1.207107),
    ("t5", "content_scale=one", SCALAR, 1.5),
    ("m2", "", SCALAR, 0.353553),
]


@lengths
@pytest.mark.parametrize(("spec", "args", "a", "expected"), HAND)
def test_hand_example(
    spec: str, args: str, a: float | list[float] | None, expected: float, queries: int, keys: int
) -> None:
    """Every row of the table is a, every query and key the same: so is every logit."""
    pos = made(spec, args)
    if a is not None:
        weight = pos.members[spec].weight
        weight.copy_(torch.tensor(a).expand_as(weight))
    found = logits_of(pos, vectors([1, 2], queries), vectors([3, -1], keys), Positions(queries, keys, CPU))
    torch.testing.assert_close(found, torch.full_like(found, expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("spec", "factor"), [("shaw", 2**-0.5), ("raffel", 2**-0.5), ("m2", 2**-0.5)])
@lengths
def test_rows_hold_j_minus_i(spec: str, factor: float, queries: int, keys: int) -> None:
    """A table whose row j - i holds the number j - i: METHODS.md 0.2, the canonical sign."""
    pos = made(spec, n=6)
    weight = pos.members[spec].weight
    numbers = torch.arange(-5, 6, dtype=torch.float64)
    weight.copy_(torch.stack([numbers, 0 * numbers], -1) if weight.dim() == 4 else numbers)
    q, k = vectors([1, 0], queries), vectors([float(spec == "m2"), 1], keys)
    found = logits_of(pos, q, k, Positions(queries, keys, CPU))[0, 0]
    expected = [[(j - i) * factor for j in range(keys)] for i in range(keys - queries, keys)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


# -- sinusoids ------------------------------------------------------------------------------------------------------

SINUSOIDS = [  # d = 4, position 1
    ("", [0.841471, 0.540302, 0.010000, 0.999950]),  # the papers: sin and cos alternate
    ("freq=t2t", [0.841471, 0.000100, 0.540302, 1.000000]),  # tensor2tensor: frequencies 1 and 1/10000
]


@pytest.mark.parametrize(("args", "expected"), SINUSOIDS)
def test_sinusoid(args: str, expected: list[float]) -> None:
    found = made("sinusoidal", args, dim=4).embed(torch.zeros(1, 2, 4).double(), Positions(2, 2, CPU))
    torch.testing.assert_close(found[0, 1], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6)
    zero = [0.0, 1.0, 0.0, 1.0] if not args else [0.0, 0.0, 1.0, 1.0]
    assert found[0, 0].tolist() == zero


@pytest.mark.parametrize("args", ["", "freq=t2t"])
def test_sinusoid_offset_and_cached_step(args: str) -> None:
    """Position 3 read three ways."""
    x = torch.zeros(1, 4, 4).double()
    whole = made("sinusoidal", args, dim=4).embed(x, Positions(4, 4, CPU))[0, 3]
    later = made("sinusoidal", f"{args},offset=2", dim=4).embed(x, Positions(4, 4, CPU))[0, 1]
    step = made("sinusoidal", args, dim=4).embed(x[:, :1], Positions(1, 4, CPU))[0, 0]
    assert torch.equal(whole, later)
    assert torch.equal(whole, step)


# -- how often each distance occurs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (2, 5), (1, 5)])
def test_frequency_of_distances(queries: int, keys: int) -> None:
    """n - |j - i|: as positions list them, and as the gradients of a scalar each count them."""
    where = Positions(queries, keys, CPU)
    pairs = [j - i for i in range(keys - queries, keys) for j in range(keys)]
    golden = [1, 2, 3, 4, 5, 4, 3, 2, 1] if queries == keys else [pairs.count(delta) for delta in range(-4, 5)]
    assert [int((where.delta == delta).sum()) for delta in range(-4, 5)] == golden
    pos = made("diet-rel", n=5)
    pos.members["diet-rel"].weight.requires_grad_()
    logits_of(pos, vectors([1, 2], queries), vectors([3, -1], keys), where).sum().backward()
    assert pos.members["diet-rel"].weight.grad.flatten().tolist() == golden


# -- T5's buckets ---------------------------------------------------------------------------------------------------

BOTH_WAYS = {
    -200: 15, -128: 15, -91: 15, -64: 14, -46: 13, -32: 12, -23: 11, -16: 10, -12: 9, -8: 8, -7: 7, -1: 1, 0: 0,
    1: 17, 7: 23, 8: 24, 12: 25, 16: 26, 64: 30, 128: 31,
}  # fmt: skip
TO_THE_LEFT = {
    -128: 31, -91: 29, -64: 26, -46: 24, -32: 21, -23: 18, -16: 16, -12: 12, -1: 1, 0: 0, 1: 0, 50: 0,
}  # fmt: skip


@pytest.mark.parametrize(("causal", "golden"), [(False, BOTH_WAYS), (True, TO_THE_LEFT)], ids=["encoder", "decoder"])
@pytest.mark.parametrize("queries", [201, 30])
def test_t5_buckets(causal: bool, golden: dict[int, int], queries: int) -> None:
    """Read from the bias itself: the table holds its own row numbers."""
    pos = made("t5", heads=2, dim=4, n=201, causal=causal)
    pos.members["t5"].weight.copy_(torch.arange(32).expand(1, 2, -1))
    where = Positions(queries, 201, CPU, causal=causal)
    bias = pos.layer(1).at(where, pos.per_layer(where)[0]).additive(torch.empty(0), None)[0, 1]
    for delta, expected in golden.items():
        assert set(bias[where.delta == delta].tolist()) <= {expected}, delta
    assert set(golden) - set(where.delta.unique().tolist()) <= ({64, 128, 50} if queries == 30 else set())


@pytest.mark.parametrize("both", [True, False], ids=["encoder", "decoder"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])
@pytest.mark.parametrize("epsilon", [0.0, float(torch.finfo(torch.float32).eps)], ids=["plain", "eps"])
def test_t5_buckets_do_not_depend_on_rounding(both: bool, dtype: torch.dtype, epsilon: float) -> None:
    """0 to 599 in float32, as Hugging Face, in float64, and with flaxformer's epsilon."""
    distance = torch.arange(600)
    half = 16 if both else 32
    exact = half // 2
    growth = torch.log(distance.to(dtype) / exact + epsilon) / math.log(128 / exact) * (half - exact)
    far = (exact + growth.clamp(min=0).long()).clamp(max=half - 1)
    assert torch.equal(bucket(-distance, 32, 128, both), torch.where(distance < exact, distance, far))


# -- ALiBi's slopes -------------------------------------------------------------------------------------------------

EIGHT = [2.0**-i for i in range(1, 9)]
TWELVE = [*EIGHT, 0.707107, 0.353553, 0.176777, 0.088388]


@pytest.mark.parametrize("slopes", [EIGHT, TWELVE], ids=["8 heads", "12 heads"])
@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (2, 4), (1, 4)])
def test_alibi_slopes(slopes: list[float], queries: int, keys: int) -> None:
    heads = len(slopes)
    assert slopes_of(heads) == pytest.approx(slopes, abs=1e-6)
    where = Positions(queries, keys, CPU)
    pos = made("alibi", heads=heads, dim=heads)
    bias = pos.layer(1).at(where, pos.per_layer(where)[0]).additive(torch.empty(0), None)
    expected = -torch.tensor(slopes)[:, None, None] * where.delta.abs()
    torch.testing.assert_close(bias[0], expected.to(bias.dtype), rtol=0, atol=5e-6)


# -- RoPE: speeds 1 and 0.01 at D = 4 -------------------------------------------------------------------------------

ROTATED = [  # the unit vectors of the first features of both pairs, turned to position 1
    ("interleaved", [1.0, 0.0, 1.0, 0.0], [0.540302, 0.841471, 0.999950, 0.010000]),
    ("half", [1.0, 1.0, 0.0, 0.0], [0.540302, 0.999950, 0.841471, 0.010000]),
]


@pytest.mark.parametrize(("layout", "x", "expected"), ROTATED, ids=["interleaved", "half"])
def test_rope_rotates(layout: str, x: list[float], expected: list[float]) -> None:
    where = Positions(2, 2, CPU)
    call = made("rope", f"layout={layout}", dim=4).layer(1).at(where, {})
    for project in (call.project_q, call.project_k):
        turned = project(vectors(x, 2))[0, 0]
        assert turned[0].tolist() == x
        torch.testing.assert_close(turned[1], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("layout", "k"), [("interleaved", [0.0, 1, 0, 0]), ("half", [0.0, 0, 1, 0])])
@lengths
def test_rope_turns_by_i_minus_j(layout: str, k: list[float], queries: int, keys: int) -> None:
    """A query on the first axis of pair 0, a key on the second: q.k = sin(i - j)."""
    pos = made("rope", f"layout={layout}", dim=4)
    found = logits_of(pos, vectors([1, 0, 0, 0], queries), vectors(k, keys), Positions(queries, keys, CPU))[0, 0]
    expected = [[math.sin(i - j) / 2 for j in range(keys)] for i in range(keys - queries, keys)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


# -- positions that restart at each sentence: <s> = 0, pad = 1, </s> = 2 --------------------------------------------

RESTARTS = [
    ("begins with <s>", [0, 7, 8, 2, 9, 6, 2], [1, 1, 2, 3, 1, 2, 3]),
    ("begins with a word", [7, 8, 2, 9, 2, 6], [1, 2, 3, 1, 2, 1]),
    ("begins amid a sentence", [8, 9, 7], [1, 2, 3]),
    ("an empty sentence", [7, 2, 2, 9], [1, 2, 1, 1]),
    ("</s> first, as fairseq's decoder", [2, 7, 8, 2], [1, 1, 2, 3]),
    ("left pads", [1, 1, 7, 8, 2, 9], [1, 1, 1, 2, 3, 1]),
    ("left pads and <s>", [1, 0, 7, 2], [1, 1, 1, 2]),
    ("right pads", [7, 2, 9, 1, 1], [1, 2, 1, 1, 1]),
]


@pytest.mark.parametrize(("tokens", "expected"), [r[1:] for r in RESTARTS], ids=[r[0] for r in RESTARTS])
def test_sentence_restart(tokens: list[int], expected: list[int]) -> None:
    """The ids, and the rows that the encoding adds: row id - 1; also when the last columns come later."""
    given = torch.tensor([tokens])
    assert restart_ids(given, 1, (0, 2)).tolist() == [expected]
    pos = made("sentence-restart", dim=1)
    pos.members["sentence-restart"].weight.copy_(torch.arange(8.0)[:, None])
    for cached in range(len(tokens)):
        where = Positions.of_tokens(given, pad=1, boundaries=(0, 2), causal=True, cached=cached)
        rows = pos.embed(torch.zeros(1, len(tokens) - cached, 1).double(), where)[0, :, 0]
        assert (rows + 1).tolist() == expected[cached:]
