"""Test law 19: with the terms of an encoding, FlexAttention has the outputs and gradients of the float64 reference.

These tests run on a CPU, where torch does not compile FlexAttention, but uses the same `score_mod` and mask.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from fairseq_posenc.attention import SelfAttention, flex
from fairseq_posenc.attention.flex import gradients_on_a_cpu
from fairseq_posenc.commands.paths_page import LAW_CASES
from fairseq_posenc.core.compose import LayerCall
from fairseq_posenc.ops.compiled import compiled
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from . import broken
from .cases import Case, defaults, every, in_last_direction, in_turn
from .compare import assert_close, assert_refused
from .scene import PAD, Scene, embedded, padded, positions_of, run, use_path
from .test_incremental import decode
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


DEFAULTS = defaults(has_flex)


@pytest.mark.parametrize("case", in_turn(lambda case: case in DEFAULTS, in_last_direction))
def test_flex_equals_the_reference(case: Case) -> None:
    """Memory or cached columns come before the queries, and pads are on the left.

    There are two layers in one direction only, because which tables a layer reads does not depend on the direction.
    """
    layers = 2 if in_last_direction(case) else 1
    check_flex(case, Scene(before=2, side="left", layers=layers), torch.float64)


IN_FLOAT32 = defaults(lambda case: has_terms(case) and in_last_direction(case))


@pytest.mark.parametrize("case", IN_FLOAT32, ids=str)
def test_flex_equals_the_reference_in_float32(case: Case) -> None:
    check_flex(case, Scene(side="right", span=3, layers=1), torch.float32)


OPTIONS = every(lambda case: bool(case.args) and has_terms(case) and in_last_direction(case))


#: The case of each encoding in which most options differ from their defaults. `make test-long` tries the others.
MOST_OPTIONS = {case.spec: case for case in sorted(OPTIONS, key=lambda case: len(case.args))}.values()


@pytest.mark.parametrize("case", in_turn(lambda case: case in OPTIONS, lambda case: case in MOST_OPTIONS))
def test_flex_equals_the_reference_with_any_option(case: Case) -> None:
    """Options do not depend on the layer, except where layers share tables."""
    layers = 2 if "share" in case.args else 1
    check_flex(case, Scene(before=2, side="left", layers=layers), torch.float64)


@pytest.mark.parametrize("name", ["shaw", "m4m", "t5", "deberta", "fox"])
def test_flex_decodes_a_single_token(name: str) -> None:
    check_flex(Case(name, causal=True), Scene(queries=1, before=4, side="left"), torch.float64)


def check_decoding(case: Case) -> None:
    """Compare a prefix and then single tokens on the flex path with the whole sequence on the explicit path."""
    stack = Scene(queries=5, layers=1).stack(case)
    tokens = padded([5, 3], 5, "left")
    use_path(stack, "flex")
    with torch.no_grad():
        decoded = decode(stack, tokens, [3, 1, 1])
    whole, real = run(stack, tokens, "explicit"), tokens.ne(PAD)
    assert_close(decoded[real], whole[real], TOLERANCES[torch.float64], "decoding")


DECODING = defaults(lambda case: has_terms(case) and case.causal)


@pytest.mark.parametrize("case", DECODING, ids=str)
def test_flex_decodes_with_a_cache(case: Case) -> None:
    check_decoding(case)


def test_there_are_as_many_cases_as_the_page_says() -> None:
    assert len(DEFAULTS) + len(IN_FLOAT32) + len(OPTIONS) + len(DECODING) > LAW_CASES


def test_a_wrong_offset_in_decoding_is_caught() -> None:
    with pytest.raises(AssertionError, match="decoding"):
        check_decoding(Case("broken", causal=True, cls=broken.CountsRowsFromZero))


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


HALF = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("case", defaults(has_terms), ids=str)
def test_the_tables_of_terms_are_float32_in_half_precision(case: Case) -> None:
    """The gradient of a number, to which many pairs contribute, is then summed in float32."""
    for dtype in HALF:
        stack = Scene().stack(case).to(dtype)
        call = call_of(stack, positions_of(padded([6, 4], 6), stack))
        call = call.with_inputs(torch.zeros(2, 6, stack.shape.dim, dtype=dtype))
        q, k = torch.zeros(2, 2, 2, 6, 4, dtype=dtype)
        terms = call.terms(q, k)
        assert {term.numbers().dtype for term in (*terms.factors, *terms.added)} == {torch.float32}


def call_of(stack: Stack, positions: Positions) -> LayerCall:
    attention = stack.layers[0].self_attn
    assert isinstance(attention, SelfAttention)
    return attention.view.at(positions, stack.pos.per_layer(positions)[0])


@pytest.mark.parametrize("autocast", [False, True], ids=["module", "autocast"])
@pytest.mark.parametrize("name", ["shaw", "m4m", "tupe"])
def test_flex_is_close_in_bfloat16(name: str, autocast: bool) -> None:
    """The explicit path in the same precision is compared; both round products of queries and keys."""
    stack = Scene(layers=1).stack(Case(name)).float() if autocast else Scene(layers=1).stack(Case(name)).bfloat16()
    tokens = padded([6, 4], 6)
    x = embedded(tokens, stack.shape.dim).to(torch.float32 if autocast else torch.bfloat16) / 2
    outputs = []
    for path in ("explicit", "flex"):
        use_path(stack, path)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            outputs.append(stack(x, positions_of(tokens, stack))[0].float())
    assert_close(outputs[1], outputs[0], 0.03, "bfloat16")


@pytest.mark.long
@pytest.mark.parametrize("name", ["t5", "m4m", "m4", "segments"])
def test_the_compiled_kernel_gives_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch compiles FlexAttention for a CPU without gradients only; each compilation takes about 20 seconds."""
    torch._dynamo.reset()  # a kernel for all lengths does not compile on a CPU
    monkeypatch.setattr(flex, "kernel", lambda device: compiled(flex_attention, dynamic=None))
    stack = Scene(queries=64, head_dim=16, layers=1).stack(Case(name, {"reset": "vector"} if name == "m4" else {}))
    tokens = padded([64, 50], 64, "left")
    x, outputs = embedded(tokens, stack.shape.dim).float() / 2, []
    for path in ("explicit", "flex"):
        use_path(stack.float(), path)
        with torch.no_grad():
            outputs.append(stack(x, positions_of(tokens, stack))[0])
    assert_close(outputs[1], outputs[0], 1e-5, "compiled")


def test_training_on_a_cpu_is_refused() -> None:
    stack = Scene().stack(Case("t5"))
    use_path(stack, "flex")
    positions = positions_of(padded([4], 4), stack)
    x = torch.zeros(1, 4, stack.shape.dim, dtype=torch.float64)
    assert_refused(lambda: stack.train()(x, positions), "path=flex", "trains on a GPU only")
