"""Test that a resumed training equals an uninterrupted one, and that a finished training does not change."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from fairseq.data import FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask

from . import lm, masked_lm, support

SHAW = ["--pos-enc", "shaw", "--max-tokens", 300]  # 6 batches per epoch


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
    ours, theirs = ((run.model.state_dict(), run.trainer.optimizer.state_dict()["state"]) for run in (resumed, whole))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


@pytest.fixture(scope="module")
def folders(data: Path, text: Path, lines: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return corpora by name; epochs read the folders of `shards` and `turns` in turn, which differ in length."""
    other = Path(shutil.copytree(lines, tmp_path_factory.mktemp("corpora") / "lines"))
    for end in ("bin", "idx"):
        shutil.copy(lines / f"test.{end}", other / f"train.{end}")
    shards = f"{text}:{masked_lm.write_corpus(other / 'text', seed=1)}"
    return {"pairs": f"{data}", "text": f"{text}", "shards": shards, "lines": f"{lines}", "turns": f"{lines}:{other}"}


DROPOUT = ["--dropout", 0.1, "--attention-dropout", 0.1]
TRANSLATION = [*SHAW, *DROPOUT]
WORKERS = ["--num-workers", 2, "--data-buffer-size", 2]
SPARING = ["--pos-enc", "m2", "--weight-decay", 0.5, "--pos-enc-no-decay"]
MASKED = ["--pos-enc", "t5", "--batch-size", 32]  # 2 batches per epoch
WORDS = ["--mask-whole-words", "--subwords", "sentencepiece", "--batch-size", 8, "--pos-enc", "shaw", *DROPOUT]
XL = ["--pos-enc", "xl", *DROPOUT]
LAMB = ["--optimizer", "posenc_lamb", "--lr", 0.02]
#: By case: the kind of model, the corpus, options, where the training stops, and its last update.
RESUMED: dict[str, tuple[Any, str, list[Any], tuple[int, ...], int]] = {
    "in three epochs, with workers": (support, "pairs", [*TRANSLATION, *WORKERS], (3, 6, 14), 16),
    "shuffled from epoch 2 on": (support, "pairs", [*TRANSLATION, "--curriculum", 1, "--update-freq", 2], (4,), 6),
    "random positions without decay": (support, "pairs", [*SHAW, *SPARING, "--pos-enc-random", 64], (3,), 5),
    "masks of fairseq's task": (masked_lm, "text", [*MASKED, "--task", "masked_lm"], (3,), 6),
    "masked words of the second shard": (masked_lm, "shards", WORDS, (8,), 11),
    "LAMB": (masked_lm, "text", [*MASKED, *LAMB], (1,), 2),
    "memory and accumulation": (lm, "lines", [*XL, "--update-freq", 2], (3,), 6),
    "folders in turn": (lm, "turns", XL, (3, 14), 16),
    "a seed of indices": (support, "pairs", [*TRANSLATION, "--update-ordered-indices-seed"], (8,), 16),
    "iterators of each epoch": (support, "pairs", [*TRANSLATION, "--update-epoch-batch-itr", "True"], (8,), 16),
    "workers and shards": (masked_lm, "shards", [*WORDS, "--num-workers", 1, "--data-buffer-size", 3], (8,), 13),
}


@pytest.mark.parametrize("case", RESUMED)
def test_a_resumed_training_is_undisturbed(case: str, folders: dict[str, str], tmp_path: Path) -> None:
    """This includes random numbers, masks of the epoch, and batches within an epoch."""
    module, corpus, options, stops, last = RESUMED[case]
    train = functools.partial(module.train, folders[corpus], *options, "--no-epoch-checkpoints")
    assert_equal(*interrupted(train, tmp_path, last, *stops))


def test_masks_differ_between_epochs_with_workers_too(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In fairseq itself, a worker keeps the data set and the masks of the first epoch."""

    def losses(workers: int) -> list[float]:
        options = [*MASKED, "--max-update", 4, "--num-workers", workers, "--curriculum", 9]
        return masked_lm.train(text, *options).losses

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


ENDS = [["--max-update", 1], ["--max-epoch", 1], ["--stop-time-hours", 1e-9]]


@pytest.mark.parametrize("options", ENDS, ids=str)
def test_a_finished_training_makes_no_further_update(data: Path, tmp_path: Path, options: list[Any]) -> None:
    train = support.train(data, *SHAW, *options, "--save-dir", tmp_path)
    updates, written = train.trainer.get_num_updates(), (tmp_path / "checkpoint_last.pt").read_bytes()
    again = support.train(data, *SHAW, *options, "--save-dir", tmp_path)
    assert (updates, again.losses) == (len(train.losses), [])
    assert again.trainer.get_num_updates() == updates
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == written


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
