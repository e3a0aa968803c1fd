"""Test --pos-enc-random in all models; test_resume.py shows that training resumes with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.hub.pretrained import read

from . import lm, masked_lm, support

COUNT = 64
RANDOM = ["--pos-enc-random", COUNT]


@pytest.mark.parametrize(
    "name", ["shaw", *(pytest.param(name, marks=pytest.mark.long) for name in ("rope", "learned"))]
)
def test_training_draws_positions_and_generation_is_repeatable(name: str, data: Path) -> None:
    plain = support.train(data, "--pos-enc", name, "--max-update", 1)
    run = support.train(data, "--pos-enc", name, *RANDOM, "--max-update", 1)
    assert run.losses != plain.losses
    model, task = run.model.eval(), run.trainer.task
    for side in (model.encoder, model.decoder):
        assert (side.pos.stack.max_length, side.pos.stack.drawn, side.max_positions()) == (COUNT, 24, 24)
    together = support.hypotheses(model, task, size=64, beam=2)
    assert together == support.hypotheses(model, task, size=3, beam=2)


def test_language_models_and_masked_language_models_have_the_option(lines: Path, text: Path, tmp_path: Path) -> None:
    """The models of other programs do not, and are not exported."""
    model, _ = lm.built(lines, "--pos-enc", "xl", *RANDOM)
    assert model.decoder.pos.stack.max_length == COUNT
    assert model(torch.tensor([[5, 6, 7]]))[0].isfinite().all()
    run = masked_lm.train(text, *RANDOM, "--max-update", 1, "--save-dir", tmp_path)
    assert run.model.encoder.sentence_encoder.pos.members["learned"].weight.shape[0] == COUNT
    with pytest.raises(CheckpointError, match=f"--pos-enc-random {COUNT}"):
        read(tmp_path / "checkpoint_last.pt")
