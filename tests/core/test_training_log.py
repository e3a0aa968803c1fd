"""Test what is read from the log of a training: losses, divergence and the number of parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.core.training_log import (
    Divergence,
    Points,
    read_divergence,
    read_losses,
    read_parameters,
    read_validations,
)


def line(kind: str, **facts: Any) -> str:
    return f"2026-01-01 00:00:00 | INFO | {kind} | {json.dumps({key: str(value) for key, value in facts.items()})}\n"


def inner(update: int, loss: float, speed: float = 100) -> str:
    return line("train_inner", num_updates=update, loss=loss, wps=speed)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


def risen(log: Path, *losses: float) -> Divergence | None:
    """Return how a training with these losses, one per update, diverged."""
    log.write_text("".join(inner(update, loss) for update, loss in enumerate(losses, 1)), encoding="utf-8")
    return read_divergence(log)


def test_only_the_last_loss_of_an_update_counts(log: Path) -> None:
    valid = [line("valid", valid_num_updates=2, valid_loss=loss, valid_bleu=4) for loss in (7, 6.5)]
    cut = line("train_inner", num_updates=3)[:-9] + "\n"
    log.write_text(inner(2, 5, 10) + cut + inner(1, 6, 30) + inner(2, 4, 20) + "".join(valid), encoding="utf-8")
    curve = read_losses(log)
    assert curve.train == [(1, 6), (2, 4)]
    assert curve.valid == [(2, 6.5)]
    assert curve.speed == 20
    assert read_validations(log, "valid_bleu") == [(2, 4)]
    assert read_validations(log, "valid_chrf") == []


@pytest.mark.parametrize(
    ("losses", "divergence"),
    [
        ((), None),
        ((9.0,), None),
        ((9.0, 8.0, 7.0), None),
        ((9.0, 4.0, 9.0), Divergence(3, 9.0, finite=True)),
        ((9.0, 4.0, 8.9), None),  # it ends below the first loss
        ((9.0, 4.0, 9.5, 9.2), Divergence(3, 9.2, finite=True)),  # the first update that is as high as the start
        ((9.0, 8.0, 9.0), None),  # 9 is less than 1.2 times the lowest loss
        ((9.0, 7.5, 9.0), Divergence(3, 9.0, finite=True)),  # 9 is 1.2 times the lowest loss
        ((0.9, 0.8, 0.95), None),
        ((0.9, 0.5, 0.95), Divergence(3, 0.95, finite=True)),
        ((9.0, *[4.0] * 17, 20.0, 10.0), Divergence(19, 15.0, finite=True)),  # the mean of the last tenth
    ],
)
def test_a_loss_that_rises_to_the_first_one_diverged(
    losses: tuple[float, ...], divergence: Divergence | None, log: Path
) -> None:
    assert risen(log, *losses) == divergence


@pytest.mark.parametrize(
    ("reported", "divergence"),
    [
        ([], Divergence(2, 4.0, finite=False)),
        ([("5", "3.5")], Divergence(5, 3.5, finite=False)),
        ([("4", "3.9"), ("5", None)], Divergence(5, 4.0, finite=False)),
        ([("4", None), ("5", "3.5")], Divergence(5, 3.5, finite=False)),
    ],
)
def test_a_loss_that_is_not_finite_diverged(
    reported: list[tuple[str, str | None]], divergence: Divergence, log: Path
) -> None:
    """The last report of the plugin knows the exact update; it may not know the loss."""
    ends = [f" | INFO | diverged | {json.dumps({'num_updates': update, 'loss': loss})}\n" for update, loss in reported]
    text = "$ fairseq-train\n" + inner(1, 5) + inner(2, 4) + inner(3, float("nan")) + "".join(ends)
    log.write_text(text, encoding="utf-8")
    assert read_divergence(log) == divergence


def test_an_error_of_an_earlier_attempt_does_not_count(log: Path) -> None:
    error = "FloatingPointError: Minimum loss scale reached\n"
    attempts = ["$ fairseq-train\n", inner(1, 5), error, "\n$ fairseq-train\n", inner(1, 5), inner(2, 4)]
    log.write_text("".join(attempts), encoding="utf-8")
    assert read_divergence(log) is None
    log.write_text("".join([*attempts, error]), encoding="utf-8")
    assert read_divergence(log) == Divergence(2, 4.0, finite=False)


def test_a_training_without_a_log_did_not_diverge(tmp_path: Path) -> None:
    assert read_divergence(tmp_path / "none.log") is None
    assert read_parameters(tmp_path / "none.log") is None


@pytest.mark.parametrize(
    ("divergence", "text"),
    [
        (Divergence(7, 2.34567, finite=True), "update 7, loss 2.346 (it rose again)"),
        (Divergence(7, None, finite=False), "update 7, loss unknown (then not finite)"),
    ],
)
def test_a_divergence_says_when_and_how(divergence: Divergence, text: str) -> None:
    assert str(divergence) == text


def test_the_number_of_parameters_is_read(log: Path) -> None:
    log.write_text("INFO | num. shared model params: 65,012,345 (num. trained: 65,012,345)\n", encoding="utf-8")
    assert read_parameters(log) == 65_012_345
    log.write_text("nothing\n", encoding="utf-8")
    assert read_parameters(log) is None


def test_a_log_without_losses_has_no_speed(log: Path) -> None:
    log.write_text("", encoding="utf-8")
    empty: Points = []
    assert read_losses(log) == (empty, empty, None)
