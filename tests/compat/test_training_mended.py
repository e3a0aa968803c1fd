"""Test which trainings are refused before they begin, and what a training says that diverges.

tests/integration/test_resume.py holds the laws of trainings that are resumed.
"""

from __future__ import annotations

import logging
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq.logging import metrics
from fairseq.trainer import Trainer

from fairseq_posenc.compat import CheckpointError, training
from fairseq_posenc.core.refusal import InputError

# -- precisions that need a GPU


def precision(**flags: bool) -> Namespace:
    names = ("cpu", "amp", "fp16", "fp16_no_flatten_grads", "memory_efficient_fp16")
    return Namespace(common=Namespace(**{**dict.fromkeys(names, False), **flags}))


@pytest.mark.parametrize("cpu", [True, False])
def test_precisions_that_need_a_gpu_are_refused_without_one(cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="--amp has no effect without a GPU"):
        Trainer(precision(amp=True, cpu=cpu), None, None, None)
    with pytest.raises(InputError, match="Give --cpu --fp16-no-flatten-grads or --bf16"):
        Trainer(precision(fp16=True, cpu=cpu), None, None, None)
    with pytest.raises(AttributeError, match="_parameters"):  # the constructor itself begins
        Trainer(precision(fp16=True, fp16_no_flatten_grads=True), None, None, None)


# -- the checkpoint that a training continues from


def begin(folder: Path, suffix: str = "", **options: Any) -> str:
    """Begin a training in this folder as fairseq does, and return the checkpoint from which it would continue."""
    defaults = {"restore_file": "checkpoint_last.pt", "continue_once": None}
    defaults |= {"no_last_checkpoints": False, "no_save": False}
    cfg = Namespace(save_dir=str(folder), **{**defaults, **options})
    training._refuse_missing_checkpoint(cfg, Namespace(checkpoint_suffix=suffix))
    return str(cfg.restore_file)


@pytest.mark.parametrize("flag", ["--restore-file", "--continue-once"])
def test_a_file_to_continue_from_that_is_missing_is_refused(flag: str, tmp_path: Path) -> None:
    """fairseq itself trains from zero."""
    path = tmp_path / "missing.pt"
    options = {flag.removeprefix("--").replace("-", "_"): str(path)}
    with pytest.raises(CheckpointError, match=f"{flag} {path}: this file does not exist, so .* or leave {flag} out"):
        begin(tmp_path, **options)
    path.touch()
    begin(tmp_path, **options)
    shutil.move(path, tmp_path / "missing-shard0.pt")
    if flag == "--restore-file":  # fairseq adds the suffix to this file only
        begin(tmp_path, "-shard0", **options)


def test_a_lost_checkpoint_is_named_unless_there_is_only_one(tmp_path: Path) -> None:
    begin(tmp_path)  # the first start
    first, newest = tmp_path / "checkpoint1.pt", tmp_path / "checkpoint2.pt"
    first.write_text("1")
    assert begin(tmp_path) == str(first)  # killed before it became checkpoint_last.pt
    newest.write_text("2")
    with pytest.raises(
        CheckpointError, match=rf"would start from zero.* run: cp {newest} {tmp_path}/checkpoint_last.pt"
    ):
        begin(tmp_path)
    for options in ({"no_save": True}, {"no_last_checkpoints": True}):
        begin(tmp_path, **options)
    (tmp_path / "checkpoint_last.pt").touch()
    begin(tmp_path, continue_once="missing.pt")


# -- a loss that is not finite


def test_the_update_and_the_mean_loss_are_logged_and_named(caplog: pytest.LogCaptureFixture) -> None:
    def diverge(trainer: Any) -> None:
        """Fail as fairseq does if it cannot repeat the step to find the first NaN."""
        try:
            raise FloatingPointError("gradients are Nan/Inf")
        except FloatingPointError:
            raise RuntimeError("hooks") from None

    def fail(trainer: Any) -> None:
        raise RuntimeError("out of memory")

    trainer = Namespace(get_num_updates=lambda: 46)
    for losses, shown in (([], "null"), ([4.0, 6.0], "5.0")):
        caplog.clear()
        with metrics.aggregate("train_inner", new_root=True), caplog.at_level(logging.ERROR):
            metrics.reset_meters("train_inner")
            for loss in losses:
                metrics.log_scalar("loss", loss)
            with pytest.raises(training.DivergedError, match=r"diverged in update 47: gradients are Nan/Inf\. Give"):
                training._with_update(diverge, trainer)
        assert caplog.messages == ['{"num_updates": 47, "loss": %s}' % shown]  # noqa: UP031
    with pytest.raises(RuntimeError, match="out of memory"):
        training._with_update(fail, trainer)
