"""Test that the code in README.md and docs/ works: examples, and a plugin and an encoding of one's own."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import types
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from integration import support
from laws.cases import Case
from laws.scene import Scene
from laws.test_causality import check_causality
from laws.test_incremental import STEPS, check_incremental
from laws.test_reference import check_fused, check_reference

from fairseq_posenc import encodings
from fairseq_posenc.encodings.registry import ENCODINGS

DOCS, ONNX = support.ROOT / "docs", "onnx"


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


# -- docs/training.md ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return support.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin")


def test_an_own_plugin_imports_this_one(data: Path, tmp_path: Path) -> None:
    (tmp_path / "my_plugin").mkdir()
    (code,) = [code for code in blocks("training.md") if code.startswith("import fairseq_posenc")]
    (tmp_path / "my_plugin" / "__init__.py").write_text(code, encoding="utf-8")
    words = support.command_line(data, "--pos-enc", "m4[clip=4]", "--max-update", 1)
    words[words.index("--user-dir") + 1] = "my_plugin"
    words[words.index("--arch") + 1] = "my_transformer"
    ran = support.run([*support.script("train"), *words], cwd=tmp_path)
    assert "position encoding m4(clip=4" in ran.stdout + ran.stderr


def test_a_compiled_model_equals_the_uncompiled_one(data: Path) -> None:
    """The section on torch.compile says so; outputs at padding have no meaning."""
    model, task = support.built(data, "--pos-enc", "shaw[clip=3]+t5", "--encoder-layers", 1, "--decoder-layers", 1)
    inputs = support.batches(task)[0]["net_input"]
    real = inputs["prev_output_tokens"].ne(task.target_dictionary.pad())
    torch._dynamo.reset()

    def outputs_and_gradients(forward: torch.nn.Module) -> list[torch.Tensor]:
        model.zero_grad()
        outputs = forward(**inputs)[0][real]
        outputs.square().mean().backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        return [outputs.detach(), *gradients]

    plain, compiled = (outputs_and_gradients(each) for each in (model, torch.compile(model, backend="eager")))
    torch._dynamo.reset()
    assert len(plain) == len(compiled) > 20
    for ours, theirs in zip(compiled, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


# -- docs/adding-an-encoding.md ------------------------------------------------------------------------------

ADDING = (DOCS / "adding-an-encoding.md").read_text("utf-8")
NAME, FILE, CLASS = re.findall(r'`"([a-z-]+)": "([a-z]+):([A-Za-z]+)",`', ADDING)[0]
CODE = blocks("adding-an-encoding.md")[0]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("args", [{}, {"share": "none"}])
def test_the_encoding_of_the_page_works(args: dict[str, object], causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(f"{encodings.__name__}.{FILE}")
    module.__package__ = encodings.__name__
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(ENCODINGS, NAME, f"{FILE}:{CLASS}")
    exec(compile(CODE, "docs/adding-an-encoding.md", "exec"), module.__dict__)
    case, scene = Case(NAME, args, causal), Scene(before=2, side="left")
    check_reference(case, scene)
    check_fused(case, scene)
    if causal:
        check_causality(case, "auto")
        check_incremental(case, STEPS["in chunks"], "left", "auto")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_an_encoding_needs_only_a_file_and_a_line_to_pass_its_tests(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    not_copied = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "results", "_build")
    shutil.copytree(support.ROOT, clone, ignore=not_copied)
    folder = Path("fairseq_posenc") / "encodings"
    (clone / folder / f"{FILE}.py").write_text(CODE, encoding="utf-8")
    registry = clone / folder / "registry.py"
    text = registry.read_text(encoding="utf-8").replace("\n}\n", f'\n    "{NAME}": "{FILE}:{CLASS}",\n}}\n', 1)
    registry.write_text(text, encoding="utf-8")
    file = str(folder / f"{FILE}.py")
    tests = ["pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "-k", NAME, "tests"]
    checks = [["ruff", "check", file], ["ruff", "format", "--check", file], ["mypy", file]]
    for command in (["docs/_generate"], *(["-m", *words] for words in (*checks, tests))):
        env = {**os.environ, "PYTHONPATH": str(clone)}
        done = subprocess.run([sys.executable, *command], cwd=clone, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
