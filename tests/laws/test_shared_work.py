"""Test law 23: shared values are computed once per forward pass and, while a model decodes, seldom."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fairseq_posenc.core import factors, relative, tables
from fairseq_posenc.encodings import deberta, deberta_original, segments, t5, tupe, xl
from fairseq_posenc.positions import Positions

from .cases import Case
from .scene import batch_of, drawn, new_caches, observed, positions_of

LAYERS = 3


def run_once(case: Case) -> None:
    """Run a forward of three layers."""
    stack = drawn(case.stack(case.shape(layers=LAYERS))).train()
    stack(*batch_of(stack)[1:])


ONCE_A_FORWARD = [
    (Case("shaw"), Positions, "forbidden"),
    (Case("shaw", causal=True), Positions, "_column_delta"),
    (Case("raffel"), Positions, "distances"),
    (Case("t5", {"share": "none"}), t5, "bucket"),
    (Case("deberta", {"form": "original", "buckets": 4}), deberta.Deberta, "_all_rows"),
    (Case("diet-abs"), factors.FactoredBias, "_product"),
    (Case("tupe", {"share": "layer-wise"}), tupe, "_products"),
    (Case("tupe", {"form": "original"}), tupe, "_products"),
    (Case("segments"), segments.Segments, "_one_hot"),
    (Case("m4", {"clip": 2}), tables, "_clipped"),
]
KEPT_IN_DECODING = [
    (Case("diet-abs", causal=True), factors.FactoredBias, "_product"),
    (Case("t5", causal=True), t5, "bucket"),
    (Case("deberta", causal=True), deberta.PaperDeberta, "project"),
    (Case("deberta", {"form": "original"}, causal=True), deberta_original.OriginalDeberta, "project"),
    (Case("tupe", causal=True), tupe.Tupe, "_product"),
    (Case("tupe", {"share": "layer-wise"}, causal=True), tupe.Tupe, "_product"),
    (Case("xl", causal=True), xl.XL, "_projected"),
    (Case("gcdf", causal=True), xl.XL, "_projected"),
]


@pytest.mark.parametrize(("case", "owner", "name"), ONCE_A_FORWARD, ids=str)
def test_work_is_done_once_a_forward(case: Case, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = observed(monkeypatch, owner, name)
    run_once(case)
    assert len(calls) == 1


def test_work_that_each_layer_does_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = observed(monkeypatch, relative.SharedBias, "bias")
    run_once(Case("raffel"))
    assert len(calls) == LAYERS


@pytest.mark.parametrize(("case", "owner", "name"), KEPT_IN_DECODING, ids=str)
def test_what_is_made_of_parameters_is_kept_while_a_model_decodes(
    case: Case, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value is computed for lengths 1, 4, 10 and 16, which is the limit of some encodings."""
    stack = drawn(case.stack(case.shape(layers=LAYERS)))
    tokens, x, _ = batch_of(stack, [14, 9])
    caches, calls = new_caches(stack), observed(monkeypatch, owner, name)
    with torch.no_grad():
        for end in range(1, 15):
            positions = positions_of(tokens[:, :end], stack, cached=end - 1)
            stack(x[:, end - 1 : end], positions, caches=caches)
    assert len(calls) <= 4
