"""Test that a training whose loss is not finite says in which update it ended."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from fairseq.logging import metrics

from fairseq_posenc.compat.divergence import _with_update


def diverge(trainer: Any) -> None:
    raise FloatingPointError("gradients are Nan/Inf")


@pytest.mark.parametrize(("losses", "shown"), [([], "null"), ([4.0, 6.0], "5.0")])
def test_the_update_and_the_mean_loss_since_the_last_line_are_logged(
    losses: list[float], shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = SimpleNamespace(get_num_updates=lambda: 46)
    with metrics.aggregate("train_inner", new_root=True), caplog.at_level(logging.ERROR):
        metrics.reset_meters("train_inner")
        for loss in losses:
            metrics.log_scalar("loss", loss)
        with pytest.raises(FloatingPointError):
            _with_update(diverge, trainer)
    assert caplog.messages == ['{"num_updates": 47, "loss": %s}' % shown]  # noqa: UP031


def test_a_step_without_errors_is_unchanged() -> None:
    assert _with_update(lambda trainer, step: step + 1, SimpleNamespace(), 1) == 2
