"""Test docs/training.md: its table lists all flags, and what its sections say holds."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("fairseq")

from integration import support

from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.models.config import StacksPosEncConfig

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
LONG = 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return support.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin")


def test_the_table_has_every_flag_once() -> None:
    flags = re.findall(r"^\| `(--[\w-]+)`", PAGE, re.MULTILINE)
    assert len(flags) == len(set(flags)) > 30
    fields = [field.name for field in dataclasses.fields(StacksPosEncConfig) if not field.name.startswith("_")]
    assert {f"--{name.replace('_', '-')}" for name in fields} == {flag for flag in flags if "--pos-enc" in flag}
    assert {"--mem-length", "--pretrained", "--encoder-from"} <= {*flags}


def test_roberta_gets_the_length_of_the_command() -> None:
    spec, length = re.findall(r"--pos-enc '(learned\[.*,extend_to=(\d+)\])'", PAGE)[0]
    assert build(spec, None, StackShape(2, 2, 8, 512)).limit == int(length) == 2048


def test_an_own_plugin_imports_this_one(data: Path, tmp_path: Path) -> None:
    (tmp_path / "my_plugin").mkdir()
    (code,) = re.findall(r"```python\n(import fairseq_posenc.*?)```", PAGE, re.DOTALL)
    (tmp_path / "my_plugin" / "__init__.py").write_text(code, encoding="utf-8")
    words = support.command_line(data, "--pos-enc", "m4[clip=4]", "--max-update", 1)
    words[words.index("--user-dir") + 1] = "my_plugin"
    words[words.index("--arch") + 1] = "my_transformer"
    program = [sys.executable, "-c", "from fairseq_cli.train import cli_main; cli_main()", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-1500:]
    assert "position encoding m4(clip=4" in ran.stdout + ran.stderr


@pytest.mark.parametrize("encoding", ["shaw[clip=3]+t5", "rope"])
def test_a_compiled_model_equals_the_uncompiled_one(data: Path, encoding: str) -> None:
    """The section on torch.compile says so; outputs at padding have no meaning."""
    model, task = support.built(data, "--pos-enc", encoding)
    inputs = support.batches(task)[0]["net_input"]
    real = inputs["prev_output_tokens"].ne(task.target_dictionary.pad())
    torch._dynamo.reset()

    def outputs_and_gradients(forward: torch.nn.Module) -> list[torch.Tensor]:
        model.zero_grad()
        outputs = forward(**inputs)[0][real]
        outputs.square().mean().backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        return [outputs.detach(), *gradients]

    plain, compiled = (outputs_and_gradients(each) for each in (model, torch.compile(model, backend="aot_eager")))
    torch._dynamo.reset()
    assert len(plain) == len(compiled) > 20
    for ours, theirs in zip(compiled, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
