"""Linformer and DIET-ABS-LIN: values by hand, counts, what is linear in the length, what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

CPU = torch.device("cpu")
BASE = StackShape(layers=12, heads=12, dim=768, max_length=512)
SMALL = StackShape(layers=2, heads=2, dim=4, max_length=4)
BOTH = pytest.mark.parametrize("spec", ["linformer", "diet-abs-lin"])


def made(spec: str, args: str = "", shape: StackShape = SMALL) -> Composition:
    """In float64, in evaluation, without gradients."""
    return build(spec, args, shape).double().eval().requires_grad_(False)


def slots_of(pos: Composition, x: Tensor, where: Positions, layer: int = 1) -> tuple[Tensor, Tensor]:
    return pos.layer(layer).at(where, pos.per_layer(where)[layer - 1]).compress(x, x)


def padded_positions(*pads: list[int]) -> Positions:
    """1 at pads."""
    padding = torch.tensor(pads, dtype=torch.bool)
    return Positions(padding.shape[1], padding.shape[1], CPU, padding=padding)


# -- values by hand ---------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("share_kv", "share_layers"), [(False, False), (True, False), (False, True), (True, True)])
def test_slots_are_weighted_sums_of_columns(spec: str, share_kv: bool, share_layers: bool) -> None:
    """Slot 0 of layer 1's keys is 1 a + 10 b + 100 c; shorter inputs read the first columns; values have twice that."""
    pos = made(spec, f"slots=1,share_kv={share_kv},share_layers={share_layers}")
    weight = pos.members[spec].weight
    assert weight.shape == (1 if share_layers else 2, 1 if share_kv else 2, 1, 4)
    powers = torch.tensor([1.0, 10, 100, 1000])
    for layer, of_layer in enumerate(weight, start=1):
        for copy, row in enumerate(of_layer, start=1):
            row[0] = layer * copy * powers
    x = torch.tensor([1.0, 2, 3]).double()[None, :, None].expand(1, 3, 4)
    for layer in (1, 2):
        keys, values = slots_of(pos, x, Positions(3, 3, CPU), layer)
        factor = 1 if share_layers else layer
        assert keys.tolist() == [[[321.0 * factor] * 4]]
        assert values.tolist() == [[[321.0 * factor * (1 if share_kv else 2)] * 4]]


@BOTH
@pytest.mark.parametrize(
    ("pads", "columns"),
    [([0, 0, 0, 0], 4321.0), ([0, 0, 0, 1], 321.0), ([1, 1, 0, 0], 43.0), ([1, 0, 0, 1], 32.0), ([0, 1, 0, 1], 31.0)],
)
def test_pads_take_no_column(spec: str, pads: list[int], columns: float) -> None:
    """A token's column is the number of tokens before it, wherever pads stand; another sample has its own."""
    pos = made(spec, "slots=1")
    pos.members[spec].weight.copy_(torch.tensor([1.0, 10, 100, 1000]).expand(2, 2, 1, 4))
    where = padded_positions(pads, [0, 0, 0, 0])
    x = torch.tensor([1.0, 2, 3, 4]).double()[None, :, None].expand(2, 4, 4)
    assert where.padding is not None
    keys, _ = slots_of(pos, x.masked_fill(where.padding[..., None], 0.0), where)  # as the attention does
    assert keys[:, 0, 0].tolist() == [columns, 4321.0]


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 0, 0]])
def test_positions_meet_slots(pads: list[int]) -> None:
    """P_Q[i] = (i, 10), P_K[s] = (1, s): i + 10 s, undivided."""
    pos = made("diet-abs-lin", "slots=3,rank=2")
    diet = pos.members["diet-abs-lin"]
    rows = torch.arange(4.0)
    diet.query.copy_(torch.stack([rows, torch.full_like(rows, 10.0)], -1))
    diet.key.copy_(torch.stack([torch.ones(3), rows[:3]], -1))
    where = padded_positions(pads)
    bias = pos.layer(1).at(where, pos.per_layer(where)[0]).additive(torch.empty(0), torch.empty(0))
    tokens = 4 - sum(pads)
    expected = [[i + 10.0 * s for s in range(3)] for i in range(tokens)]
    assert bias[0, 0, -tokens:].tolist() == expected


def test_the_attention_is_that_of_the_paper() -> None:
    """Softmax((X W_Q)(E X W_K)^T / sqrt(D) + P_Q P_K^T) (F X W_V), head by head."""
    torch.manual_seed(0)
    stack = Stack("diet-abs-lin", "slots=3,rank=5", StackShape(1, 2, 8, 6)).double().eval()
    diet, attention = stack.pos.members["diet-abs-lin"], stack.layers[0].self_attn
    x, where = torch.randn(1, 5, 8).double(), Positions(5, 5, CPU)
    with torch.no_grad():
        found, weights = attention(x, where, stack.pos.per_layer(where)[0], need_weights=True)
        q, k = attention.q_proj(x), attention.k_proj(diet.weight[0, 0, :, :5] @ x)
        v = attention.v_proj(diet.weight[0, 1, :, :5] @ x)
        for head in range(2):
            mine = slice(4 * head, 4 * head + 4)
            positions = diet.query[0, head, :5] @ diet.key[0, head].T
            expected = (q[0, :, mine] @ k[0, :, mine].T / 2 + positions).softmax(-1)
            torch.testing.assert_close(weights[0, head], expected)
            q[0, :, mine] = expected @ v[0, :, mine]
        torch.testing.assert_close(found, attention.out_proj(q))


# -- counts (METHODS.md 2.24): a layer has 2 k n, and h d_p (n + k) ---------------------------------------------------

COUNTS = [
    ("linformer", "slots=256", 12 * 2 * 256 * 512),
    ("linformer", "", 12 * 2 * 128 * 512),
    ("linformer", "slots=256,share_kv=true", 12 * 256 * 512),
    ("linformer", "slots=256,share_layers=true", 2 * 256 * 512),
    ("linformer", "slots=256,share_kv=true,share_layers=true", 256 * 512),
    ("diet-abs-lin", "slots=256,share=none", 12 * (2 * 256 * 512 + 12 * 64 * (512 + 256))),
    ("diet-abs-lin", "slots=256,rank=128", 12 * 2 * 256 * 512 + 12 * 128 * (512 + 256)),
    ("learned+linformer", "slots=256", 393_216 + 12 * 2 * 256 * 512),
    ("segments-input+linformer", "slots=256", 1_536 + 12 * 2 * 256 * 512),
]


@pytest.mark.parametrize(("spec", "args", "count"), COUNTS)
def test_the_count_of_a_base_model(spec: str, args: str, count: int) -> None:
    with torch.device("meta"):
        encoding = build(spec, args, BASE)
    assert sum(parameter.numel() for parameter in encoding.parameters()) == count


@BOTH
def test_they_start_as_fairseqs_compression(spec: str) -> None:
    """Uniform up to sqrt(6 / (n + k)) / sqrt(2)."""
    torch.manual_seed(0)
    weight = made(spec, "slots=24", StackShape(2, 2, 8, 96)).members[spec].weight
    bound = math.sqrt(6 / 120) / math.sqrt(2)
    assert float(weight.abs().max()) <= bound
    assert abs(float(weight.std()) - bound / math.sqrt(3)) < 0.05 * bound


# -- what is linear in the length -------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["linformer", "diet-abs-lin", "learned+linformer"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_no_mask_of_queries_and_keys_is_made(spec: str, side: str) -> None:
    stack = Stack(spec, "slots=2", SMALL).train()
    pads = [[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0] if side == "left" else [0, 0, 0, 1]]
    where = padded_positions(*pads)
    out, _ = stack(torch.randn(3, 4, 4), where)
    out.square().sum().backward()
    assert not {"delta", "allowed", "forbidden", "distances"} & set(vars(where))


# -- what is refused --------------------------------------------------------------------------------------------------


@BOTH
def test_what_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match=f"{spec} does not work in a decoder"):
        build(spec, None, StackShape(2, 2, 4, 4, causal=True))
    for slots in (0, 5):
        with pytest.raises(ValueError, match=rf"--pos-enc-args: {spec}: slots={slots}: from 1 to n, which is 4"):
            made(spec, f"slots={slots}")
    pos = made(spec)
    with pytest.raises(ValueError, match=rf"{spec}.*up to 4 positions, got 5.*raise max_length"):
        pos.check(Positions(5, 5, CPU))
    with pytest.raises(ValueError, match="segment memory"):
        pos.check(Positions(2, 4, CPU, memory=2))
    for other in ("diet-rel", "diet-abs", "segments", "shaw"):
        with pytest.raises(ValueError, match=rf"{spec} compresses the keys, which leaves {other} no positions"):
            made(f"{other}+{spec}")
    with pytest.raises(ValueError, match="init_std=0"):
        made("diet-abs-lin", "init_std=0")
