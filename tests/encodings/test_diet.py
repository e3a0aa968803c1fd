"""DIET-REL and DIET-ABS: golden values, published counts, rank, what is made once and what is kept."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention.paths import Projected, logits
from fairseq_posenc.core.factors import FactoredBias
from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")
BASE = StackShape(layers=12, heads=12, dim=768, max_length=512)
lengths = pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 3), (2, 5), (1, 5)])


def made(spec: str, args: str = "", *, heads: int = 1, dim: int = 2, n: int = 8, layers: int = 1) -> Composition:
    """In float64, in evaluation, without gradients."""
    return build(spec, args, StackShape(layers, heads, dim, n)).double().eval().requires_grad_(False)


def logits_of(pos: Composition, q: Tensor, k: Tensor, positions: Positions, layer: int = 1) -> Tensor:
    """[B, h, Q, K], as the attention makes them."""
    call = pos.layer(layer).at(positions, pos.per_layer(positions)[layer - 1])
    return logits(Projected(q, k, k, q, k), call)


def vectors(row: list[float], length: int) -> Tensor:
    """[1, 1, T, D], the same at every column."""
    return torch.tensor(row, dtype=torch.float64).expand(1, 1, length, -1)


# -- golden values: q = (1, 2), k = (3, -1), D = 2, so q.k / sqrt(D) = 0.707107 (METHODS.md 8) -------------------------


@lengths
def test_diet_rel_adds_an_undivided_scalar(queries: int, keys: int) -> None:
    pos = made("diet-rel")
    pos.members["diet-rel"].weight.fill_(0.5)
    found = logits_of(pos, vectors([1, 2], queries), vectors([3, -1], keys), Positions(queries, keys, CPU))
    torch.testing.assert_close(found, torch.full_like(found, 1.207107), rtol=0, atol=1e-6)


@lengths
def test_diet_abs_adds_an_undivided_product(queries: int, keys: int) -> None:
    """(1, 2) . (0.5, 1) = 2.5."""
    pos = made("diet-abs")
    diet = pos.members["diet-abs"]
    diet.query.copy_(torch.tensor([1.0, 2.0]).expand_as(diet.query))
    diet.key.copy_(torch.tensor([0.5, 1.0]).expand_as(diet.key))
    found = logits_of(pos, vectors([1, 2], queries), vectors([3, -1], keys), Positions(queries, keys, CPU))
    torch.testing.assert_close(found, torch.full_like(found, 3.207107), rtol=0, atol=1e-6)


@pytest.mark.parametrize("clip", [5, 2])
@lengths
def test_rows_of_diet_rel_hold_j_minus_i(clip: int, queries: int, keys: int) -> None:
    """A table whose row j - i holds the number j - i; clipped, the far ones share the row of k."""
    pos = made("diet-rel", f"clip={clip}", n=6)
    pos.members["diet-rel"].weight.copy_(torch.arange(-clip, clip + 1.0).expand(1, 1, -1))
    found = logits_of(pos, vectors([1, 0], queries), vectors([0, 1], keys), Positions(queries, keys, CPU))[0, 0]
    expected = [[max(-clip, min(clip, j - i)) for j in range(keys)] for i in range(keys - queries, keys)]
    assert found.tolist() == expected


@lengths
def test_rows_of_diet_abs_are_positions(queries: int, keys: int) -> None:
    """P_Q[i] = (i, 10), P_K[j] = (1, j): i + 10 j, also where pads stand on the left."""
    pos = made("diet-abs")
    diet, rows = pos.members["diet-abs"], torch.arange(8.0)
    diet.query.copy_(torch.stack([rows, torch.full_like(rows, 10.0)], -1))
    diet.key.copy_(torch.stack([torch.ones_like(rows), rows], -1))
    expected = torch.tensor([[i + 10.0 * j for j in range(keys)] for i in range(keys - queries, keys)]).double()
    q, k = torch.zeros(2, 1, queries + 2, 2).double(), torch.zeros(2, 1, keys + 2, 2).double()
    found = logits_of(pos, q[:, :, 2:], k[:, :, 2:], Positions(queries, keys, CPU))
    torch.testing.assert_close(found, expected.expand_as(found), rtol=0, atol=0)
    padding = torch.zeros(2, keys + 2, dtype=torch.bool)
    padding[1, :2] = True
    found = logits_of(pos, q, k, Positions(queries + 2, keys + 2, CPU, padding=padding))
    torch.testing.assert_close(found[1, 0, 2:, 2:], expected, rtol=0, atol=0)
    assert found[0, 0, -1, -1] == 11 * (keys + 1)


# -- counts: METHODS.md 2.21, 2.22, 4 ---------------------------------------------------------------------------------

PUBLISHED = [
    ("diet-rel", "", 147_312),
    ("diet-rel", "share=head-wise", 12_276),
    ("diet-rel", "share=layer-wise", 12_276),
    ("diet-rel", "share=all", 1_023),
    ("diet-rel", "clip=16,share=none", 12 * 12 * 33),
    ("diet-abs", "", 786_432),
    ("diet-abs", "share=none", 9_437_184),
    ("diet-abs", "rank=128,share=none", 18_874_368),
    ("diet-abs", "rank=128", 1_572_864),
    ("diet-abs", "rank=128,share=head-wise", 1_572_864),
]


@pytest.mark.parametrize(("spec", "args", "published"), PUBLISHED)
def test_the_count_of_a_base_model_is_the_published_one(spec: str, args: str, published: int) -> None:
    with torch.device("meta"):
        encoding = build(spec, args, BASE)
    assert sum(parameter.numel() for parameter in encoding.parameters()) == published


# -- how they start ---------------------------------------------------------------------------------------------------


def test_diet_rel_starts_as_the_model_without_positions() -> None:
    assert not made("diet-rel").members["diet-rel"].weight.any()


def test_diet_abs_starts_near_it_with_factors_that_learn() -> None:
    torch.manual_seed(0)
    diet = made("diet-abs", "rank=128", heads=12, dim=768, n=64).members["diet-abs"]
    for factor in (diet.query, diet.key):
        assert abs(float(factor.std()) - 0.02) < 1e-3
    assert abs(float((diet.query @ diet.key.mT).std()) - 0.0045) < 2e-4  # sqrt(128) * 0.02^2


@pytest.mark.parametrize("args", ["init=zeros", "init=ones", "init_std=0"])
def test_factors_that_could_not_learn_are_refused(args: str) -> None:
    with pytest.raises(ValueError, match="init"):
        made("diet-abs", args)


@pytest.mark.parametrize("rank", [0, -1])
def test_a_rank_below_one_is_refused(rank: int) -> None:
    with pytest.raises(ValueError, match=rf"--pos-enc-args: diet-abs: rank={rank}: at least 1"):
        made("diet-abs", f"rank={rank}")


# -- rank (METHODS.md 2.22, 10.16) ------------------------------------------------------------------------------------


def rank_of_logits(pos: Composition, x: Tensor, w_q: Tensor, w_k: Tensor) -> int:
    """Of one head's logits, with positions at the input or in the logits."""
    where = Positions(x.shape[1], x.shape[1], CPU)
    x = pos.embed(x, where)
    return int(torch.linalg.matrix_rank(logits_of(pos, (x @ w_q)[:, None], (x @ w_k)[:, None], where)[0, 0]))


@pytest.mark.parametrize(("rank", "n", "expected"), [(16, 40, 24), (16, 20, 20), (8, 40, 16), (1, 40, 9)])
def test_the_rank_of_the_logits_is_that_of_content_plus_positions(rank: int, n: int, expected: int) -> None:
    """min(n, D + d_p) with D = 8; vectors at the input leave it at D."""
    random = torch.Generator().manual_seed(0)
    x, w_q, w_k = (torch.randn(*s, generator=random).double() for s in ((1, n, 64), (64, 8), (64, 8)))
    stack = StackShape(layers=1, heads=8, dim=64, max_length=n)
    in_logits, at_input = (build(*spec, stack) for spec in (("diet-abs", f"rank={rank}"), ("learned", None)))
    found = []
    for pos in (in_logits, at_input):
        with torch.no_grad():
            for parameter in pos.double().eval().parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=random))
            found.append(rank_of_logits(pos, x, w_q, w_k))
    assert found == [expected, 8]


# -- once a forward, once an evaluation -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "training", "products"),
    [("layer-wise", True, 2), ("none", True, 2), ("layer-wise", False, 1), ("none", False, 1)],
)
def test_products_are_made_once_a_step_and_once_an_evaluation(
    share: str, training: bool, products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two forwards of three layers; where each layer has its own, training multiplies within the layer."""
    calls: list[int] = []
    original = FactoredBias._product
    monkeypatch.setattr(FactoredBias, "_product", lambda *args: calls.append(1) or original(*args))
    pos = made("diet-abs", f"share={share}", layers=3).train(training).requires_grad_(training)
    where = Positions(4, 4, CPU)
    for _ in range(2):
        for index, tensors in enumerate(pos.per_layer(where), start=1):
            pos.layer(index).at(where, tensors).additive(torch.empty(0), torch.empty(0))
    assert len(calls) == (6 if share == "none" and training else products)


def test_a_step_of_decoding_reads_one_row_of_what_is_kept() -> None:
    pos = build("diet-abs", "share=none", StackShape(2, 2, 8, 16, causal=True)).double().eval()
    with torch.no_grad():
        whole = Positions(9, 9, CPU, causal=True)
        all_rows = pos.layer(2).at(whole, pos.per_layer(whole)[1]).additive(torch.empty(0), torch.empty(0))
        step = Positions(1, 7, CPU, causal=True)
        tensors = pos.per_layer(step)[1]
        row = pos.layer(2).at(step, tensors).additive(torch.empty(0), torch.empty(0))
    assert torch.equal(row[0, :, 0], all_rows[0, :, 6, :7])
    assert row.untyped_storage().data_ptr() == tensors["diet-abs.product"].untyped_storage().data_ptr()


@pytest.mark.parametrize("spec", ["diet-rel", "diet-abs"])
def test_half_precision_biases_are_added_in_float32(spec: str) -> None:
    """So that sums of several biases are not rounded."""
    pos = made(spec).to(torch.bfloat16)
    where = Positions(3, 3, CPU)
    assert (
        pos.layer(1).at(where, pos.per_layer(where)[0]).additive(torch.empty(0), torch.empty(0)).dtype == torch.float32
    )


def test_what_is_kept_under_autocast_is_not_rounded() -> None:
    pos, where = made("diet-abs", dim=8).float(), Positions(5, 5, CPU)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = pos.per_layer(where)[0]["diet-abs.bias"]
    torch.testing.assert_close(
        under, pos.members["diet-abs"].query[:, :, :5] @ pos.members["diet-abs"].key[:, :, :5].mT
    )


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_diet_abs_refuses_what_it_cannot_do() -> None:
    pos = made("diet-abs")
    with pytest.raises(ValueError, match=r"diet-abs.*segment memory: choose another --pos-enc"):
        pos.check(Positions(2, 4, CPU, memory=2))
    with pytest.raises(
        ValueError, match=r"diet-abs.*up to 8 positions, got 9.*raise max_length or set .*extend=repeat"
    ):
        pos.check(Positions(9, 9, CPU))
    with pytest.raises(ValueError, match="belong together"):
        made("diet-abs", "extend=interpolate")


def test_extended_factors_repeat_or_stretch() -> None:
    """Position 9 of n = 8 is position 1 again; stretched to 15, position 9 is halfway between rows 4 and 5."""
    for args, row in (("extend=repeat", 1.0), ("extend=interpolate,extend_to=15", 4.5)):
        pos = made("diet-abs", args, dim=1)
        diet = pos.members["diet-abs"]
        diet.query.copy_(torch.arange(8.0)[:, None])
        diet.key.fill_(1.0)
        where = Positions(10, 10, CPU)
        bias = pos.layer(1).at(where, pos.per_layer(where)[0]).additive(torch.empty(0), torch.empty(0))
        assert bias[0, 0, 9].tolist() == [row] * 10
