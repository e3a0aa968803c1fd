"""Test that the slots of Linformer and DIET-ABS-LIN mix the right columns, and that sizes are linear in the length."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding

from fairseq_posenc.encodings import Composition, StackShape
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

BOTH = pytest.mark.parametrize("spec", ["linformer", "diet-abs-lin"])
SMALL: dict[str, Any] = {"layers": 2, "heads": 2, "n": 4}


def padded_positions(*pads: list[int]) -> Positions:
    """Return positions with padding where the list has a 1."""
    padding = torch.tensor(pads, dtype=torch.bool)
    return Positions(padding.shape[1], padding.shape[1], CPU, padding=padding)


def slots_of(pos: Composition, x: torch.Tensor, where: Positions, layer: int = 1) -> tuple[torch.Tensor, ...]:
    """Return the slots that stand for the keys and for the values."""
    return pos.layer(layer).at(where, pos.per_layer(where)[layer - 1]).compress(x, x)


@BOTH
@pytest.mark.parametrize(("share_kv", "share_layers"), [(False, False), (True, False), (False, True), (True, True)])
def test_slots_are_weighted_sums_of_columns(spec: str, share_kv: bool, share_layers: bool) -> None:
    """Slot 0 of the keys in layer 1 is 1 a + 10 b + 100 c, and that of the values is twice as large."""
    pos = build_encoding(spec, f"slots=1,share_kv={share_kv},share_layers={share_layers}", **SMALL)
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
    """The column of a token is the number of tokens before it in its sample, without padding."""
    pos = build_encoding(spec, "slots=1", **SMALL)
    pos.members[spec].weight.copy_(torch.tensor([1.0, 10, 100, 1000]).expand(2, 2, 1, 4))
    where = padded_positions(pads, [0, 0, 0, 0])
    x = torch.tensor([1.0, 2, 3, 4]).double()[None, :, None].expand(2, 4, 4)
    assert where.padding is not None
    keys, _ = slots_of(pos, x.masked_fill(where.padding[..., None], 0.0), where)  # as the attention does
    assert keys[:, 0, 0].tolist() == [columns, 4321.0]


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 0, 0]])
def test_positions_meet_slots(pads: list[int]) -> None:
    """With P_Q[i] = (i, 10) and P_K[s] = (1, s) the bias is i + 10 s, which is not divided."""
    pos = build_encoding("diet-abs-lin", "slots=3,rank=2", **SMALL)
    diet = pos.members["diet-abs-lin"]
    rows = torch.arange(4.0)
    diet.query.copy_(torch.stack([rows, torch.full_like(rows, 10.0)], -1))
    diet.key.copy_(torch.stack([torch.ones(3), rows[:3]], -1))
    tokens = 4 - sum(pads)
    expected = [[i + 10.0 * s for s in range(3)] for i in range(tokens)]
    assert bias_of(pos, padded_positions(pads))[0, 0, -tokens:].tolist() == expected


@pytest.mark.parametrize("spec", ["linformer", "diet-abs-lin", "learned+linformer"])
@pytest.mark.parametrize("last", [[1, 0, 0, 0], [0, 0, 0, 1]], ids=["left", "right"])
def test_no_mask_of_queries_and_keys_is_made(spec: str, last: list[int]) -> None:
    stack = Stack(spec, "slots=2", StackShape(layers=2, heads=2, dim=4, max_length=4)).train()
    where = padded_positions([0, 0, 0, 0], [1, 1, 1, 1], last)
    stack(torch.randn(3, 4, 4), where)[0].square().sum().backward()
    assert not {"delta", "allowed", "forbidden", "distances"} & set(vars(where))
