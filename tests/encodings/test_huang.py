"""M1, M2 and M3 (METHODS.md 2.8 to 2.10): counts, values by hand, and how M3 spares memory."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, by_hand, drawn, largest_tensor, logits_of, number_of_parameters, one_layer, plain
from torch import Tensor

from fairseq_posenc.core.base import Layer
from fairseq_posenc.encodings import StackShape, build, huang
from fairseq_posenc.ops import compiled
from fairseq_posenc.positions import Positions

SHAPES = [(1, 1), (1, 9), (3, 9), (9, 9)]


@pytest.mark.parametrize(
    ("spec", "args", "published"),
    [
        ("m1", "", 6_144),
        ("m1", "share=none", 73_728),
        ("m2", "", 12_276),
        ("m2", "share=none", 147_312),
        ("m3", "", 785_664),
        ("m3", "share=none", 9_427_968),
        ("m3", "clip=4", 12 * 9 * 64),
    ],
)
def test_the_count_is_the_published_one(spec: str, args: str, published: int) -> None:
    assert number_of_parameters(spec, args) == published


@pytest.mark.parametrize(
    ("spec", "args", "a", "expected"),
    [
        ("m1", "", 0.5, 0.353553),
        ("m2", "", 0.5, 0.353553),
        ("m3", "", [0.5, 1.0], -0.353553),
        ("m3", "clip=1", [0.5, 1.0], -0.353553),
        ("m3", "clip=1,share=none", [0.5, 1.0], -0.353553),
    ],
)
def test_by_hand(spec: str, args: str, a: float | list[float], expected: float) -> None:
    assert by_hand(spec, args, a) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("spec", ["m1", "m2", "m3", "m3 clipped"])
@pytest.mark.parametrize("shape", SHAPES)
def test_they_start_as_plain_attention(spec: str, shape: tuple[int, int]) -> None:
    name, _, clipped = spec.partition(" ")
    pos = build(name, "clip=2" if clipped else "", StackShape(1, 2, 8, 16)).double()
    q, k = drawn(*shape)
    torch.testing.assert_close(logits_of(pos, q, k, Positions(*shape, CPU)), plain(q, k), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("spec", "row"), [("m1", abs), ("m2", int), ("m3", int)])
def test_a_row_serves_its_distance(spec: str, row: type, shape: tuple[int, int]) -> None:
    """Tables that hold their distance: |j - i|, or the signed j - i."""
    pos = one_layer(spec, n=10).requires_grad_(False)
    weight, ones = pos.members[spec].weight, torch.ones(2, 2, max(shape), 4, dtype=torch.float64)
    numbers = torch.arange(10.0) if spec == "m1" else torch.arange(-9.0, 10.0)
    weight.copy_(numbers[:, None].expand_as(weight) if spec == "m3" else numbers)
    where = Positions(*shape, CPU)
    found = logits_of(pos, ones[:, :, : shape[0]], ones[:, :, : shape[1]], where)[0, 0]
    expected = torch.tensor([[2.0 * row(d) for d in line] for line in where.delta.tolist()])  # q.k / sqrt(D) is 2
    torch.testing.assert_close(found, expected.double(), rtol=0, atol=1e-12)


def test_m1_is_symmetric_at_equal_content() -> None:
    q, _ = drawn(9, 9)
    found = logits_of(one_layer("m1"), q, q, Positions(9, 9, CPU))
    assert torch.equal(found, found.mT)


def test_m1_is_never_clipped() -> None:
    with pytest.raises(ValueError, match="no option clip"):
        build("m1", "clip=4", StackShape(1, 1, 4, 8))


# -- M3 in chunks -------------------------------------------------------------------------------------


def outcome(args: str, positions: Positions) -> list[Tensor]:
    """Logits where a query may look, and the gradients of q, k and the table."""
    pos = one_layer("m3", args, causal=positions.causal)
    q, k = drawn(positions.query_length, positions.key_length)
    found = logits_of(pos, q, k, positions)
    if positions.causal:
        found = found.tril(positions.offset)
    weight = pos.members["m3"].weight
    return [found, *torch.autograd.grad(found.sin().sum(), [q, k, weight])]


def literally(args: str, positions: Positions) -> list[Tensor]:
    """The same from the reference."""
    pos = one_layer("m3", args, causal=positions.causal)
    q, k = drawn(positions.query_length, positions.key_length)
    found = pos.members["m3"].reference(q, k, positions, Layer(1))
    if positions.causal:
        found = found.tril(positions.offset)
    weight = pos.members["m3"].weight
    return [found, *torch.autograd.grad(found.sin().sum(), [q, k, weight])]


@pytest.mark.parametrize("chunk", [1, 500, 1 << 30])
@pytest.mark.parametrize("args", ["", "clip=1", "clip=3", "clip=4,share=none"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("causal", [False, True])
def test_m3_is_the_same_in_any_chunks(
    causal: bool, shape: tuple[int, int], args: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huang, "CHUNK", chunk)
    where = Positions(*shape, CPU, causal=causal)
    for found, expected in zip(outcome(args, where), literally(args, where), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("args", ["", "clip=3"])
def test_m3_never_holds_all_products(args: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without compiled loops: neither in a forward nor in a backward, which needs no more than other methods keep."""
    monkeypatch.setattr(compiled, "usable", lambda *work: False)
    length, dim = 48, 32
    pos, chunk = one_layer("m3", args, head_dim=dim, n=length), 2 * 2 * length * dim
    monkeypatch.setattr(huang, "CHUNK", chunk)
    q, k = drawn(length, length, head_dim=dim)
    kept: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes() // x.element_size()
        return x

    with largest_tensor() as seen:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            found = logits_of(pos, q, k, Positions(length, length, CPU))
        found.sum().backward()
    logits = 2 * 2 * length * (2 * length - 1)
    assert seen.size <= max(chunk, logits)
    assert sum(kept.values()) <= 2 * logits + 10 * q.numel()
