"""Test what is read from the log of a training: losses, divergence and the number of parameters."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.core.training_log import (
    Divergence,
    read_divergence,
    read_losses,
    read_parameters,
    read_validations,
)

TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("training_log.toml").read_text("utf-8"))
COMMAND = "$ fairseq-train\n"


def line(kind: str, **facts: Any) -> str:
    return f"2026-01-01 00:00:00 | INFO | {kind} | {json.dumps(facts)}\n"


def inner(update: int, loss: float, speed: float = 100) -> str:
    return line("train_inner", num_updates=str(update), loss=str(loss), wps=str(speed))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


def test_only_the_last_loss_of_an_update_counts(log: Path) -> None:
    valid = [line("valid", valid_num_updates="2", valid_loss=loss, valid_bleu="4") for loss in ("7", "6.5")]
    cut = line("train_inner", num_updates="3")[:-9] + "\n"
    log.write_text(inner(2, 5, 10) + cut + inner(1, 6, 30) + inner(2, 4, 20) + "".join(valid), encoding="utf-8")
    assert read_losses(log) == ([(1, 6), (2, 4)], [(2, 6.5)], 20)
    assert read_validations(log, "valid_bleu") == [(2, 4)]
    assert read_validations(log, "valid_chrf") == []


@pytest.mark.parametrize("row", TABLE["risen"])
def test_a_loss_that_rises_to_the_first_one_diverged(row: dict[str, Any], log: Path) -> None:
    log.write_text("".join(inner(update, loss) for update, loss in enumerate(row["losses"], 1)), encoding="utf-8")
    expected = Divergence(row["update"], row["loss"], finite=True) if "update" in row else None
    assert read_divergence(log) == expected


@pytest.mark.parametrize("row", TABLE["not_finite"])
def test_a_loss_that_is_not_finite_diverged(row: dict[str, Any], log: Path) -> None:
    reports = [line("diverged", **{"loss": None, **report}) for report in row["reports"]]
    log.write_text(COMMAND + inner(1, 5) + inner(2, 4) + inner(3, float("nan")) + "".join(reports), encoding="utf-8")
    assert read_divergence(log) == Divergence(row["update"], row["loss"], finite=False)


def test_an_error_of_an_earlier_attempt_does_not_count(log: Path) -> None:
    error = "FloatingPointError: Minimum loss scale reached\n"
    attempts = COMMAND + inner(1, 5) + error + "\n" + COMMAND + inner(1, 5) + inner(2, 4)
    log.write_text(attempts, encoding="utf-8")
    assert read_divergence(log) is None
    log.write_text(attempts + error, encoding="utf-8")
    assert read_divergence(log) == Divergence(2, 4.0, finite=False)
    log.write_text(attempts + "RuntimeError: out of memory\n", encoding="utf-8")
    assert read_divergence(log) is None
    log.write_text(COMMAND + error, encoding="utf-8")
    assert read_divergence(log) == Divergence(0, None, finite=False)


def test_a_divergence_says_when_and_how() -> None:
    assert str(Divergence(7, 2.34567, finite=True)) == "update 7, loss 2.346 (it rose again)"
    assert str(Divergence(7, None, finite=False)) == "update 7, loss unknown (then not finite)"


def test_the_number_of_parameters_is_read(log: Path) -> None:
    log.write_text("INFO | num. shared model params: 65,012,345 (num. trained: 65,012,345)\n", encoding="utf-8")
    assert read_parameters(log) == 65_012_345


def test_a_log_that_says_nothing_and_a_training_without_a_log_give_nothing(log: Path) -> None:
    assert read_divergence(log) is read_parameters(log) is None
    log.write_text("nothing\n", encoding="utf-8")
    assert read_divergence(log) is read_parameters(log) is None
    assert read_losses(log) == ([], [], None)
