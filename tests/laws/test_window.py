"""Test law 26: with the option `window`, the queries of a layer attend to near keys only, which costs a window.

Legend: see the option: in a decoder, a query attends to `window` keys including its own; in an encoder, to keys that
are at most window // 2 columns away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from fairseq_posenc.attention import formula, windows
from fairseq_posenc.encodings import build
from fairseq_posenc.positions import Positions

from .cases import Case, defaults, first_of_kind
from .compare import assert_refused
from .scene import Scene, attend_all, batch_of, new_caches, observed, positions_of, use_path
from .test_compositions import listed
from .test_documents import check_documents
from .test_own_positions import check_own
from .test_reference import check_fused, check_reference

WINDOW = 3


def with_window(case: Case) -> Case:
    """Return a case with a window, or with `+none[window=...]` if the encoding acts at the input only."""
    if case.hooks <= {"embed"} and case.spec != "none":
        return replace(case, spec=f"{case.spec}+none", args={**case.args, "none.window": WINDOW})
    name = case.name if "+" in case.spec else ""
    return replace(case, args={**case.args, f"{name}.window" if name else "window": WINDOW})


def windowed(where: Callable[[Case], bool] = lambda case: True) -> list[Case]:
    """Return encodings with default options and a window, in both directions."""
    return [with_window(case) for case in defaults(lambda case: "compress" not in case.hooks and where(case))]


@pytest.mark.parametrize(
    ("case", "smallest"),
    [*((case, 1) for case in windowed()), *((case, 1000) for case in windowed(first_of_kind))],
    ids=str,
)
def test_a_window_equals_the_reference_in_blocks_and_as_a_whole(
    case: Case, smallest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "SMALLEST", smallest)
    check_reference(case, Scene(queries=14, side="left", layers=1))
    check_reference(case, Scene(queries=9, before=6, side="right", layers=1))
    check_fused(case, Scene(queries=14, side="left", layers=1))


@pytest.mark.parametrize("case", listed("windows"))
def test_documents_and_own_positions_are_the_same_in_blocks(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "SMALLEST", 1)
    check_documents(case)
    check_own(case, Scene(queries=14), shared=True)


# -- what a window costs -----------------------------------------------------------------------------------------------


def logits_computed(case: Case, length: int) -> int:
    """Return how many logits a head of one layer computes for a sequence."""
    stack = case.stack(case.shape(layers=1, max_length=length)).eval()
    use_path(stack, "explicit")
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        logits = observed(patch, formula, "logits")
        attend_all(stack, *batch_of(stack, [length])[1:])
    return sum(x.shape[-1] * x.shape[-2] for x in logits)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("spec", ["rope", "none", "shaw", "logn"])
def test_the_cost_grows_with_the_length_times_the_window(
    spec: str, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(spec, {"window": 64}, causal)
    assert logits_computed(case, 512) <= 512 * 64 * 3
    monkeypatch.setattr(windows, "attended", lambda *rest: None)  # the count itself can see a missing block
    assert logits_computed(case, 512) == 512 * 512


def test_a_decoding_step_reads_the_window_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Case("rope", {"window": 3}, causal=True).stack(Case("rope", causal=True).shape(layers=1, max_length=20))
    tokens, x, _ = batch_of(stack, [20])
    caches = new_caches(stack)
    with torch.no_grad():
        attend_all(stack, x[:, :19], positions_of(tokens[:, :19], stack), caches=caches)
        logits = observed(monkeypatch, formula, "logits")
        attend_all(stack, x[:, 19:], positions_of(tokens, stack, cached=19), caches=caches)
    assert [x.shape[-1] for x in logits] == [3]


def test_a_window_that_hides_nothing_makes_no_mask() -> None:
    decoder, encoder = (Positions(4, 6, torch.device("cpu"), causal=causal) for causal in (True, False))
    assert decoder.within(6) is decoder
    assert encoder.within(10) is encoder
    assert replace(decoder, span=3).within(3).span == 3
    assert decoder.within(5).span == 5
    assert encoder.within(9).radius == 4


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_a_window_is_compared_with_the_longest_sequence_if_positions_are_drawn() -> None:
    shape = replace(Case("rope", causal=True).shape(max_length=50), drawn=20)
    build("rope[window=19]", None, shape)
    build("logn[form=llama4,interval=20]+rope", None, shape)
    assert_refused(lambda: build("rope[window=20]", None, shape), "window=20 has no effect", "20 tokens", "drawn")
    assert_refused(lambda: build("logn[form=llama4,interval=21]+rope", None, shape), "longest has 20", "drawn")


def test_a_radius_is_for_encoders() -> None:
    where = Positions(4, 4, torch.device("cpu"))
    assert_refused(lambda: replace(where, radius=2, causal=True), "radius", "span")
    assert_refused(lambda: replace(where, radius=-1), "radius", "span")
