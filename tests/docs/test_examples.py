"""Test that the Python examples of README.md, docs/python.md and docs/positions.md run."""

from __future__ import annotations

import importlib.util
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

DOCS = Path(__file__).parents[2] / "docs"
ONNX = "onnx"


def blocks(page: str) -> list[str]:
    """Return the Python code of a page, one text for each block."""
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


def run(codes: list[str]) -> dict[str, Any]:
    """Run code blocks one after another, as a reader does, and return their names."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for number, code in enumerate(codes, start=1):
        exec(compile(code, f"block {number}", "exec"), namespace)
    return namespace


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page contains assertions. Models are traced, but not compiled by inductor; `fullgraph` keeps them whole."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager", fullgraph=True))
    torch._dynamo.reset()
    names = run([code for code in blocks("python.md") if ONNX not in code])
    assert names["states"].shape == (2, 4, 64)
    assert names["text"].shape == (1, 11)
    assert [tuple(states.shape) for states in names["memory"]] == [(1, 16, 64)] * 2
    assert names["y"].shape == (2, 4, 64)


@pytest.mark.long
def test_every_block_runs_with_inductor_and_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert importlib.util.find_spec("onnxruntime"), "install the extra `test`, which contains the extra `onnx`"
    monkeypatch.chdir(tmp_path)
    run(blocks("python.md"))
    assert {path.name for path in tmp_path.iterdir()} >= {"encoder.onnx", "encoder.pt"}


def test_the_example_of_the_readme_runs() -> None:
    states = run(blocks("../README.md"))["states"]
    assert states.shape == (2, 4, 64)
    assert bool(states.isfinite().all())


@pytest.mark.parametrize("chunks", [2, 3])
def test_pose_skips_between_chunks_only(chunks: int) -> None:
    torch.manual_seed(0)
    names = run([code for code in blocks("positions.md") if "pose_ids" in code])
    assert names["ids"].shape == (512,)
    drawn = torch.stack([names["pose_ids"](16, 64, chunks) for _ in range(200)])
    steps = drawn.diff()
    assert drawn[:, 0].eq(0).all()
    assert steps.amin() >= 1
    assert (steps > 1).sum(1).amax() <= chunks - 1
    assert drawn.amax() == 63
