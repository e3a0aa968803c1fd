"""XL and GCDF: keys of distances projected from a fixed encoding (METHODS.md 2.15, 2.16, 2.20, 8)."""

from __future__ import annotations

import math

import pytest
import torch
from test_golden import CPU, lengths, logits_of, made, vectors

from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.encodings.xl import XL
from fairseq_posenc.positions import Positions

BASE = StackShape(layers=12, heads=12, dim=768, max_length=512)
WT103 = StackShape(layers=16, heads=10, dim=410, max_length=300, causal=True)


@pytest.mark.parametrize(
    ("args", "shape", "published"),
    [
        ("", BASE, 7_096_320),
        ("biases=tied", BASE, 7_079_424),
        ("biases=none", BASE, 7_077_888),
        ("", WT103, 2_702_720),
    ],
)
@pytest.mark.parametrize("spec", ["xl", "gcdf"])
def test_count(spec: str, args: str, shape: StackShape, published: int) -> None:
    with torch.device("meta"):
        built = build(spec, args, shape)
    assert sum(parameter.numel() for parameter in built.parameters()) == published


@pytest.mark.parametrize("spec", ["xl", "gcdf"])
def test_it_starts_as_wide_as_published_and_without_biases(spec: str) -> None:
    torch.manual_seed(0)
    start = build(spec, None, StackShape(layers=2, heads=4, dim=64, max_length=8)).members[spec]
    assert float(start.weight.detach().std()) == pytest.approx(0.02, rel=0.05)
    assert not start.u.any()
    assert not start.v.any()


SINES = [0.841471, 0.010000]
COSINES = [0.540302, 0.999950]


def test_rows_are_sinusoids_of_signed_distances() -> None:
    rows = made("xl", dim=4).members["xl"].encode(torch.tensor([1.0, -1.0, 0.0]).double())
    expected = [[*SINES, *COSINES], [-SINES[0], -SINES[1], *COSINES], [0.0, 0.0, 1.0, 1.0]]
    torch.testing.assert_close(rows, torch.tensor(expected).double(), rtol=0, atol=1e-6)


@lengths
@pytest.mark.parametrize("clamp", [None, 2])
def test_a_key_of_a_distance_is_that_of_i_minus_j(queries: int, keys: int, clamp: int | None) -> None:
    """W_r passes the sine on: q.k is 0, and the logit sin(i - j) / sqrt(2)."""
    pos = made("xl", "" if clamp is None else f"clamp={clamp}")
    pos.members["xl"].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    found = logits_of(pos, vectors([1, 0], queries), vectors([0, 1], keys), Positions(queries, keys, CPU))[0, 0]

    def within(p: int) -> int:
        return p if clamp is None else max(-clamp, min(clamp, p))

    expected = [[math.sin(within(i - j)) / 2**0.5 for j in range(keys)] for i in range(keys - queries, keys)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


@lengths
def test_u_meets_the_key_and_v_the_distance(queries: int, keys: int) -> None:
    """q = (1, 2), k = (3, -1), u = (1, 1), v = (2, 0), r = (0, cos): q.k + u.k + (q+v).r = 1 + 2 + 2 cos(i-j)."""
    pos = made("xl")
    xl = pos.members["xl"]
    xl.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
    xl.u.copy_(torch.tensor([1.0, 1.0]))
    xl.v.copy_(torch.tensor([2.0, 0.0]))
    where = Positions(queries, keys, CPU)
    found = logits_of(pos, vectors([1, 2], queries), vectors([3, -1], keys), where)[0, 0]
    torch.testing.assert_close(found, (3 + 2 * where.delta.double().cos()) / 2**0.5, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spec", ["xl", "gcdf"])
def test_decoding_does_not_project_at_each_step(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    projected: list[int] = []
    original = XL._projected
    monkeypatch.setattr(XL, "_projected", lambda self, n: projected.append(n) or original(self, n))
    pos = made(spec, dim=4, causal=True, n=64)
    for length in range(1, 65):
        pos.per_layer(Positions(1, length, CPU, causal=True))
    assert len(projected) <= 7, "the length doubles each time"
    pos.train()
    pos.per_layer(Positions(4, 6, CPU, causal=True))
    assert projected[-1] == 6, "training makes no more than it needs"


@pytest.mark.parametrize("spec", ["xl", "gcdf"])
def test_what_is_refused(spec: str) -> None:
    shape = StackShape(layers=1, heads=1, dim=4, max_length=8)
    with pytest.raises(ValueError, match=f"{spec}: clamp=0"):
        build(spec, "clamp=0", shape)
    with pytest.raises(ValueError, match=f"rope and {spec} each change the queries"):
        build(f"rope+{spec}", None, shape)
    assert build(f"rope+{spec}", "biases=none", shape).name == f"rope+{spec}", "without u the query stays"


# -- GCDF -----------------------------------------------------------------------------------------------------------

GAUSSIAN = {  # d = 4
    1: [3.041000, 2.765850, 2.552653, 2.394825],
    -1: [0.959000, 1.234150, 1.447347, 1.605175],
    0: [2.0, 2.0, 2.0, 2.0],
    10: [4.0, 3.999999, 3.999186, 3.975161],
}


@pytest.mark.parametrize("p", GAUSSIAN)
def test_gcdf_rows(p: int) -> None:
    """The rows that are projected lack lambda / 2, which the softmax does not see."""
    gcdf = made("gcdf", dim=4).members["gcdf"]
    projected = gcdf.encode(torch.tensor([p], dtype=torch.float64))[0]
    for row in (projected + 2, gcdf.reference_encode(torch.tensor([[p]]))[0, 0]):
        torch.testing.assert_close(row, torch.tensor(GAUSSIAN[p]).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("dim", "longest"), [(64, 300), (512, 1024)])
def test_gcdf_rows_tell_all_distances_apart(dim: int, longest: int) -> None:
    """Monotone, and without a special case on either side."""
    rows = made("gcdf", dim=dim).members["gcdf"].encode(torch.arange(-float(longest), longest + 1).double())
    assert bool((rows.diff(dim=0) >= 0).all())
    assert bool((rows.diff(dim=0).sum(-1) > 0).all())
    assert torch.equal(rows, -rows.flip(0))


def test_gcdf_may_change_its_sign() -> None:
    """R_{-p} = lambda - R_p: with -W_r and the other sign the softmax is the same (METHODS.md 8)."""
    gcdf = made("gcdf", dim=4, n=16)
    encode = gcdf.members["gcdf"].encode
    gcdf.members["gcdf"].weight.normal_()
    where = Positions(5, 9, CPU)
    q, k = torch.randn(2, 1, 1, 9, 4, dtype=torch.float64)
    weights = logits_of(gcdf, q[:, :, 4:], k, where).softmax(-1)
    mirrored = made("gcdf", dim=4, n=16)
    mirrored.members["gcdf"].weight.copy_(gcdf.members["gcdf"].weight.neg())
    mirrored.members["gcdf"].encode = lambda p: encode(-p)
    torch.testing.assert_close(logits_of(mirrored, q[:, :, 4:], k, where).softmax(-1), weights, rtol=0, atol=1e-12)


def test_gcdf_needs_a_height() -> None:
    with pytest.raises(ValueError, match=r"gcdf: lambda=0\.0 must be positive"):
        build("gcdf", "lambda=0", StackShape(layers=1, heads=1, dim=4, max_length=8))
