"""Test that every code block of docs/python.md runs, in order and in one process; the page contains the assertions."""

from __future__ import annotations

import importlib.util
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "python.md").read_text(encoding="utf-8")
ONNX = "onnx"


def blocks(page: str) -> list[str]:
    """Return the Python code of a page, one text for each block."""
    return re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def run(codes: list[str]) -> dict[str, Any]:
    """Run code blocks one after another, as a reader does, and return their names."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for number, code in enumerate(codes, start=1):
        exec(compile(code, f"docs/python.md, block {number}", "exec"), namespace)
    return namespace


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are traced, but not compiled by inductor; `fullgraph` refuses to split them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager", fullgraph=True))
    torch._dynamo.reset()
    names = run([code for code in blocks(PAGE) if ONNX not in code])
    assert names["states"].shape == (2, 4, 64)
    assert names["text"].shape == (1, 11)
    assert [tuple(states.shape) for states in names["memory"]] == [(1, 16, 64)] * 2
    assert names["y"].shape == (2, 4, 64)


def test_a_wrong_block_fails() -> None:
    wrong = PAGE.replace("states[1:, :2])", "states[1:, 1:3])", 1)
    assert wrong != PAGE
    with pytest.raises(AssertionError):
        run(blocks(wrong)[:3])


@pytest.mark.long
def test_every_block_runs_with_inductor_and_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert importlib.util.find_spec("onnxruntime"), "install the extra `test`, which contains the extra `onnx`"
    monkeypatch.chdir(tmp_path)
    run(blocks(PAGE))
    assert {path.name for path in tmp_path.iterdir()} >= {"encoder.onnx", "encoder.pt"}
