"""Test law 23: shared values are computed once per forward pass and, while a model decodes, seldom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from fairseq_posenc.core import factors, tables
from fairseq_posenc.encodings import Layer, deberta, deberta_original, segments, t5, tupe, xl
from fairseq_posenc.encodings.raffel import Raffel
from fairseq_posenc.positions import Positions, _derived

from .cases import Case
from .scene import drawn, embedded, new_caches, padded, positions_of

LAYERS = 3


@contextmanager
def counted(*names: tuple[Any, str]) -> Iterator[Counter[str]]:
    """Count how often functions, methods and properties are called."""
    counts: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in names:
            _count(patch, owner, name, counts)
        yield counts


def _count(patch: pytest.MonkeyPatch, owner: Any, name: str, counts: Counter[str]) -> None:
    original = vars(owner)[name]
    function = original.make if isinstance(original, _derived) else original

    def call(*args: Any, **kwargs: Any) -> Any:
        counts[name] += 1
        return function(*args, **kwargs)

    if isinstance(original, _derived):
        replaced = _derived(call)
        replaced.__set_name__(owner, name)
        patch.setattr(owner, name, replaced)
    else:
        patch.setattr(owner, name, call)


def forwards(case: Case, times: int = 1, *, training: bool = True) -> None:
    """Run several forwards of three layers, each at its own positions."""
    stack = drawn(case.stack(case.shape(layers=LAYERS))).train(training)
    tokens = padded([6, 4], 6)
    for _ in range(times):
        with torch.set_grad_enabled(training):
            stack(embedded(tokens, stack.shape.dim), positions_of(tokens, stack))


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
def test_work_is_done_once_a_forward(case: Case, owner: Any, name: str) -> None:
    with counted((owner, name)) as counts:
        forwards(case)
    assert counts[name] == 1


def test_work_that_each_layer_does_is_caught() -> None:
    class Anew(Raffel):
        """Computes its distances again in every layer."""

        def bias(self, positions: Positions, layer: Layer) -> torch.Tensor:
            tables.rows_of(Positions(9, 9, positions.device), 2)
            return super().bias(positions, layer)

    with counted((tables, "_clipped")) as counts:
        forwards(Case("broken", cls=Anew))
    assert counts["_clipped"] == LAYERS


@pytest.mark.parametrize(("case", "owner", "name"), KEPT_IN_DECODING, ids=str)
def test_what_is_made_of_parameters_is_kept_while_a_model_decodes(case: Case, owner: Any, name: str) -> None:
    """The value is computed for lengths 1, 4, 10 and 16, which is the limit of some encodings."""
    stack = drawn(case.stack(case.shape(layers=LAYERS)))
    tokens, caches = padded([14, 9], 14), new_caches(stack)
    x = embedded(tokens, stack.shape.dim)
    with counted((owner, name)) as counts, torch.no_grad():
        for end in range(1, 15):
            positions = positions_of(tokens[:, :end], stack, cached=end - 1)
            stack(x[:, end - 1 : end], positions, caches=caches)
    assert counts[name] <= 4
