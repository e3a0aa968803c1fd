"""Test what docs/training.md says about plugins of one's own and about torch.compile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

pytest.importorskip("fairseq")

from integration import support

PAGE = (support.ROOT / "docs" / "training.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return support.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin")


def test_an_own_plugin_imports_this_one(data: Path, tmp_path: Path) -> None:
    (tmp_path / "my_plugin").mkdir()
    (code,) = re.findall(r"```python\n(import fairseq_posenc.*?)```", PAGE, re.DOTALL)
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
