"""Tests of the choice of the path, as if the tensors were on a GPU, which CI does not have."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from fairseq_posenc.attention import Projected, choice, paths
from fairseq_posenc.attention.choice import Choice, Mode, Place, choose
from fairseq_posenc.core.compose import LayerCall
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions

TRAINING = Mode(training=True)
GPU, CPU = Place(on_gpu=True, triton=True), torch.device("cpu")


def on_gpu(inputs: tuple[Projected, LayerCall], mode: Mode, path: str = "auto") -> Choice:
    """Return the choice for tensors on a GPU with Triton."""
    return choose(*inputs, mode, path, GPU)


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def layer(
    spec: str,
    args: str = "",
    *,
    dtype: torch.dtype = torch.bfloat16,
    length: int = 40,
    queries: int = 40,
    head_dim: int = 16,
    causal: bool = False,
) -> tuple[Projected, LayerCall]:
    """Return the queries, keys and values of a layer, and its hooks."""
    shape = StackShape(1, 2, 2 * head_dim, length, causal=causal, has_cls=not causal)
    encoding = build(spec, args, shape).to(dtype)
    cls_column = None if causal else torch.zeros(1, dtype=torch.long)
    positions = Positions(queries, length, CPU, causal=causal, cls_column=cls_column)
    q, k, v = (torch.zeros(1, 2, rows, head_dim, dtype=dtype) for rows in (queries, length, length))
    tensors = encoding.per_layer(positions)[0]
    return Projected(q, k, v, q, k, positioned="linformer" not in spec), encoding.layer(1).at(positions, tensors)


@pytest.mark.parametrize("mode", [TRAINING, Mode()], ids=["training", "inference"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    "spec", [("t5", ""), ("shaw", "clip=4"), ("m4", "clip=4,reset=vector"), ("m4m", "clip=4"), ("m1", ""), ("tupe", "")]
)
def test_a_gpu_takes_flex(spec: tuple[str, str], dtype: torch.dtype, mode: Mode) -> None:
    chosen = on_gpu(layer(*spec, dtype=dtype), mode)
    assert (chosen.path, chosen.reason) == ("flex", "")


@pytest.mark.parametrize(
    ("spec", "args", "reason"),
    [
        ("none", "", "adds nothing to the logits"),
        ("rope", "", "adds nothing to the logits"),
        ("learned", "", "adds nothing to the logits"),
        ("linformer", "slots=4", "keys are compressed"),
    ],
)
def test_a_gpu_takes_the_fused_kernel_where_nothing_is_added(spec: str, args: str, reason: str) -> None:
    chosen = on_gpu(layer(spec, args), TRAINING)
    assert chosen.path == "fused"
    assert reason in chosen.reason


@pytest.mark.parametrize(
    ("spec", "args", "reason"),
    [
        ("shaw", "", "79 numbers for each token and head, which take more memory than"),
        ("m4", "clip=20", "82 numbers for each token and head, which take more memory"),
        ("m3", "", "cannot compute the logits of m3"),
        ("shaw", "values=true,clip=2", "adds a term to the values"),
    ],
)
def test_a_gpu_takes_the_explicit_path_in_half_precision_where_flex_cannot_help(
    spec: str, args: str, reason: str
) -> None:
    chosen = on_gpu(layer(spec, args), TRAINING)
    assert chosen.path == "explicit"
    assert reason in chosen.reason


def test_cope_is_explicit() -> None:
    chosen = on_gpu(layer("cope", causal=True), TRAINING)
    assert chosen.path == "explicit"
    assert "cannot compute the logits of cope" in chosen.reason


def test_a_composition_with_one_member_without_a_form_names_it() -> None:
    assert "the logits of m3" in on_gpu(layer("m3+segments-input"), TRAINING).reason


@pytest.mark.parametrize(
    ("mode", "settings", "reason"),
    [
        (Mode(training=True, dropout=0.1), {}, "no attention dropout"),
        (Mode(need_weights=True), {}, "needs the attention weights"),
        (TRAINING, {"dtype": torch.float64}, "no float64 on a GPU"),
        (TRAINING, {"head_dim": 8}, "head width of at least 16"),
    ],
    ids=["dropout", "weights", "float64", "narrow heads"],
)
def test_a_forced_flex_is_refused_with_the_reason_that_auto_gives(
    mode: Mode, settings: dict[str, Any], reason: str
) -> None:
    inputs = layer("t5", **settings)
    chosen = on_gpu(inputs, mode)
    assert chosen.path != "flex"
    assert reason in chosen.reason
    with pytest.raises(ValueError, match=reason):
        on_gpu(inputs, mode, "flex")


@pytest.mark.usefixtures("deterministic")
def test_deterministic_training_is_explicit() -> None:
    for spec in ("t5", "none"):
        chosen = on_gpu(layer(spec), TRAINING)
        assert chosen.path == "explicit"
        assert "not deterministic" in chosen.reason
    assert on_gpu(layer("t5"), Mode()).path == "flex"
    with pytest.raises(ValueError, match="not deterministic"):
        on_gpu(layer("t5"), TRAINING, "flex")


def test_without_triton_another_path_is_taken() -> None:
    assert "Triton" in choose(*layer("t5"), TRAINING, place=Place(on_gpu=True, triton=False)).reason


def test_an_older_torch_takes_another_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "FLEX_SINCE", "99.1")
    chosen = on_gpu(layer("t5"), TRAINING)
    assert chosen.path == "explicit"
    assert "needs torch 99.1 or newer" in chosen.reason
    with pytest.raises(ValueError, match=r"needs torch 99\.1"):
        on_gpu(layer("t5"), TRAINING, "flex")


def test_a_single_query_does_not_compile_a_kernel() -> None:
    assert "single query" in on_gpu(layer("t5", queries=1, causal=True), Mode()).reason


def test_a_cpu_never_takes_flex_by_itself() -> None:
    for mode in (TRAINING, Mode()):
        assert choose(*layer("t5"), mode).path != "flex"


@pytest.mark.parametrize("path", ["explicit", "fused", "flex"])
def test_a_path_can_be_forced(path: str) -> None:
    assert on_gpu(layer("t5", dtype=torch.float32), TRAINING, path).path == path


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(ValueError, match="auto, explicit, fused, flex"):
        on_gpu(layer("t5"), TRAINING, "fast")


def test_the_path_and_its_reason_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    x, call = layer("t5", dtype=torch.float32)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            paths.attend(x, call, training=True)
    (record,) = [record for record in caplog.records if "attention path" in record.message]
    reason = "the fused path is not faster than the explicit path in training on a CPU"
    side = "decoder" if call.view.encoding.stack.causal else "encoder"
    assert record.message == f"attention path of t5 in the {side}: explicit ({reason})"


def test_a_choice_without_a_reason_is_named() -> None:
    assert str(Choice("flex")) == "flex_attention"


def test_a_gpu_keeps_the_small_part_of_a_shared_bias() -> None:
    """A GPU does not store the bias of all pairs for all layers."""
    shape = StackShape(2, 2, 8, 10)
    encoding = build("t5", None, shape)
    assert {"t5.vector", "t5.bias"} == set(encoding.per_layer(Positions(10, 10, CPU))[0])
    on_meta = encoding.to("meta").per_layer(Positions(10, 10, torch.device("meta")))[0]
    assert {"t5.vector"} == set(on_meta)
