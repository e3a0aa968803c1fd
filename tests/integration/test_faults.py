"""Test that a lost checkpoint and losses that are not finite end a training with one line.

Damaged checkpoints are noticed in tests/compat/test_checkpoints.py, wherever fairseq loads one (test_literals.py).
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import fairseq_cli.train
import pytest
from fairseq.distributed import utils as distributed

from fairseq_posenc.compat import CheckpointError, commands, safe_load

from . import support

SHAW = ["--pos-enc", "shaw", "--valid-subset", "valid"]


def resume(data: Path, folder: Path, *arguments: Any) -> support.Run:
    return support.train(data, *SHAW, "--max-epoch", 3, "--save-dir", folder, *arguments)


def test_training_does_not_start_from_zero_if_its_checkpoint_is_lost(data: Path, trained: Path, tmp_path: Path) -> None:
    saved = Path(shutil.copytree(trained, tmp_path / "saved"))
    last, newest = saved / "checkpoint_last.pt", saved / "checkpoint2.pt"
    last.unlink()
    (saved / "checkpoint_best.pt").unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match=r"would start from zero") as error:
        resume(data, saved)
    assert str(error.value).endswith(f"cp {newest} {last}")
    assert resume(data, saved, "--no-last-checkpoints", "--max-update", 1).trainer.get_num_updates() == 1
    shutil.copy(newest, last)  # the remedy that the error names
    updates = safe_load(newest)["optimizer_history"][-1]["num_updates"]
    assert resume(data, saved).trainer.get_num_updates() > updates


# -- losses that are not finite


def test_a_loss_that_is_not_finite_ends_training_with_one_line(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(commands.DEBUG, raising=False)
    words = ["--pos-enc", "shaw", "--lr", "1e30", "--save-dir", tmp_path, "--save-interval-updates", "1"]
    cfg = support.parse(support.command_line(data, *words))
    with caplog.at_level(logging.WARNING), pytest.raises(SystemExit) as end:
        distributed.call_main(cfg, fairseq_cli.train.main)
    line = str(end.value)
    assert "The training diverged in update 2: gradients are Nan/Inf" in line
    assert len(line.splitlines()) == 1
    assert any("detected in output of" in message for message in caplog.messages)  # fairseq names the module
