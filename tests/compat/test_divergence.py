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


def diverge_and_fail(trainer: Any) -> None:
    """Fail as fairseq does if it cannot repeat the step to find the first NaN."""
    try:
        diverge(trainer)
    except FloatingPointError:
        raise RuntimeError("hooks") from None


def fail(trainer: Any) -> None:
    raise RuntimeError("out of memory")


@pytest.mark.parametrize("step", [diverge, diverge_and_fail])
@pytest.mark.parametrize(("losses", "shown"), [([], "null"), ([4.0, 6.0], "5.0")])
def test_the_update_and_the_mean_loss_since_the_last_line_are_logged(
    losses: list[float], shown: str, step: Any, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = SimpleNamespace(get_num_updates=lambda: 46)
    with metrics.aggregate("train_inner", new_root=True), caplog.at_level(logging.ERROR):
        metrics.reset_meters("train_inner")
        for loss in losses:
            metrics.log_scalar("loss", loss)
        with pytest.raises((FloatingPointError, RuntimeError)):
            _with_update(step, trainer)
    assert caplog.messages == ['{"num_updates": 47, "loss": %s}' % shown]  # noqa: UP031


def test_another_error_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError):
        _with_update(fail, SimpleNamespace())
    assert caplog.messages == []


def test_a_step_without_errors_is_unchanged() -> None:
    assert _with_update(lambda trainer, step: step + 1, SimpleNamespace(), 1) == 2
