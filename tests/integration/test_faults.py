"""Test that damaged, missing or foreign checkpoints, and losses that are not finite, end commands with one line."""

from __future__ import annotations

import logging
import os
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import fairseq_cli.train
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed
from fairseq.nan_detector import NanDetector

from fairseq_posenc.compat import CheckpointError, checkpoint_parts, refusals, resuming, safe_load

from . import support

SHAW = ["--pos-enc", "shaw", "--valid-subset", "valid"]


@pytest.fixture
def saved(trained: Path, tmp_path: Path) -> Path:
    """Return a copy of the checkpoints of two epochs."""
    return Path(shutil.copytree(trained, tmp_path / "saved"))


def damage(path: Path) -> None:
    """Flip a bit in a weight of a checkpoint."""
    content, weight = bytearray(path.read_bytes()), safe_load(path)["model"]["encoder.embed_tokens.weight"]
    content[content.index(weight.numpy().tobytes()) + 2] ^= 4
    path.write_bytes(content)


def resume(data: Path, folder: Path, *arguments: Any) -> support.Run:
    return support.train(data, *SHAW, "--max-epoch", 3, "--save-dir", folder, *arguments)


# -- damage


def test_training_does_not_resume_from_a_damaged_checkpoint(data: Path, saved: Path) -> None:
    last, other = saved / "checkpoint_last.pt", saved / "checkpoint1.pt"
    for path in saved.glob("*.pt"):
        if path != other:
            damage(path)
    with pytest.raises(CheckpointError, match=r"checkpoint_last\.pt: .*does not match its checksum") as error:
        resume(data, saved)
    assert str(error.value).endswith(f"cp {other} {last}")
    shutil.copy(other, last)  # the remedy that the error names
    assert resume(data, saved).trainer.get_num_updates() > 0


def test_training_does_not_start_from_zero_if_its_checkpoint_is_lost(data: Path, saved: Path, tmp_path: Path) -> None:
    (saved / "checkpoint_last.pt").unlink()
    (saved / "checkpoint_best.pt").unlink(missing_ok=True)
    damage(saved / "checkpoint2.pt")
    with pytest.raises(CheckpointError, match=r"would start from zero.* To continue from .*: cp .*checkpoint1\.pt "):
        resume(data, saved)
    assert resume(data, saved, "--no-last-checkpoints", "--max-update", 1).trainer.get_num_updates() == 1
    assert resume(data, tmp_path / "new", "--max-update", 1).trainer.get_num_updates() == 1


@pytest.mark.parametrize("state", ["damaged", "lost"])
def test_training_continues_from_the_previous_checkpoint_if_the_user_wants_this(
    data: Path, saved: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    """The newest undamaged checkpoint is restored like any other: the updates and the losses after it are the same."""
    monkeypatch.setenv(resuming.VARIABLE, "")  # the flag sets it; the end of the test restores it
    last, other = saved / "checkpoint_last.pt", saved / "checkpoint1.pt"
    expected = resume(data, saved.parent / "new", "--restore-file", other).losses
    damage(saved / "checkpoint2.pt")
    content = (saved / "checkpoint_best.pt").read_bytes()
    (saved / "checkpoint_best.pt").write_bytes(content[: len(content) // 2])
    last.write_bytes(b"")
    if state == "lost":
        last.unlink()
    with caplog.at_level("WARNING"):
        continued = resume(data, saved, "--restore-previous")
    assert continued.losses == expected
    problem = "does not exist" if state == "lost" else "is damaged"
    assert f"{last} {problem}, so training continues from {other}" in caplog.text
    assert continued.cfg.checkpoint.restore_file == "checkpoint_last.pt"


def test_training_never_starts_from_zero_beside_damaged_checkpoints(
    data: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(resuming.VARIABLE, "")
    for path in saved.glob("*.pt"):
        damage(path)
    with pytest.raises(CheckpointError, match=r"checkpoint_last\.pt: .*does not match its checksum"):
        resume(data, saved, "--restore-previous")
    (saved / "checkpoint_last.pt").unlink()
    for flags in ([], ["--restore-previous"]):
        with pytest.raises(CheckpointError, match=r"would start from zero.*all damaged: .*checkpoint1\.pt"):
            resume(data, saved, *flags)


def test_a_whole_checkpoint_is_restored_with_the_flag_too(
    data: Path, saved: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(resuming.VARIABLE, "")
    state = safe_load(saved / "checkpoint_last.pt")
    torch.save(state, saved / "checkpoint_last.pt", _use_new_zipfile_serialization=False)  # as old versions of fairseq
    updates = state["optimizer_history"][-1]["num_updates"]
    with caplog.at_level("WARNING"):
        assert resume(data, saved, "--restore-previous").trainer.get_num_updates() > updates
    assert "continues from" not in caplog.text
    refused = {**state, "extra_state": Namespace(run=os.system)}
    torch.save(refused, saved / "checkpoint_last.pt")
    with pytest.raises(CheckpointError, match="the file is refused"):
        resume(data, saved, "--restore-previous")


# -- files of other kinds


def without(state: dict[str, Any], *parts: str) -> dict[str, Any]:
    return {part: value for part, value in state.items() if part not in parts}


OTHERS: dict[str, tuple[Any, str]] = {
    "a list": (lambda state: [state], "an object of type list"),
    "a number": (lambda state: 3, "an object of type int"),
    "nothing": (lambda state: None, "nothing instead"),
    "a tensor": (lambda state: torch.ones(2), "an object of type Tensor"),
    "no parts": (lambda state: {}, "no weights"),
    "the weights alone": (lambda state: state["model"], "no weights"),
    "weights in a list": (lambda state: {**state, "model": [1]}, "no weights"),
    "numbers as weights": (lambda state: {**state, "model": {"w": 1}}, "no weights"),
    "no history": (lambda state: without(state, "optimizer_history"), "optimizer_history"),
    "an empty history": (lambda state: {**state, "optimizer_history": []}, "optimizer_history"),
    "a history of text": (lambda state: {**state, "optimizer_history": ["x"]}, "optimizer_history"),
    "no extra state": (lambda state: without(state, "extra_state"), "extra_state"),
    "a wrong position": (lambda state: {**state, "extra_state": {"train_iterator": 3}}, "extra_state"),
    "a wrong optimizer": (lambda state: {**state, "last_optimizer_state": [1]}, "last_optimizer_state"),
    "no settings": (lambda state: without(state, "cfg", "args"), "no settings"),
}


@pytest.mark.parametrize(("change", "problem"), OTHERS.values(), ids=OTHERS)
def test_a_file_that_is_no_checkpoint_is_named_with_what_it_lacks(
    trained: Path, data: Path, tmp_path: Path, change: Any, problem: str
) -> None:
    path = tmp_path / "other.pt"
    torch.save(change(safe_load(trained / "checkpoint_last.pt")), path)
    with pytest.raises(CheckpointError, match=rf"{path}: this is not a checkpoint of fairseq-train.*{problem}"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))


def test_training_names_a_file_that_is_no_checkpoint(trained: Path, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.pt"
    state = safe_load(trained / "checkpoint_last.pt")
    torch.save(without(state, "optimizer_history"), path)
    with pytest.raises(CheckpointError, match=rf"{path}: this is not a checkpoint"):
        resume(data, tmp_path / "new", "--restore-file", path)
    torch.save({**state, "last_optimizer_state": {"param_groups": []}}, path)
    with pytest.raises(CheckpointError, match=rf"{path}: the state of the training cannot be restored .*--finetune"):
        resume(data, tmp_path / "new", "--restore-file", path)


def test_the_oldest_checkpoints_of_fairseq_have_other_parts() -> None:
    old = {"model": {"w": torch.ones(1)}, "args": Namespace(), "best_loss": 1.0, "optimizer": {}}
    assert checkpoint_parts.problem({**old, "epoch": 1, "batch_offset": 0, "val_loss": 1.0}) is None


# -- losses that are not finite


def test_a_loss_that_is_not_finite_ends_training_with_one_line(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(refusals.DEBUG, raising=False)
    words = ["--pos-enc", "shaw", "--lr", "1e30", "--save-dir", tmp_path, "--save-interval-updates", "1"]
    cfg = support.parse(support.command_line(data, *words))
    with caplog.at_level(logging.WARNING), pytest.raises(SystemExit) as end:
        distributed.call_main(cfg, fairseq_cli.train.main)
    line = str(end.value)
    assert "The training with --pos-enc shaw diverged in update 2: gradients are Nan/Inf" in line
    assert f"The last good checkpoint is {tmp_path}/checkpoint_last.pt" in line
    assert len(line.splitlines()) == 1
    assert any("detected in output of" in message for message in caplog.messages)  # fairseq names the module


def test_the_detector_of_fairseq_fails_at_an_encoder_without_the_fix(data: Path) -> None:
    model, task = support.built(data, "--pos-enc", "shaw")
    (sample, *_) = support.batches(task)
    for mended in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not mended:
                patch.setattr(NanDetector, "add_hooks", NanDetector.add_hooks.__wrapped__)
            with NanDetector(model):
                if mended:
                    model(**sample["net_input"])[0].sum().backward()
                else:
                    with pytest.raises(StopIteration):
                        model(**sample["net_input"])
