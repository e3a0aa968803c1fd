"""Test the choice of the path, on a CPU and as if the tensors were on a GPU, which CI does not have."""

from __future__ import annotations

import functools
import itertools
import logging
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from laws.compare import assert_refused

from fairseq_posenc.attention import Projected, paths
from fairseq_posenc.attention.choice import Choice, Mode, PathRefusedError, choose
from fairseq_posenc.core import relative
from fairseq_posenc.core.compose import LayerView
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions

TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("choice.toml").read_text("utf-8"))
CPU = torch.device("cpu")


def alternatives(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each combination of the alternatives, with what the row does not say."""
    lists = [value if isinstance(value, list) else [value] for value in row.values()]
    return [{**TABLE["otherwise"], **dict(zip(row, values, strict=True))} for values in itertools.product(*lists)]


def layer(spec: str, dtype: str = "float32", queries: int = 40, causal: bool = False) -> tuple[Projected, LayerView]:
    """Return the queries, keys and values of a layer of 40 columns, and its hooks."""
    encoding = build(spec, None, StackShape(1, 2, 32, 40, causal=causal, has_cls=not causal)).to(getattr(torch, dtype))
    positions = Positions(queries, 40, CPU, causal=causal, cls_column=None if causal else torch.zeros(1).long())
    q, k, v = (torch.zeros(1, 2, rows, 16, dtype=getattr(torch, dtype)) for rows in (queries, 40, 40))
    tensors = encoding.per_layer(positions)[0]
    return Projected(q, k, v, q, k, positioned="linformer" not in spec), encoding.layer(1).at(positions, tensors)


@pytest.mark.parametrize("case", [case for row in TABLE["choice"] for case in alternatives(row)])
def test_a_path_is_chosen_or_refused_with_the_reason(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: case["deterministic"])
    x, call = layer(case["spec"], case["dtype"], case["queries"], case["causal"])
    call.encoding.uncompiled = case["uncompiled"]
    mode = Mode(case["training"], case["dropout"], case["need_weights"])
    choice = functools.partial(choose, x, call, mode, case["path"], torch.device(case["device"]))
    if "refused" in case:
        assert_refused(choice, case["refused"])
    else:
        assert choice().path == case.get("chosen", case["path"])
        assert case["reason"] in choice().reason


def test_a_transformed_model_is_not_compiled() -> None:
    def paths_in_vmap(q: torch.Tensor) -> torch.Tensor:
        assert choose(*layer("t5"), Mode(), "auto", torch.device("cuda")).path == "explicit"
        with pytest.raises(PathRefusedError, match="transforms the model"):
            choose(*layer("t5"), Mode(), "compiled")
        return q

    torch.vmap(paths_in_vmap)(torch.zeros(2))


def test_the_path_and_its_reason_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    x, call = layer("t5")
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            paths.attend(x, call, training=True)
    reason = "the fused path is not faster than the explicit path in training on a CPU"
    lines = [record.message for record in caplog.records if "attention path" in record.message]
    assert lines == [f"attention path of t5 in the encoder: explicit ({reason})"]
    assert str(Choice("fused")) == "fused scaled_dot_product_attention"


def test_a_gpu_keeps_the_small_part_of_a_shared_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU does not store the bias of all pairs for all layers."""
    encoding = build("t5", None, StackShape(2, 2, 8, 10))
    assert {"bias"} == set(encoding.per_layer(Positions(10, 10, CPU))[0]["t5"])
    monkeypatch.setattr(relative, "ONCE", ())
    assert {"vector"} == set(encoding.per_layer(Positions(10, 10, CPU))[0]["t5"])
