"""Test --pos-enc-random: training resumes exactly, and generation does not depend on the batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from . import lm, masked_lm, support
from .test_resume import assert_equal, interrupted

COUNT = 64
RANDOM = ["--pos-enc-random", COUNT]


@pytest.mark.parametrize(
    "name", ["shaw", *(pytest.param(name, marks=pytest.mark.long) for name in ("rope", "learned"))]
)
def test_training_resumes_exactly_and_generation_is_repeatable(name: str, data: Path, tmp_path: Path) -> None:
    flags = ["--pos-enc", name, *RANDOM]

    def train(*more: Any) -> support.Run:
        return support.train(data, *flags, "--max-tokens", 300, "--dropout", 0.1, *more)

    whole, resumed = interrupted(train, tmp_path, 5, 3)
    assert_equal(whole, resumed)
    _, task = support.built(data, *flags)
    model = whole.model.eval()
    for side in (model.encoder, model.decoder):
        assert (side.pos.stack.max_length, side.pos.stack.drawn, side.max_positions()) == (COUNT, 24, 24)
    together = support.hypotheses(model, task, size=64, beam=2)
    assert together == support.hypotheses(model, task, size=64, beam=2)
    assert together == support.hypotheses(model, task, size=3, beam=2)


def test_positions_have_an_effect_in_training(data: Path) -> None:
    losses = [support.train(data, "--pos-enc", "rope", "--max-update", 1, *more).losses for more in ([], RANDOM)]
    assert losses[0] != losses[1]


def test_language_models_and_masked_language_models_have_the_option(tmp_path: Path) -> None:
    model, _ = masked_lm.built(masked_lm.write_corpus(tmp_path / "masked"), *RANDOM)
    assert model.encoder.sentence_encoder.pos.members["learned"].weight.shape[0] == COUNT
    assert model(torch.tensor([[0, 5, 6, 2]]))[0].isfinite().all()
    model, _ = lm.built(lm.write_corpus(tmp_path / "text"), "--pos-enc", "xl", *RANDOM)
    assert model.decoder.pos.stack.max_length == COUNT
    assert model(torch.tensor([[5, 6, 7]]))[0].isfinite().all()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--pos-enc", "rope", "--pos-enc-random", 8], "--pos-enc-random is 8.*--max-source-positions, which is 24"),
        (["--pos-enc", "none", *RANDOM], r"--pos-enc-random.*none.*no positions"),
    ],
)
def test_what_cannot_work_is_refused(flags: list[Any], words: str, data: Path) -> None:
    with pytest.raises(ValueError, match=words):
        support.built(data, *flags)


def test_other_models_refuse_the_checkpoint(tmp_path: Path) -> None:
    from fairseq_posenc.compat.checkpoints import CheckpointError
    from fairseq_posenc.hub.pretrained import read

    corpus = masked_lm.write_corpus(tmp_path / "masked")
    masked_lm.train(corpus, *RANDOM, "--max-update", 1, "--save-dir", tmp_path / "model")
    with pytest.raises(CheckpointError, match=f"--pos-enc-random {COUNT}"):
        read(tmp_path / "model" / "checkpoint_last.pt")
