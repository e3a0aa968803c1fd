"""Test that a training whose loss is not finite says in which update it ended."""

from __future__ import annotations

import logging
import re
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.logging import metrics
from torch.multiprocessing import ProcessRaisedException

from fairseq_posenc.compat import CheckpointError, refusals
from fairseq_posenc.compat.divergence import DivergedError, _with_update
from fairseq_posenc.core.refusal import InputError


def trainer(folder: Path, **model: str) -> Any:
    cfg = SimpleNamespace(model=SimpleNamespace(**model), checkpoint=SimpleNamespace(save_dir=str(folder)))
    return SimpleNamespace(cfg=cfg, get_num_updates=lambda: 46)


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
    losses: list[float], shown: str, step: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with metrics.aggregate("train_inner", new_root=True), caplog.at_level(logging.ERROR):
        metrics.reset_meters("train_inner")
        for loss in losses:
            metrics.log_scalar("loss", loss)
        with pytest.raises(DivergedError):
            _with_update(step, trainer(tmp_path))
    assert caplog.messages == ['{"num_updates": 47, "loss": %s}' % shown]  # noqa: UP031


@pytest.mark.parametrize("step", [diverge, diverge_and_fail])
def test_one_line_names_the_update_the_encoding_and_the_last_good_checkpoint(
    step: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(refusals.DEBUG, raising=False)
    model = {"pos_enc": "shaw", "pos_enc_args": "clip=4", "pos_enc_decoder": "none"}
    named = "--pos-enc shaw --pos-enc-args clip=4 --pos-enc-decoder none diverged in update 47: gradients are Nan/Inf"
    with pytest.raises(SystemExit, match=rf"error: .*{named}\. No checkpoint had been saved"), refusals.in_one_line():
        _with_update(step, trainer(tmp_path, **model))
    torch.save({}, tmp_path / "checkpoint_last.pt")
    with pytest.raises(SystemExit) as end, refusals.in_one_line():
        _with_update(step, trainer(tmp_path))
    assert f"The last good checkpoint is {tmp_path}/checkpoint_last.pt." in str(end.value)
    assert len(str(end.value).splitlines()) == 1
    assert not isinstance(end.value.code, int)  # a text is printed, and the exit status is 1
    monkeypatch.setenv(refusals.DEBUG, "1")
    with pytest.raises(DivergedError), refusals.in_one_line():
        _with_update(step, trainer(tmp_path))


def test_another_error_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError, match="out of memory"):
        _with_update(fail, SimpleNamespace())
    assert caplog.messages == []


def test_a_step_without_errors_is_unchanged() -> None:
    assert _with_update(lambda trainer, step: step + 1, SimpleNamespace(), 1) == 2


def child_error(call: Any) -> ProcessRaisedException:
    """Return the error that torch.multiprocessing raises if a spawned process ends with the error of this call."""
    try:
        call()
    except Exception:  # noqa: BLE001
        text = f"\n\n-- Process 1 terminated with the following error:\n{traceback.format_exc()}"
    return ProcessRaisedException(text, 1, 4711)


@pytest.mark.parametrize("step", [diverge, diverge_and_fail])
def test_a_spawned_process_ends_with_the_same_line(step: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(refusals.DEBUG, raising=False)
    alone = trainer(tmp_path, pos_enc="shaw")
    with pytest.raises(SystemExit) as first, refusals.in_one_line():
        _with_update(step, alone)
    with pytest.raises(SystemExit) as second, refusals.in_one_line():
        raise child_error(lambda: _with_update(step, alone))
    assert str(first.value) == str(second.value)
    monkeypatch.setenv(refusals.DEBUG, "1")
    with pytest.raises(ProcessRaisedException, match="Traceback"), refusals.in_one_line():
        raise child_error(lambda: _with_update(step, alone))


def test_a_spawned_process_with_another_error_keeps_its_traceback() -> None:
    with pytest.raises(ProcessRaisedException, match="Traceback"), refusals.in_one_line():
        raise child_error(lambda: fail(None))
    with pytest.raises(ProcessRaisedException, match="no traceback"), refusals.in_one_line():
        raise ProcessRaisedException("no traceback", 1, 4711)


@pytest.mark.parametrize("source", [True, False])
def test_the_class_of_a_child_s_error_decides_and_not_its_source(source: bool) -> None:
    """Text without source lines is that of an installation without sources."""

    def text_of(error: Exception, cause: Exception | None = None) -> ProcessRaisedException:
        def call() -> None:
            raise error from cause

        text = str(child_error(call))
        return ProcessRaisedException(text if source else re.sub(r"\n    .+", "", text), 1, 4711)

    for refused in (
        CheckpointError("a.pt: it is damaged.\nCopy it again."),
        InputError("--lr 3"),
        FileNotFoundError(2, "f"),
    ):
        with pytest.raises(SystemExit, match=f"error: {re.escape(str(refused))}$"), refusals.in_one_line():
            raise text_of(refused, IndexError("list"))
    for fault in (ValueError("a"), TypeError("b"), KeyError("c")):
        with pytest.raises(ProcessRaisedException), refusals.in_one_line():
            raise text_of(fault, InputError("--lr 3"))
