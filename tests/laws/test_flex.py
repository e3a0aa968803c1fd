"""Law 19: FlexAttention with the terms of an encoding equals the float64 reference, outputs and gradients.

The laws run on a CPU, where torch computes FlexAttention without compiling it, by the same `score_mod` and mask.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from fairseq_posenc.attention.flex import gradients_on_a_cpu
from fairseq_posenc.positions import Positions

from . import broken
from .cases import Case, defaults, directions, every
from .compare import assert_close, assert_refused
from .scene import Scene, padded, positions_of, use_path
from .test_reference import Forward, check_gradients

TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-6}


@pytest.fixture(scope="module", autouse=True)
def on_a_cpu() -> Iterator[None]:
    """Replace the check that forbids gradients on a CPU; this fails if torch no longer has it."""
    with gradients_on_a_cpu():
        yield


def check_flex(case: Case, scene: Scene, dtype: torch.dtype) -> None:
    """Compare outputs and gradients of the flex path with the reference in float64."""
    exact, forward = Forward(case, scene), Forward(case, scene, dtype)
    actual, expected, tolerance = forward.actual("flex"), exact.literal(), TOLERANCES[dtype]
    assert_close(actual, expected, tolerance, "output")
    right = exact.gradients(expected)
    for name, gradient in forward.gradients(actual).items():
        assert_close(gradient, right[name], tolerance, f"gradient of {name}")


def has_flex(case: Case) -> bool:
    """Return whether FlexAttention can compute the logits of a case."""
    members = case.encoding(case.shape()).members.values()
    return all(member.pairwise for member in members) and not case.hooks & {"values", "compress"}


def has_terms(case: Case) -> bool:
    """Return whether a case changes the logits in a way that FlexAttention can compute."""
    return has_flex(case) and bool(case.hooks & {"bias", "content_bias", "scores"})


@pytest.mark.parametrize("case", defaults(has_flex), ids=str)
def test_flex_equals_the_reference(case: Case) -> None:
    """Memory or cached columns come before the queries, and pads are on the left."""
    check_flex(case, Scene(before=2, side="left"), torch.float64)


@pytest.mark.parametrize("case", defaults(has_terms), ids=str)
def test_flex_equals_the_reference_in_float32(case: Case) -> None:
    check_flex(case, Scene(side="right", span=3), torch.float32)


OPTIONS = every(lambda case: bool(case.args) and has_terms(case) and case.causal == directions(case.spec)[-1])


@pytest.mark.parametrize("case", OPTIONS, ids=str)
def test_flex_equals_the_reference_with_any_option(case: Case) -> None:
    """Options do not depend on the layer, except where layers share tables."""
    layers = 2 if "share" in case.args else 1
    check_flex(case, Scene(before=2, side="left", layers=layers), torch.float64)


@pytest.mark.parametrize("name", ["shaw", "m4m", "t5", "deberta"])
def test_flex_decodes_a_single_token(name: str) -> None:
    check_flex(Case(name, causal=True), Scene(queries=1, before=4, side="left"), torch.float64)


@pytest.mark.parametrize("args", [{"reset": "vector"}, {"reset": "scalar"}], ids=str)
def test_a_cls_in_a_different_column_of_each_sample(args: dict[str, str]) -> None:
    check_flex(Case("m4", args), Scene(side="left"), torch.float64)


def test_segments_and_distances_together() -> None:
    check_flex(Case("diet-rel+segments"), Scene(side="right"), torch.float64)


def test_a_composition_of_a_product_and_a_bias() -> None:
    check_flex(Case("shaw+alibi", {"shaw.clip": 2}, causal=True), Scene(before=2), torch.float64)


@pytest.mark.parametrize("cls", [broken.ReadsBackwards, broken.ForgetsTheLayer, broken.Detached])
def test_a_broken_encoding_is_caught(cls: type) -> None:
    """ReadsBackwards is wrong for FlexAttention only."""
    with pytest.raises(AssertionError, match="differs"):
        check_flex(Case("broken", {"share": "none"}, cls=cls), Scene(before=2), torch.float64)


def test_the_encoding_that_is_broken_for_flex_is_right_on_the_explicit_path() -> None:
    check_gradients(Forward(Case("broken", cls=broken.ReadsBackwards), Scene(before=2)), "explicit", 1e-9)


def test_a_mask_with_a_fault_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Positions, "block_mask", None)
    with pytest.raises(AssertionError, match="output"):
        check_flex(Case("t5", causal=True), Scene(side="left"), torch.float64)


def test_training_on_a_cpu_is_refused() -> None:
    stack = Scene().stack(Case("t5"))
    use_path(stack, "flex")
    positions = positions_of(padded([4], 4), stack)
    x = torch.zeros(1, 4, stack.shape.dim, dtype=torch.float64)
    assert_refused(lambda: stack.train()(x, positions), "path=flex", "trains on a GPU only")
