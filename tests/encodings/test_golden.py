"""Compare values that were computed by hand, or that papers and their code print, with the values of this code.

Add rows for a new encoding to the tables in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding, lengths, logits_of, vectors

from fairseq_posenc.encodings.alibi import slopes_of
from fairseq_posenc.positions import Positions, restart_ids

# -- the hand example: q = (1, 2), k = (3, -1), so q.k = 1; D = 2 ----------------------------------------------------

VECTOR = {"weight": [0.5, 1.0]}  # a: q.a = 2.5, k.a = 0.5
SCALAR = {"weight": 0.5}
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
DEBERTA = VECTOR | {"w_*": IDENTITY}
HAND: list[tuple[str, str, dict[str, Any], float]] = [  # encoding, options, every row of its tables, logit
    ("none", "", {}, 0.707107),
    ("shaw", "", VECTOR, 2.474874),
    ("shaw", "clip=1,share=none", VECTOR, 2.474874),
    ("raffel", "", SCALAR, 1.060660),
    ("t5", "", SCALAR, 1.207107),
    ("t5", "content_scale=one", SCALAR, 1.5),
    ("m1", "", SCALAR, 0.353553),
    ("m2", "", SCALAR, 0.353553),
    ("m3", "", VECTOR, -0.353553),
    ("m3", "clip=1", VECTOR, -0.353553),
    ("m3", "clip=1,share=none", VECTOR, -0.353553),
    ("m4", "", VECTOR, 2.828427),
    ("m4", "clip=1,share=none", VECTOR, 2.828427),
    ("m4", "scale=4", VECTOR, 1.414214),
    ("m4", "scale=9", VECTOR, 0.942809),
    ("m4m", "", VECTOR, 0.883883),
    ("m4m", "clip=1,share=none", VECTOR, 0.883883),
    ("m4m", "gate_offset=1", VECTOR, 3.712311),  # 1 (1 + 2.5) (1 + 0.5) / sqrt(2)
    ("m4m", "init=zeros,gate_offset=1", {}, 0.707107),
    ("m4m", "init_std=0,gate_offset=1", {}, 0.707107),
    ("diet-rel", "", SCALAR, 1.207107),
    ("diet-abs", "", {"query": [1.0, 2.0], "key": [0.5, 1.0]}, 3.207107),
    *(("deberta", args, DEBERTA, 1.632993) for args in ("", "clip=1", "tie_wr_wt=true", "share=none")),
    ("tupe", "", VECTOR | {"u_?": IDENTITY, "scalars": 0.25}, 1.375),  # (1 + 1.25) / 2 + 0.25
]


@lengths
@pytest.mark.parametrize(("spec", "args", "values", "expected"), HAND)
def test_hand_example(spec: str, args: str, values: dict[str, Any], expected: float, queries: int, keys: int) -> None:
    """All rows of a table, all queries and all keys are the same, so all logits are the same."""
    pos = build_encoding(spec, args)
    for pattern, value in values.items():
        for name, parameter in pos.members[spec].named_parameters():
            if fnmatch(name, pattern):
                parameter.copy_(torch.tensor(value).expand_as(parameter))
    actual = logits_of(pos, vectors([1, 2], queries), vectors([3, -1], keys), Positions(queries, keys, CPU))
    torch.testing.assert_close(actual, torch.full_like(actual, expected), rtol=0, atol=1e-6)


#: The logit at the distance d = j - i of q = (1, 0) and k = (1, 1), times sqrt(D); the row of d holds d, or (d, 0).
ROWS: dict[tuple[str, str], Callable[[int], float]] = {
    ("shaw", ""): lambda d: 1 + d,
    ("shaw", "clip=2"): lambda d: 1 + max(-2, min(2, d)),
    ("raffel", ""): lambda d: 1 + d,
    ("diet-rel", ""): lambda d: 1 + 2**0.5 * d,
    ("diet-rel", "clip=2"): lambda d: 1 + 2**0.5 * max(-2, min(2, d)),
    ("m1", ""): abs,
    ("m2", ""): lambda d: d,
    ("m3", ""): lambda d: d,
    ("m4", ""): lambda d: 1 + 2 * d,
    ("m4m", ""): lambda d: d**2,
}


@pytest.mark.parametrize(("spec", "args"), ROWS)
@lengths
def test_rows_hold_j_minus_i(spec: str, args: str, queries: int, keys: int) -> None:
    """Rows are ordered by j - i in all encodings; M1 has one row for both directions."""
    pos = build_encoding(spec, args, n=6)
    weight = pos.members[spec].weight
    of_vectors = weight.shape[-1] == 2
    size = weight.shape[-2 if of_vectors else -1]
    numbers = torch.arange(size).double() - (0 if spec == "m1" else size // 2)
    weight.copy_(torch.stack([numbers, 0 * numbers], -1) if of_vectors else numbers)
    actual = logits_of(pos, vectors([1, 0], queries), vectors([1, 1], keys), Positions(queries, keys, CPU))[0, 0]
    expected = [[ROWS[spec, args](j - i) / 2**0.5 for j in range(keys)] for i in range(keys - queries, keys)]
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


# -- sinusoids ------------------------------------------------------------------------------------------------------

SINUSOIDS = [  # d = 4, positions 0 and 1
    ("", [0.0, 1.0, 0.0, 1.0], [0.841471, 0.540302, 0.010000, 0.999950]),  # the papers: sin and cos alternate
    ("freq=t2t", [0.0, 0.0, 1.0, 1.0], [0.841471, 0.000100, 0.540302, 1.000000]),  # tensor2tensor: 1 and 1/10000
]


@pytest.mark.parametrize(("args", "zero", "one"), SINUSOIDS)
def test_sinusoid(args: str, zero: list[float], one: list[float]) -> None:
    """The offset shifts positions, and a step with a cache continues them."""
    x = torch.zeros(1, 4, 4).double()
    whole = build_encoding("sinusoidal", args, head_dim=4).embed(x, Positions(4, 4, CPU))[0]
    assert whole[0].tolist() == zero
    torch.testing.assert_close(whole[1], torch.tensor(one, dtype=torch.float64), rtol=0, atol=1e-6)
    later = build_encoding("sinusoidal", f"{args},offset=2", head_dim=4).embed(x, Positions(4, 4, CPU))[0, 1]
    step = build_encoding("sinusoidal", args, head_dim=4).embed(x[:, :1], Positions(1, 4, CPU))[0, 0]
    assert torch.equal(whole[3], later)
    assert torch.equal(whole[3], step)


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
    """The table holds its own row numbers, so the bias consists of them."""
    pos = build_encoding("t5", heads=2, n=201, causal=causal)
    pos.members["t5"].weight.copy_(torch.arange(32).expand(1, 2, -1))
    where = Positions(queries, 201, CPU, causal=causal)
    bias = bias_of(pos, where)[0, 1]
    for delta, expected in golden.items():
        assert set(bias[where.delta == delta].tolist()) <= {expected}, delta
    assert set(golden) - set(where.delta.unique().tolist()) <= ({64, 128, 50} if queries == 30 else set())


# -- ALiBi's slopes -------------------------------------------------------------------------------------------------

EIGHT = [2.0**-i for i in range(1, 9)]
TWELVE = [*EIGHT, 0.707107, 0.353553, 0.176777, 0.088388]


@pytest.mark.parametrize("slopes", [EIGHT, TWELVE], ids=["8 heads", "12 heads"])
@lengths
def test_alibi_slopes(slopes: list[float], queries: int, keys: int) -> None:
    assert slopes_of(len(slopes)) == pytest.approx(slopes, abs=1e-6)
    where = Positions(queries, keys, CPU)
    bias = bias_of(build_encoding("alibi", heads=len(slopes)), where)
    expected = -torch.tensor(slopes)[:, None, None] * where.delta.abs()
    torch.testing.assert_close(bias[0], expected.to(bias.dtype), rtol=0, atol=5e-6)


# -- Sandwich: speeds 1/100 and 1/10000 at d' = 4 -------------------------------------------------------------------

FAR = {0: 0.0, 1: -0.000050, 100: -0.459748, 200: -1.416347}  # cos(x/100) + cos(x/10000) - 2


@pytest.mark.parametrize("queries", [201, 1])
@pytest.mark.parametrize("heads", [1, 2, 8])
def test_sandwich_divides_inner_products_by_the_ratio_of_the_head(queries: int, heads: int) -> None:
    """Eight heads have the ratios 1 to 8, two heads 4 and 8, and one head 8."""
    where = Positions(queries, 201, CPU)
    bias = bias_of(build_encoding("sandwich", "width=4", heads=heads), where)[0]
    for distance, product in FAR.items():
        expected = torch.tensor([product / (8 * h / heads) for h in range(1, heads + 1)], dtype=torch.float64)
        for delta in (-distance, distance):
            found = bias[:, where.delta == delta]
            torch.testing.assert_close(found, expected[:, None].expand_as(found), rtol=0, atol=1e-6)


# -- FoX: gates 1/2, 3/4, 1/4 and 1/2 ------------------------------------------------------------------------------

KEPT = [  # for each query and key, the product of the gates of the tokens after the key, up to the query
    [1, 0, 0, 0],
    [3 / 4, 1, 0, 0],
    [3 / 16, 1 / 4, 1, 0],
    [3 / 32, 1 / 8, 1 / 2, 1],
]


@pytest.mark.parametrize("queries", [4, 2, 1])
def test_fox_keeps_the_product_of_the_gates(queries: int) -> None:
    """The logits of the gates are 0, log 3, -log 3 and 0: w = (2, 1), b = 1, and x = (a, a - 1), so w·x + b = 3a."""
    pos = build_encoding("fox", causal=True)
    pos.members["fox"].gate_weight.copy_(torch.tensor([2.0, 1.0]))
    pos.members["fox"].gate_bias.fill_(1.0)
    a = torch.tensor([1.0, 3.0, 1 / 3, 1.0], dtype=torch.float64).log() / 3
    where = Positions(queries, 4, CPU, causal=True)
    call = pos.layer(1).at(where, pos.per_layer(where)[0]).with_inputs(torch.stack([a, a - 1], -1)[None])
    bias = call.additive(torch.empty(0), torch.empty(0))
    assert bias is not None
    kept = bias[0, 0].exp() * (where.delta <= 0)
    torch.testing.assert_close(kept, torch.tensor(KEPT[4 - queries :], dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("queries", [4, 2, 1])
def test_wall_fades_the_feature_by_the_product_of_the_gates(queries: int) -> None:
    """The same gates as for FoX; D = d = 1, q = k = 1, w = 2, b = 1, and 2x + 1 is the logit of the gate."""
    pos = build_encoding("wall", head_dim=1, causal=True)
    pos.members["wall"].gate_weight.fill_(2.0)
    pos.members["wall"].gate_bias.fill_(1.0)
    x = (torch.tensor([1.0, 3.0, 1 / 3, 1.0], dtype=torch.float64).log()[None, :, None] - 1) / 2
    where = Positions(queries, 4, CPU, causal=True)
    call = pos.layer(1).at(where, pos.per_layer(where)[0]).with_inputs(x)
    scores = call.scores(vectors([1], queries), vectors([1], 4))
    assert scores is not None
    actual = scores[0, 0] * (where.delta <= 0)
    torch.testing.assert_close(actual, torch.tensor(KEPT[4 - queries :], dtype=torch.float64), rtol=0, atol=1e-12)


# -- DAPE: two heads and two hidden units ---------------------------------------------------------------------------


@lengths
def test_dape_adds_what_its_mlp_makes_of_content_and_bias(queries: int, keys: int) -> None:
    """The content is 1 and 6 over sqrt(2) in the two heads, the bias 0.5 and -1.

    Hidden unit 1 is leaky(0.707107 - 1) = -0.00292893. Unit 2 is 4.242641 + 2 (0.5) - 0.242641 = 5. The MLP returns
    5 + 0.5 for head 1 and 100 times unit 1 for head 2.
    """
    pos = build_encoding("t5+dape", "hidden=2", heads=2)
    values = {
        "in_weight": [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 2.0, 0.0]],
        "in_bias": [0.0, -0.242641],
        "out_weight": [[0.0, 1.0], [100.0, 0.0]],
        "out_bias": [0.5, 0.0],
    }
    for name, value in values.items():
        getattr(pos.members["dape"], name).copy_(torch.tensor(value))
    pos.members["t5"].weight.copy_(torch.tensor([0.5, -1.0])[:, None])
    q, k = (torch.cat([vectors(one, n), vectors(two, n)], 1) for one, two, n in (
        ([1, 2], [2, 0], queries), ([3, -1], [3, -1], keys),
    ))  # fmt: skip
    actual = logits_of(pos, q, k, Positions(queries, keys, CPU))
    expected = torch.tensor([6.707107, 2.949748], dtype=torch.float64)[:, None, None].expand_as(actual[0])
    torch.testing.assert_close(actual[0], expected, rtol=0, atol=1e-6)


# -- scalable softmax: a logit of 1 (q.k = 1, D = 1) for queries that see 1, 2, 3, 4 and 5 keys ------------------------

FACTORS = [  # ln n for s = 1, and 1 + 0.1 ln(floor(n / 2) + 1)
    ("init_value=1", [0.0, 0.693147, 1.098612, 1.386294, 1.609438]),
    ("", [0.0, 0.116449, 0.184567, 0.232897, 0.270386]),  # s = 0.168
    ("form=llama4,interval=2", [1.0, 1.069315, 1.069315, 1.109861, 1.109861]),
    ("form=llama4,interval=1,strength=1", [1.693147, 2.098612, 2.386294, 2.609438, 2.791759]),
]


@pytest.mark.parametrize(("args", "expected"), FACTORS)
@pytest.mark.parametrize("queries", [5, 2, 1])
def test_logn_counts_the_keys(args: str, expected: list[float], queries: int) -> None:
    pos = build_encoding("logn", args, head_dim=1, causal=True)
    actual = logits_of(pos, vectors([1], queries), vectors([1], 5), Positions(queries, 5, CPU, causal=True))
    rows = torch.tensor(expected[5 - queries :], dtype=torch.float64)
    torch.testing.assert_close(actual[0, 0], rows[:, None].expand(queries, 5), rtol=0, atol=1e-6)


# -- PoPE: D = 1 and q = k = 0, so the length of each is ln 2, and the speed is 1 --------------------------------------

POLAR = [(0.0, [0.259590, 0.480453, 0.259590]), (-0.5, [-0.404287, 0.0, 0.404287])]  # a phase / pi; j - i = -1, 0, 1


@pytest.mark.parametrize(("phase", "expected"), POLAR)
@lengths
def test_pope_turns_by_the_distance(phase: float, expected: list[float], queries: int, keys: int) -> None:
    pos = build_encoding("pope", head_dim=1)
    pos.members["pope"].phase.fill_(phase * torch.pi)
    where = Positions(queries, keys, CPU)
    actual = logits_of(pos, vectors([0], queries), vectors([0], keys), where)[0, 0]
    for distance, value in zip((-1, 0, 1), expected, strict=True):
        at = actual[where.delta == distance]
        torch.testing.assert_close(at, torch.full_like(at, value), rtol=0, atol=1e-6)


# -- RoPE: speeds 1 and 0.01 at D = 4 -------------------------------------------------------------------------------

ROTATED = [  # the unit vectors of the first features of both pairs, turned to position 1
    ("interleaved", [1.0, 0.0, 1.0, 0.0], [0.540302, 0.841471, 0.999950, 0.010000]),
    ("half", [1.0, 1.0, 0.0, 0.0], [0.540302, 0.999950, 0.841471, 0.010000]),
]


@pytest.mark.parametrize(("layout", "x", "expected"), ROTATED, ids=["interleaved", "half"])
def test_rope_rotates(layout: str, x: list[float], expected: list[float]) -> None:
    call = build_encoding("rope", f"layout={layout}", head_dim=4).layer(1).at(Positions(2, 2, CPU), {})
    for project in (call.project_q, call.project_k):
        turned = project(vectors(x, 2))[0, 0]
        assert turned[0].tolist() == x
        torch.testing.assert_close(turned[1], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6)


# -- positions that restart at each sentence: <s> = 0, pad = 1, </s> = 2 --------------------------------------------

RESTARTS = {
    "begins with <s>": ([0, 7, 8, 2, 9, 6, 2], [1, 1, 2, 3, 1, 2, 3]),
    "begins with a word": ([7, 8, 2, 9, 2, 6], [1, 2, 3, 1, 2, 1]),
    "begins amid a sentence": ([8, 9, 7], [1, 2, 3]),
    "empty sentences": ([0, 2, 2, 9], [1, 1, 1, 1]),
    "an empty sentence": ([7, 2, 2, 9], [1, 2, 1, 1]),
    "</s> first, as in fairseq's decoder": ([2, 7, 8, 2], [1, 1, 2, 3]),
    "left pads": ([1, 1, 7, 8, 2, 9], [1, 1, 1, 2, 3, 1]),
    "left pads and <s>": ([1, 0, 7, 2], [1, 1, 1, 2]),
    "right pads": ([7, 2, 9, 1, 1], [1, 2, 1, 1, 1]),
    "pads only": ([1, 1], [1, 1]),
}


@pytest.mark.parametrize(("tokens", "expected"), RESTARTS.values(), ids=RESTARTS)
def test_sentence_restart(tokens: list[int], expected: list[int]) -> None:
    """Row id - 1 of the table is added to the input, also where only the last columns are new."""
    batch = torch.tensor([tokens])
    assert restart_ids(batch, 1, (0, 2)).tolist() == [expected]
    pos = build_encoding("sentence-restart", head_dim=1)
    pos.members["sentence-restart"].weight.copy_(torch.arange(8.0)[:, None])
    for cached in range(len(tokens)):
        where = Positions.of_tokens(batch, pad=1, boundaries=(0, 2), causal=True, cached=cached)
        rows = pos.embed(torch.zeros(1, len(tokens) - cached, 1).double(), where)[0, :, 0]
        assert (rows + 1).tolist() == expected[cached:]
