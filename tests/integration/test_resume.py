"""Test that a training that stops or is killed ends like an undisturbed one, and that a finished one stays as it is."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from fairseq.data import FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask

from fairseq_posenc.compat import CheckpointError, safe_load

from . import lm, masked_lm, support

SHAW = ["--pos-enc", "shaw", "--max-tokens", 300]  # 6 batches per epoch
RESUMED = support.table("trainings.toml", "resumed")


def interrupted(train: Callable[..., Any], folder: Path, last: int, *stops: int) -> tuple[support.Run, support.Run]:
    """Run an undisturbed training of `last` updates, and one that stops and resumes after each of `stops`."""
    whole = train("--max-update", last, "--save-dir", folder / "whole")
    for updates in (*stops, last):
        resumed = train("--max-update", updates, "--save-dir", folder / "resumed")
    return whole, resumed


def assert_equal(whole: support.Run, resumed: support.Run) -> None:
    """Check that the last losses, all parameters and the optimizer are equal, bit by bit."""
    assert 0 < len(resumed.losses) < len(whole.losses)
    assert resumed.losses == whole.losses[-len(resumed.losses) :]
    ours, theirs = ((run.model.state_dict(), run.optimizer.state_dict()["state"]) for run in (resumed, whole))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


@pytest.fixture(scope="module")
def places(data: Path, text: Path, lines: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, str]]:
    """Return by corpus the module that trains with it, and its folders; folders read in turn differ in length."""
    other = Path(shutil.copytree(lines, tmp_path_factory.mktemp("corpora") / "lines"))
    for end in ("bin", "idx"):
        shutil.copy(lines / f"test.{end}", other / f"train.{end}")
    shards = f"{text}:{masked_lm.write_corpus(other / 'text', seed=1)}"
    masked = {"text": (masked_lm, f"{text}"), "shards": (masked_lm, shards)}
    return {"pairs": (support, f"{data}"), **masked, "lines": (lm, f"{lines}"), "turns": (lm, f"{lines}:{other}")}


@pytest.mark.parametrize("case", RESUMED)
def test_a_resumed_training_is_undisturbed(case: str, places: dict[str, tuple[Any, str]], tmp_path: Path) -> None:
    """This includes random numbers, masks of the epoch, and batches within an epoch."""
    resumed = RESUMED[case]
    module, folders = places[resumed["corpus"]]
    train = functools.partial(module.train, folders, *resumed["options"].split(), "--no-epoch-checkpoints")
    assert_equal(*interrupted(train, tmp_path, resumed["last"], *resumed["stops"]))


def test_masks_differ_between_epochs_with_workers_too(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In fairseq itself, a worker keeps the data set and the masks of the first epoch."""

    def losses(workers: int) -> list[float]:
        options = ["--pos-enc", "t5", "--batch-size", 32, "--max-update", 4, "--curriculum", 9]  # 2 batches per epoch
        return masked_lm.train(text, *options, "--num-workers", workers).losses

    in_this_process = losses(0)
    assert losses(1) == in_this_process
    for name in ("next_epoch_itr", "__init__"):
        monkeypatch.setattr(EpochBatchIterator, name, getattr(EpochBatchIterator, name).__wrapped__)
    as_shipped = losses(1)
    assert as_shipped[:2] == in_this_process[:2]
    assert as_shipped[2:] != in_this_process[2:]


def test_a_resumed_epoch_keeps_its_batches_on_their_gpus() -> None:
    """--fix-batches-to-gpus, with a data set that reads ahead: fairseq forgets the flag when it resumes."""

    batches, options = [[number] for number in range(12)], {"seed": 1, "num_shards": 2, "shard_id": 1, "epoch": 2}
    data = mock.Mock(FairseqDataset, supports_prefetch=True)
    whole, resumed = (EpochBatchIterator(data, list, batches, **options) for _ in range(2))
    whole._fix_batches = resumed._fix_batches = True
    whole.next_epoch_itr(fix_batches_to_gpus=True)
    resumed.load_state_dict({"version": 2, "epoch": 2, "iterations_in_epoch": 2, "shuffle": True})
    assert resumed.epoch_batch_sampler.batches == whole.epoch_batch_sampler.batches[2:]
    assert len(resumed.epoch_batch_sampler.batches) == 4


def test_the_shipped_training_is_another_one(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this plugin's fix, training does not resume exactly in epoch 2."""
    for owner, name in ((FairseqTask, "get_batch_iterator"), (EpochBatchIterator, "next_epoch_itr")):
        monkeypatch.setattr(owner, name, getattr(owner, name).__wrapped__)
    whole, resumed = interrupted(lambda *more: support.train(data, *SHAW, *more), tmp_path, 9, 8)
    assert resumed.losses != whole.losses[-1:]


# -- the end


@pytest.mark.parametrize("end", ["--max-update 1", "--max-epoch 1", "--stop-time-hours 1e-9"])
def test_a_finished_training_makes_no_further_update(data: Path, tmp_path: Path, end: str) -> None:
    train = support.train(data, *SHAW, *end.split(), "--save-dir", tmp_path)
    updates, written = train.get_num_updates(), (tmp_path / "checkpoint_last.pt").read_bytes()
    again = support.train(data, *SHAW, *end.split(), "--save-dir", tmp_path)
    assert (updates, again.losses) == (len(train.losses), [])
    assert again.get_num_updates() == updates
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == written


def test_training_does_not_start_from_zero_if_its_checkpoint_is_lost(data: Path, trained: Path, tmp_path: Path) -> None:
    saved = Path(shutil.copytree(trained, tmp_path / "saved"))
    for name in ("last", "best"):
        (saved / f"checkpoint_{name}.pt").unlink()
    with pytest.raises(CheckpointError, match=r"would start from zero.*checkpoint2\.pt"):
        support.train(data, "--pos-enc", "shaw", "--max-epoch", 3, "--save-dir", saved)


def test_patience_counts_on_after_an_interruption(data: Path, tmp_path: Path) -> None:
    """The learning rate is so low that no validation brings a better score after the first: 1 + 2 epochs.

    With --finetune-from-model, the patience of a new training is not used up. fairseq stores the best score in a
    function attribute, which all trainings of a process share.
    """
    still = ["--pos-enc", "shaw", "--lr", 1e-30, "--valid-subset", "valid", "--max-tokens", 3000]  # 1 batch per epoch
    options = [*still, "--patience", 2, "--save-dir", tmp_path / "one"]
    assert len(support.train(data, *options, "--max-epoch", 2).losses) == 2
    assert len(support.train(data, *options).losses) == 1
    assert support.train(data, *options).losses == []
    assert len(support.train(data, *options, "--patience", 3).losses) == 1
    source = ["--finetune-from-model", tmp_path / "one" / "checkpoint_last.pt"]
    for more in (source, []):
        other = [*still, "--patience", 1, "--save-dir", tmp_path / f"other{len(more)}"]
        assert len(support.train(data, *other, *more).losses) == 2


# -- trainings in forks that kill themselves at an event: the start of an update, or the opening or renaming of a file
# -- that becomes a checkpoint

#: Two epochs of six updates each, with a checkpoint after every second update.
TRAINING = ["--pos-enc", "shaw", "--max-epoch", 2, "--valid-subset", "valid", "--save-interval-updates", 2]
TRAINING += ["--keep-interval-updates", 2, "--max-tokens", 300]
#: The first checkpoint is complete before this event, and its copy checkpoint_last.pt is not.
BEFORE_THE_FIRST_COPY = 5
EVENTS = 48


def train(data: Path, folder: Path) -> None:
    support.train(data, *TRAINING, "--save-dir", folder)


def killed(data: Path, folder: Path, event: int) -> bool:
    """Run the training, or continue it, in a fork that kills itself at this event. Return whether the event came."""

    def run() -> None:
        kill_at(event)
        train(data, folder)

    child = support.forked(run)
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL), "the training failed before it was killed"
    return child.exitcode != 0


def kill_at(event: int) -> None:
    """Let this process kill itself at an event."""
    events, train_step = itertools.count(1), support.Run.train_step

    def happen() -> None:
        if next(events) == event:
            os.kill(os.getpid(), signal.SIGKILL)

    def step(*arguments: Any) -> Any:
        happen()
        return train_step(*arguments)

    def audit(name: str, arguments: tuple[Any, ...]) -> None:
        if name in ("open", "os.rename") and str(arguments[0]).endswith(".partial"):
            happen()

    support.Run.train_step = step  # type: ignore[method-assign]
    sys.addaudithook(audit)


def starts(folder: Path) -> list[int]:
    """Return the updates of the last checkpoint, and before them those of each checkpoint that a start continued from.

    fairseq keeps the history of starts in each checkpoint, and a start from zero loses it.
    """
    paths = [folder / "checkpoint_last.pt", *sorted(folder.glob("checkpoint*.pt"))]
    last: dict[str, Any] = next((safe_load(path) for path in paths if path.exists()), {})
    return [entry["num_updates"] for entry in last.get("optimizer_history", [])]


def state(folder: Path) -> dict[str, Any]:
    """Return what a training leaves in its last checkpoint, without the times that it took and the number of starts."""
    checkpoint = safe_load(folder / "checkpoint_last.pt")
    return {
        "model": checkpoint["model"],
        "optimizer": checkpoint["last_optimizer_state"],
        "updates": checkpoint["optimizer_history"][-1]["num_updates"],  # `starts` returns the entries before it
        "position": checkpoint["extra_state"]["train_iterator"],
    }


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the state that the training ends in."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train(data, folder)
    return state(folder)


def assert_continued(before: list[int], after: list[int]) -> None:
    """Check that a training continued from the checkpoint that was there."""
    assert after[:-1] == before == sorted(before)


def finish(data: Path, folder: Path, undisturbed: dict[str, Any]) -> None:
    """Start the killed training again, and check that it continues and ends like the undisturbed one."""
    before = starts(folder)
    train(data, folder)
    if before[-1:] != [undisturbed["updates"]]:  # otherwise the training had ended, and makes no further start
        assert_continued(before, starts(folder))
    torch.testing.assert_close(state(folder), undisturbed, rtol=0, atol=0)
    assert not list(folder.glob("*.partial"))


def test_a_training_that_is_killed_twice_ends_like_the_undisturbed_one(
    data: Path, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    assert killed(data, tmp_path, BEFORE_THE_FIRST_COPY)
    assert not (tmp_path / "checkpoint_last.pt").exists()
    assert starts(tmp_path) == [2]
    assert killed(data, tmp_path, 16)
    assert list(tmp_path.glob("*.partial")), "this event is within the writing of a checkpoint"
    assert_continued([2], starts(tmp_path))
    finish(data, tmp_path, undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("event", range(1, EVENTS + 1))
def test_a_training_may_be_killed_at_every_event(
    data: Path, tmp_path: Path, undisturbed: dict[str, Any], event: int
) -> None:
    assert killed(data, tmp_path, event)
    finish(data, tmp_path, undisturbed)


def test_a_training_that_begins_anew_is_caught(data: Path, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """It has lost its checkpoints, and ends in the same state."""
    folder = tmp_path / "saved"
    assert killed(data, folder, BEFORE_THE_FIRST_COPY)
    before = starts(folder)
    shutil.rmtree(folder)
    train(data, folder)
    torch.testing.assert_close(state(folder), undisturbed, rtol=0, atol=0)
    with pytest.raises(AssertionError):
        assert_continued(before, starts(folder))
