"""M4, M4+Reset and M4M (METHODS.md 2.11 to 2.14): counts, values by hand, identities, refusals, costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from one_layer import CPU, by_hand, drawn, largest_tensor, logits_of, number_of_parameters, one_layer, plain
from torch import Tensor

from fairseq_posenc.core import tables
from fairseq_posenc.encodings import RELATIVE, Composition, StackShape, build
from fairseq_posenc.ops import toeplitz
from fairseq_posenc.positions import Positions

VECTOR = [0.5, 1.0]
SHAPES = [(1, 1), (1, 9), (3, 9), (9, 9)]
ENCODER = StackShape(layers=2, heads=2, dim=8, max_length=16, has_cls=True)
shapes = pytest.mark.parametrize("shape", SHAPES)


@pytest.mark.parametrize(
    ("spec", "args", "published"),
    [
        ("m4", "", 785_664),
        ("m4", "share=none", 9_427_968),
        ("m4", "clip=64", 12 * 129 * 64),
        ("m4", "reset=vector", 787_200),
        ("m4", "reset=scalar", 785_664 + 24),
        ("m4m", "", 785_664),
        ("m4m", "share=none", 9_427_968),
        ("learned+m4m", "", 1_178_880),
    ],
)
def test_the_count_is_the_published_one(spec: str, args: str, published: int) -> None:
    assert number_of_parameters(spec, args) == published


@pytest.mark.parametrize(
    ("spec", "args", "expected"),
    [
        ("m4", "", 2.828427),
        ("m4", "clip=1,share=none", 2.828427),
        ("m4", "scale=4", 1.414214),
        ("m4", "scale=4,scale_mode=linear", 0.707107),
        ("m4m", "", 0.883883),
        ("m4m", "clip=1,share=none", 0.883883),
        ("m4m", "gate_offset=1", 3.712311),  # 1 (1 + 2.5) (1 + 0.5) / sqrt(2)
    ],
)
def test_by_hand(spec: str, args: str, expected: float) -> None:
    assert by_hand(spec, args, VECTOR) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("spec", ["m4", "m4m"])
@shapes
def test_a_row_serves_its_distance(spec: str, shape: tuple[int, int]) -> None:
    """A table that holds j - i: M4 adds it from both sides, M4M multiplies with it twice."""
    pos = one_layer(spec, n=10).requires_grad_(False)
    weight, where = pos.members[spec].weight, Positions(*shape, CPU)
    weight.copy_(torch.arange(-9.0, 10.0)[:, None].expand_as(weight))
    ones = torch.ones(1, 2, max(shape), 4, dtype=torch.float64)
    found = logits_of(pos, ones[:, :, : shape[0]], ones[:, :, : shape[1]], where)[0, 0]
    term = 4.0 * where.delta
    expected = (4 + 2 * term) / 2 if spec == "m4" else 4 * term**2 / 2
    torch.testing.assert_close(found, expected.double(), rtol=0, atol=1e-12)


# -- identities ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", ["", "clip=2", "share=none"])
@shapes
def test_m4_is_a_product_of_sums_less_a_square(args: str, shape: tuple[int, int]) -> None:
    """(q + a) . (k + a) - a . a, Huang et al. 2020 (17)."""
    pos, where = one_layer("m4", args), Positions(*shape, CPU)
    q, k = drawn(*shape)
    clip, table = pos.members["m4"].clip, pos.members["m4"].weight[0]
    a = table[:, where.delta.clamp(-clip, clip) + clip]  # (1 or h, Q, K, D)
    expected = ((q[:, :, :, None] + a) * (k[:, :, None] + a)).sum(-1) - (a * a).sum(-1)
    torch.testing.assert_close(logits_of(pos, q, k, where), expected / 4**0.5, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("s", "divisor"), [(1, 8.0), (2, 11.313708), (3, 13.856406), (4, 16.0), (6, 19.595918), (9, 24.0)]
)
def test_the_scale_divides_all_three_terms(s: int, divisor: float) -> None:
    """The ablation of the M4M papers, D = 64; s = 4 gives half of s = 1."""
    q, k = drawn(5, 5, head_dim=64)
    where = Positions(5, 5, CPU)
    one = logits_of(one_layer("m4", head_dim=64), q, k, where)
    found = logits_of(one_layer("m4", f"scale={s}", head_dim=64), q, k, where)
    torch.testing.assert_close(found * divisor, one * 8, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("args", ["", "clip=2", "share=none"])
@shapes
def test_m4m_is_even_in_its_table(args: str, shape: tuple[int, int]) -> None:
    pos, where = one_layer("m4m", args), Positions(*shape, CPU)
    q, k = drawn(*shape)
    before = logits_of(pos, q, k, where)
    with torch.no_grad():
        pos.members["m4m"].weight.neg_()
    assert torch.equal(logits_of(pos, q, k, where), before)
    assert not torch.equal(logits_of(one_layer("m4m", f"{args},gate_offset=1"), q, k, where), before)


def test_keys_read_the_same_rows_as_queries() -> None:
    """`key_product` is `query_product` with queries and keys exchanged and the table mirrored."""
    table = one_layer("m4", "share=none").members["m4"].weight[0]
    _, k = drawn(9, 9)
    for clip in (15, 2):
        part = table[:, 15 - clip : 16 + clip]
        rows = tables.rows_of(Positions(9, 9, CPU), clip)
        found = toeplitz.key_product(k, part, Positions(9, 9, CPU), rows)
        mirrored = toeplitz.query_product(k, part.flip(1), Positions(9, 9, CPU), rows).mT
        torch.testing.assert_close(found, mirrored, rtol=0, atol=1e-12)


# -- how they start -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "args", "expected"), [("m4m", "", 64**-0.5), ("m4m", "init_std=0.02", 0.02), ("m4", "", 0.02)]
)
def test_m4m_starts_wide_enough_to_learn(spec: str, args: str, expected: float) -> None:
    torch.manual_seed(0)
    weight = build(spec, args, StackShape(1, 4, 256, 512)).members[spec].weight
    assert float(weight.detach().std()) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("args", ["init=zeros", "init_std=0"])
def test_m4m_never_starts_at_its_dead_point(args: str) -> None:
    with pytest.raises(ValueError, match="never learns"):
        build("m4m", args, ENCODER)
    q, k = drawn(5, 5)
    alive = build("m4m", f"{args},gate_offset=1", ENCODER).double()
    torch.testing.assert_close(logits_of(alive, q, k, Positions(5, 5, CPU)), plain(q, k), rtol=0, atol=1e-12)


def test_the_dead_point_is_dead() -> None:
    """Why it is refused."""
    pos = one_layer("m4m")
    torch.nn.init.zeros_(pos.members["m4m"].weight)
    q, k = drawn(5, 5)
    (logits_of(pos, q, k, Positions(5, 5, CPU)).softmax(-1) ** 2).sum().backward()
    for gradient in (q.grad, k.grad, pos.members["m4m"].weight.grad):
        assert gradient is not None
        assert not gradient.any()


# -- refusals -----------------------------------------------------------------------------------------

DECODER = replace(ENCODER, causal=True, has_cls=False)


@pytest.mark.parametrize(
    ("spec", "args", "stack", "words"),
    [
        ("m4", "scale=0", ENCODER, "must be positive"),
        ("m4", "scale_mode=linear", ENCODER, "no effect with scale=1"),
        ("m4", "reset=vector", replace(ENCODER, has_cls=False), "needs a .CLS.*set reset=none"),
        ("m4", "reset=scalar", DECODER, "decoder.*set reset=none"),
        ("m4m", "gate_offset=-1", ENCODER, "gate_offset=-1.0: take 1.0"),
        ("m4m", "reset=vector", ENCODER, "no option reset"),
        ("m4m+m2", "", ENCODER, "m4m and m2 both replace"),
        ("rope+m4m", "", ENCODER, "m4m replaces the product of query and key, which rope needs"),
        ("m4+t5", "m4.scale=3,content_scale=one", ENCODER, "m4 and t5 each set the scale"),
        ("m4+m2", "scale=3", ENCODER, "m4 sets the scale of a product that m2 replaces"),
    ],
)
def test_what_cannot_be_is_refused(spec: str, args: str, stack: StackShape, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build(spec, args, stack)


def test_abs_m4m_is_as_strict_as_its_members() -> None:
    pos = build("learned+m4m", "", DECODER)
    assert pos.capabilities == replace(RELATIVE, memory=False, extrapolates=False, shift_invariant=False)
    assert pos.limit == 16


# -- M4+Reset -----------------------------------------------------------------------------------------


def at(columns: list[int], length: int = 6) -> Positions:
    return Positions(length, length, CPU, cls_column=torch.tensor(columns))


def position_term(args: str, positions: Positions) -> tuple[Tensor, Tensor, Composition]:
    """sqrt(D) times what M4 adds to the content, with all q = 1 and all k = 0, and the encoding."""
    pos = one_layer("m4", args).requires_grad_(False)
    ones = torch.ones(2, 2, positions.query_length, 4, dtype=torch.float64)
    of_query = logits_of(pos, ones, 0 * ones, positions) * 2
    return of_query, logits_of(pos, 0 * ones, ones, positions) * 2, pos


@pytest.mark.parametrize("columns", [[0, 0], [3, 3], [0, 2]], ids=str)
def test_reset_replaces_the_row_and_the_column_of_cls(columns: list[int]) -> None:
    """theta_1 in the row of [CLS], also at (CLS, CLS); theta_2 in its column; w[j - i] elsewhere."""
    *both, pos = position_term("reset=vector", at(columns))
    for terms in both:
        weight, (first, second) = pos.members["m4"].weight[0, 0].sum(-1), pos.members["m4"].theta[0, 0].sum(-1)
        for found, cls in zip(terms[:, 0], columns, strict=True):
            for i, j in torch.cartesian_prod(torch.arange(6), torch.arange(6)).tolist():
                expected = first if i == cls else second if j == cls else weight[j - i + 15]
                assert float(found[i, j]) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("columns", [[0, 0], [0, 2]], ids=str)
def test_reset_by_scalars_replaces_both_terms_together(columns: list[int]) -> None:
    """They replace a part of the numerator, so they are divided; TUPE's are not."""
    of_query, of_key, pos = position_term("reset=scalar,share=none", at(columns))
    for terms in (of_query, of_key):
        for found, cls in zip(terms, columns, strict=True):
            theta = pos.members["m4"].theta[0]
            others = [i for i in range(6) if i != cls]
            torch.testing.assert_close(found[:, cls], theta[:, :1].expand(-1, 6), rtol=0, atol=1e-12)
            torch.testing.assert_close(found[:, others, cls], theta[:, 1:].expand(-1, 5), rtol=0, atol=1e-12)


def test_reset_by_scalars_starts_at_zero_and_by_vectors_as_the_table() -> None:
    assert not build("m4", "reset=scalar", ENCODER).members["m4"].theta.any()
    assert build("m4", "reset=vector", ENCODER).members["m4"].theta.all()


def test_samples_are_told_apart_only_where_cls_stands_in_different_columns() -> None:
    assert at([0, 0]).common_cls_column == 0
    assert at([3, 3]).common_cls_column == 3
    assert at([0, 2]).common_cls_column is None
    assert Positions(2, 2, CPU).common_cls_column is None


def test_reset_needs_the_column_of_cls() -> None:
    pos = build("m4", "reset=vector", ENCODER)
    with pytest.raises(ValueError, match=r"begin with \[CLS\].*do not say in which column"):
        pos.check(Positions(4, 4, CPU))
    assert pos.capabilities == replace(RELATIVE, causal=False, memory=False, shift_invariant=False)


# -- costs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["shaw", "m4", "m4m"])
@pytest.mark.parametrize("args", ["", "clip=4", "share=none"])
def test_no_tensor_has_a_vector_for_every_pair(spec: str, args: str) -> None:
    """Forward and backward: at most a number for every query and distance."""
    length, dim = 32, 24
    pos = one_layer(spec, args, head_dim=dim, n=length)
    q, k = drawn(length, length, head_dim=dim)
    with largest_tensor() as seen:
        logits_of(pos, q, k, Positions(length, length, CPU)).sum().backward()
    assert seen.size <= 2 * 2 * length * 2 * length


@pytest.mark.parametrize("spec", ["shaw", "m1", "m2", "m3", "m4", "m4m"])
def test_a_step_of_decoding_costs_a_row_for_every_key(spec: str) -> None:
    """No product of keys with a whole table."""
    keys, dim = 64, 4
    pos = one_layer(spec, heads=1, head_dim=dim, n=keys, causal=True).requires_grad_(False)
    q, k = (x.detach() for x in drawn(1, keys, batch=1, heads=1, head_dim=dim))
    table = pos.members[spec].weight.numel()  # the views of it count as what they are views of
    with largest_tensor() as seen:
        logits_of(pos, q, k, Positions(1, keys, CPU, causal=True))
    assert seen.size <= max(table, keys * dim) < keys * keys
