"""Test training with the compiled formula, as on a GPU: the same losses with every training option.

tests/laws/test_graphs.py shows that few graphs serve batches of all sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.attention import graphs
from fairseq_posenc.core import relative

from . import ranks, support

pytestmark = pytest.mark.long  # compiling takes a minute; the laws compile single layers in `make test`
SHAW = ["--pos-enc", "shaw", "--pos-enc-args", "clip=4"]


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trace without generating code, and let layers compute shared biases themselves, as on a GPU."""
    monkeypatch.setattr(graphs, "BACKEND", "aot_eager")
    monkeypatch.setattr(relative, "ONCE", ())
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(
    "more",
    [
        ["--attention-dropout", 0.1, "--checkpoint-activations"],
        ["--update-freq", 2, "--store-ema"],
        ["--bf16"],
        ["--memory-efficient-fp16", "--fp16-init-scale", 4],
    ],
    ids=lambda more: more[0].strip("-"),
)
def test_training_options_change_nothing(data: Path, more: list[Any]) -> None:
    flags = [*SHAW, *more, "--max-update", 3, "--pos-enc-path"]
    compiled, explicit = (support.train(data, *flags, path) for path in ("compiled", "explicit"))
    assert compiled.losses == pytest.approx(explicit.losses, rel=2e-3)


def test_two_processes_train_the_compiled_formula(data: Path, tmp_path: Path) -> None:
    """Each process compiles it by inductor."""
    flags = [*SHAW, "--max-update", 2]
    words = support.command_line(data, *flags, "--pos-enc-path", "compiled")
    first, second = ranks.two_processes(tmp_path, words)
    torch.testing.assert_close(first["model"], second["model"], rtol=0, atol=0)
    alone = support.train(data, *flags, "--update-freq", 2)
    assert first["losses"] == pytest.approx(alone.losses, rel=1e-5)
