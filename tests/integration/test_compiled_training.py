"""Test training with the compiled formula, as on a GPU: few graphs, and the same losses with every training option."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.attention import graphs
from fairseq_posenc.core import relative

from . import ranks, support
from .ranks import assert_same

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


def losses(data: Path, path: str, *flags: Any) -> list[float]:
    run = support.train(data, "--pos-enc-path", path, *flags)
    return list(run.losses)


@pytest.mark.parametrize("encoding", ["shaw", "t5", "m4"])
def test_sixty_batches_of_many_sizes_compile_only_at_first(
    data: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[int] = []
    shapes: list[tuple[int, ...]] = []
    train_step = support.Recorder.train_step

    def step(trainer: Any, samples: Any) -> Any:
        result = train_step(trainer, samples)
        compiled.append(graphs.GRAPHS.count)
        shapes.append(tuple(samples[0]["net_input"]["src_tokens"].shape))
        return result

    monkeypatch.setattr(support.Recorder, "train_step", step)
    before = graphs.GRAPHS.count
    losses(data, "compiled", "--pos-enc", encoding, "--max-tokens", 40, "--max-update", 60)
    assert len(compiled) == 60
    assert len(set(shapes)) > 8
    # Encoder and decoder have graphs of their own, and so have padding and a batch of one sample, which come early.
    assert compiled[10] == compiled[-1], "a batch of another size is compiled again"
    assert compiled[-1] - before <= 8


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
    flags = [*SHAW, *more, "--max-update", 3]
    assert losses(data, "compiled", *flags) == pytest.approx(losses(data, "explicit", *flags), rel=2e-3)


def test_two_processes_train_the_compiled_formula(data: Path, tmp_path: Path) -> None:
    """Each process compiles it by inductor."""
    flags = [*SHAW, "--max-update", 2]
    words = support.command_line(data, *flags, "--pos-enc-path", "compiled")
    first, second = ranks.two_processes(tmp_path, words)
    assert_same(first["model"], second["model"], rtol=0, atol=0)
    alone = support.train(data, *flags, "--update-freq", 2)
    assert first["losses"] == pytest.approx(alone.losses, rel=1e-5)
