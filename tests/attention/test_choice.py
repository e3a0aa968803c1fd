"""Test the choice of the path, on a CPU and as if the tensors were on a GPU, which CI does not have."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch

from fairseq_posenc.attention import Projected, paths
from fairseq_posenc.attention.choice import Choice, Mode, PathRefusedError, choose
from fairseq_posenc.core import relative
from fairseq_posenc.core.compose import LayerView
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions

TRAINING = Mode(training=True)
GPU, CPU = torch.device("cuda"), torch.device("cpu")


def on_gpu(inputs: tuple[Projected, LayerView], mode: Mode, path: str = "auto") -> Choice:
    """Return the choice for tensors on a GPU."""
    return choose(*inputs, mode, path, GPU)


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def layer(
    spec: str, args: str = "", *, dtype: torch.dtype = torch.bfloat16, queries: int = 40, causal: bool = False
) -> tuple[Projected, LayerView]:
    """Return the queries, keys and values of a layer of 40 columns, and its hooks."""
    shape = StackShape(1, 2, 32, 40, causal=causal, has_cls=not causal)
    encoding = build(spec, args, shape).to(dtype)
    positions = Positions(queries, 40, CPU, causal=causal, cls_column=None if causal else torch.zeros(1).long())
    q, k, v = (torch.zeros(1, 2, rows, 16, dtype=dtype) for rows in (queries, 40, 40))
    tensors = encoding.per_layer(positions)[0]
    return Projected(q, k, v, q, k, positioned="linformer" not in spec), encoding.layer(1).at(positions, tensors)


@pytest.mark.parametrize("mode", [TRAINING, Mode(training=True, dropout=0.1), Mode()], ids=["train", "dropout", "use"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("spec", ["t5", "shaw", "m4", "m4m", "m3", "tupe", "alibi+dape"])
def test_a_gpu_compiles_the_formula_of_encodings_that_change_the_logits(
    spec: str, dtype: torch.dtype, mode: Mode
) -> None:
    assert on_gpu(layer(spec, dtype=dtype), mode).path == "compiled"
    assert on_gpu(layer("shaw", "values=true,clip=4", dtype=dtype), mode).path == "compiled"


@pytest.mark.parametrize("spec", ["none", "rope", "learned", "linformer"])
def test_a_gpu_takes_the_fused_kernel_where_nothing_is_added(spec: str) -> None:
    assert on_gpu(layer(spec), Mode(training=True, dropout=0.1)) == Choice("fused")


@pytest.mark.parametrize(
    ("mode", "queries", "path", "reason"),
    [
        (Mode(need_weights=True), 40, "explicit", "the caller needs the attention weights"),
        (Mode(), 1, "explicit", "single query"),
    ],
    ids=["weights", "decoding"],
)
def test_a_gpu_computes_few_logits_and_weights_eagerly(mode: Mode, queries: int, path: str, reason: str) -> None:
    chosen = on_gpu(layer("t5", queries=queries, causal=True), mode)
    assert chosen.path == path
    assert reason in chosen.reason


@pytest.mark.usefixtures("deterministic")
def test_deterministic_training_does_not_take_the_fused_kernel() -> None:
    chosen = on_gpu(layer("none"), TRAINING)
    assert chosen.path == "compiled"
    assert "not deterministic" in chosen.reason
    assert on_gpu(layer("none"), Mode()).path == "fused"


def test_what_could_not_be_compiled_runs_eagerly_and_says_why() -> None:
    x, call = layer("shaw")
    call.encoding.uncompiled = "there is no Triton"
    chosen = on_gpu((x, call), TRAINING)
    assert chosen.path == "explicit"
    assert "there is no Triton" in chosen.reason


def test_a_cpu_never_compiles_by_itself() -> None:
    for mode in (TRAINING, Mode()):
        assert choose(*layer("t5"), mode).path != "compiled"


@pytest.mark.parametrize("path", ["explicit", "fused", "compiled"])
def test_a_path_can_be_forced(path: str) -> None:
    inputs = layer("t5", dtype=torch.float32)
    assert on_gpu(inputs, TRAINING, path).path == path
    assert choose(*inputs, TRAINING, path).path == path


@pytest.mark.parametrize(
    ("spec", "path", "mode", "reason"),
    [
        ("t5", "compiled", Mode(need_weights=True), "the caller needs the attention weights"),
        ("t5", "fused", TRAINING, "round the position terms"),
        ("m4m", "fused", TRAINING, "replaces the product"),
    ],
)
def test_a_forced_path_is_refused_with_the_reason(spec: str, path: str, mode: Mode, reason: str) -> None:
    with pytest.raises(PathRefusedError, match=f"path={path} is not possible here, because .*{reason}"):
        on_gpu(layer(spec), mode, path)


def test_a_transformed_model_is_not_compiled() -> None:
    def paths_in_vmap(q: torch.Tensor) -> torch.Tensor:
        x, call = layer("t5", dtype=torch.float32)
        assert on_gpu((x, call), Mode()).path == "explicit"
        with pytest.raises(PathRefusedError, match="transforms the model"):
            on_gpu((x, call), Mode(), "compiled")
        return q

    torch.vmap(paths_in_vmap)(torch.zeros(2))


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(ValueError, match="auto, explicit, fused, compiled"):
        on_gpu(layer("t5"), TRAINING, "fast")


def test_the_path_and_its_reason_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    x, call = layer("t5", dtype=torch.float32)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            paths.attend(x, call, training=True)
    (record,) = [record for record in caplog.records if "attention path" in record.message]
    reason = "the fused path is not faster than the explicit path in training on a CPU"
    assert record.message == f"attention path of t5 in the encoder: explicit ({reason})"


def test_a_choice_without_a_reason_is_named() -> None:
    assert str(Choice("fused")) == "fused scaled_dot_product_attention"


def test_a_gpu_keeps_the_small_part_of_a_shared_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU does not store the bias of all pairs for all layers."""
    encoding = build("t5", None, StackShape(2, 2, 8, 10))
    assert {"bias"} == set(encoding.per_layer(Positions(10, 10, CPU))[0]["t5"])
    monkeypatch.setattr(relative, "ONCE", ())
    assert {"vector"} == set(encoding.per_layer(Positions(10, 10, CPU))[0]["t5"])
