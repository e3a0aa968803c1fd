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
def test_count(args: str, shape: StackShape, published: int) -> None:
    with torch.device("meta"):
        built = build("xl", args, shape)
    assert sum(parameter.numel() for parameter in built.parameters()) == published


def test_it_starts_as_wide_as_published_and_without_biases() -> None:
    torch.manual_seed(0)
    start = build("xl", None, StackShape(layers=2, heads=4, dim=64, max_length=8)).members["xl"]
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


@pytest.mark.parametrize("spec", ["xl"])
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


@pytest.mark.parametrize("spec", ["xl"])
def test_what_is_refused(spec: str) -> None:
    shape = StackShape(layers=1, heads=1, dim=4, max_length=8)
    with pytest.raises(ValueError, match=f"{spec}: clamp=0"):
        build(spec, "clamp=0", shape)
    with pytest.raises(ValueError, match=f"rope and {spec} each change the queries"):
        build(f"rope+{spec}", None, shape)
    assert build(f"rope+{spec}", "biases=none", shape).name == f"rope+{spec}", "without u the query stays"
