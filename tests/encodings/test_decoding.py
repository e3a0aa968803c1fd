"""Test that decoding does not repeat computations, and that training computes only what it needs."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding, drawn, drawn_wide, largest_tensor, logits_of

from fairseq_posenc.positions import Positions


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
