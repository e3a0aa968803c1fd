"""Test that no path computes or holds more than it needs: in decoding, in long sequences and between padded samples."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding, drawn, drawn_wide, largest_tensor, logits_of
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from fairseq_posenc.attention import SelfAttention
from fairseq_posenc.encodings import StackShape, fire, wall
from fairseq_posenc.ops import toeplitz, trilinear
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack


def test_a_step_of_decoding_reads_one_row_of_what_is_kept() -> None:
    pos = build_encoding("diet-abs", "share=none", layers=2, heads=2, n=16, causal=True)
    whole, step = (Positions(queries, keys, CPU, causal=True) for queries, keys in ((9, 9), (1, 7)))
    all_rows, row = bias_of(pos, whole, 2), bias_of(pos, step, 2)
    assert torch.equal(row[0, :, 0], all_rows[0, :, 6, :7])
    kept = pos.per_layer(step)[1]["diet-abs"]["product"]
    assert row.untyped_storage().data_ptr() == kept.untyped_storage().data_ptr()


@pytest.mark.parametrize("spec", ["shaw", "m1", "m2", "m3", "m4", "m4m"])
def test_a_step_of_decoding_costs_a_row_for_every_key(spec: str) -> None:
    """Keys are not multiplied with the whole table."""
    keys, dim = 64, 4
    pos = build_encoding(spec, head_dim=dim, n=keys, causal=True)
    q, k = (x.detach() for x in drawn(1, keys, batch=1, heads=1, head_dim=dim))
    table = pos.members[spec].weight.numel()  # a view of the table counts as the table
    with largest_tensor() as seen:
        logits_of(pos, q, k, Positions(1, keys, CPU, causal=True))
    assert seen.size <= max(table, keys * dim) < keys * keys


def test_a_decoding_step_of_wall_computes_one_factor_for_each_key(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = wall._fading

    def fading(exponents: Tensor) -> Tensor:
        sizes.append(exponents[..., 0].numel())
        return original(exponents)

    monkeypatch.setattr(wall, "_fading", fading)
    pos = build_encoding("wall", causal=True)
    q, k = drawn(1, 40, batch=1, heads=1, head_dim=2)
    logits_of(pos, q, k, Positions(1, 40, CPU, causal=True), inputs=torch.randn(1, 40, 2, dtype=torch.float64))
    assert sum(sizes) == 40 + 2  # and one for the query and for its pair with itself


@pytest.mark.parametrize("spec", ["shaw", "m4", "m4m"])
@pytest.mark.parametrize("args", ["", "clip=4", "share=none"])
def test_no_tensor_has_a_vector_for_every_pair(spec: str, args: str) -> None:
    """Forward and backward make at most a number for every query and distance."""
    length, dim = 32, 24
    pos = drawn_wide(build_encoding(spec, args, heads=2, head_dim=dim, n=length))
    q, k = drawn(length, length, head_dim=dim)
    with largest_tensor() as seen:
        logits_of(pos, q, k, Positions(length, length, CPU)).sum().backward()
    assert seen.size <= 2 * 2 * length * 2 * length


@pytest.mark.parametrize("args", ["", "clip=3"])
@pytest.mark.parametrize("own", [False, True], ids=["columns", "own positions"])
def test_m3_never_holds_all_products(args: str, own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without compiled loops, neither the forward nor the backward holds all products."""
    monkeypatch.setattr(trilinear, "usable", lambda *work: False)
    length, dim = 48, 32
    chunk = 2 * 2 * length * dim
    pos = drawn_wide(build_encoding("m3", args, heads=2, head_dim=dim, n=length))
    monkeypatch.setattr(toeplitz, "CHUNK", chunk)
    q, k = drawn(length, length, head_dim=dim)
    ids = torch.arange(length - 1, -1, -1) if own else None
    kept: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes() // x.element_size()
        return x

    with largest_tensor() as seen:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            actual = logits_of(pos, q, k, Positions(length, length, CPU, ids=ids))
        actual.sum().backward()
    logits = 2 * 2 * length * (2 * length - 1)
    assert seen.size <= max(chunk, logits)
    assert sum(kept.values()) <= 2 * logits + 10 * q.numel()


@pytest.mark.parametrize("share", ["none", "layer-wise"])
def test_fire_takes_a_few_rows_of_a_long_sequence_at_a_time(share: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers and gradients are the same, although the hidden layer never holds all rows."""
    tokens = torch.tensor([[5, 6, 7, 8, 9, 5, 6, 7], [1, 1, 1, 5, 6, 7, 8, 9]])

    def run(chunk: int) -> tuple[list[Tensor], int]:
        monkeypatch.setattr(fire, "CHUNK", chunk)
        pos = build_encoding("fire", f"threshold=3,width=50,share={share}", heads=2, layers=2).requires_grad_()
        with largest_tensor() as seen:
            bias = bias_of(pos, Positions.of_tokens(tokens, pad=1, causal=True))
            (bias * torch.arange(8)).sum().backward()
        return [bias.detach(), *(p.grad for p in pos.parameters() if p.grad is not None)], seen.size

    (whole, most), (parts, least) = run(2**20), run(2 * 2 * 8 * 50)
    assert least == most // 4
    for expected, actual in zip(whole, parts, strict=True):
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


def test_fires_network_of_a_short_sequence_sees_distances_only() -> None:
    """Up to T the network runs on 2K - 1 distances instead of K^2 pairs."""
    with largest_tensor() as seen:
        bias_of(build_encoding("fire"), Positions(8, 8, CPU, causal=True))
    assert seen.size == (2 * 8 - 1) * 32


@pytest.mark.parametrize("spec", ["linformer", "diet-abs-lin", "learned+linformer"])
@pytest.mark.parametrize("last", [[1, 0, 0, 0], [0, 0, 0, 1]], ids=["left", "right"])
def test_slots_need_no_mask_of_queries_and_keys(spec: str, last: list[int]) -> None:
    stack = Stack(spec, "slots=2", StackShape(layers=2, heads=2, dim=4, max_length=4)).train()
    where = Positions(4, 4, CPU, padding=torch.tensor([[0, 0, 0, 0], [1, 1, 1, 1], last]).bool())
    stack(torch.randn(3, 4, 4), where)[0].square().sum().backward()
    assert not {"delta", "allowed", "forbidden", "distances"} & set(vars(where))


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_flash_kernel_can_compute_pope(causal: bool, padded: bool) -> None:
    """PoPE's queries and keys are wider than its values."""
    pos = build_encoding("pope", head_dim=4, heads=2, causal=causal)
    attention = SelfAttention(8, 2).double().eval()
    attention.use(pos, 1)
    attention.path = "fused"
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]) if padded else None
    where = Positions(5, 5, CPU, causal=causal, padding=padding)
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # raises if this kernel refuses the shapes
        attention(torch.randn(2, 5, 8, dtype=torch.float64), where, pos.per_layer(where)[0])
