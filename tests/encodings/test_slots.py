"""Test that the slots of Linformer and DIET-ABS-LIN mix the right columns."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding

from fairseq_posenc.positions import Positions


@pytest.mark.parametrize("spec", ["linformer", "diet-abs-lin"])
@pytest.mark.parametrize(
    ("pads", "columns"),
    [([0, 0, 0, 0], 4321), ([0, 0, 0, 1], 321), ([1, 1, 0, 0], 43), ([1, 0, 0, 1], 32), ([0, 1, 0, 1], 31)],
)
def test_slots_are_weighted_sums_of_columns_without_pads(spec: str, pads: list[int], columns: float) -> None:
    """The slot of the columns a, b, c and d is a + 10 b + 100 c + 1000 d; the column of a token counts those before it.

    The weights of layer 2 are twice as large, and those of the values are three times as large as those of the keys.
    """
    pos = build_encoding(spec, "slots=1", layers=2, heads=2, n=4)
    times = torch.tensor([[1, 3], [2, 6]])
    pos.members[spec].weight.copy_(times[..., None, None] * torch.tensor([1, 10, 100, 1000]))
    padding = torch.tensor([pads, [0, 0, 0, 0]]).bool()
    where = Positions(4, 4, CPU, padding=padding)
    x = torch.tensor([1.0, 2, 3, 4]).double().masked_fill(padding, 0.0)[..., None].expand(2, 4, 4)  # as in attention
    for layer in (1, 2):
        slots = pos.layer(layer).at(where, pos.per_layer(where)[layer - 1]).compress(x, x)
        for slot, factor in zip(slots, times[layer - 1].tolist(), strict=True):
            assert slot[:, 0, 0].tolist() == [columns * factor, 4321.0 * factor]


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 0, 0]])
def test_positions_meet_slots(pads: list[int]) -> None:
    """With P_Q[i] = (i, 10) and P_K[s] = (1, s) the bias is i + 10 s, which is not divided."""
    pos = build_encoding("diet-abs-lin", "slots=3,rank=2", n=4)
    diet = pos.members["diet-abs-lin"]
    diet.query.copy_(torch.tensor([[0, 10], [1, 10], [2, 10], [3, 10]]))
    diet.key.copy_(torch.tensor([[1, 0], [1, 1], [1, 2]]))
    bias = bias_of(pos, Positions(4, 4, CPU, padding=torch.tensor([pads]).bool()))[0, 0]
    expected = [[0, 10, 20], [1, 11, 21], [2, 12, 22], [3, 13, 23]]
    tokens = 4 - sum(pads)
    assert bias[-tokens:].tolist() == expected[:tokens]
