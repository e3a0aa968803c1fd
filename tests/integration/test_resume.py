"""Test that a resumed training equals an uninterrupted one, and that a finished training does not change."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data import FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask

from . import lm, masked_lm, ranks, support
from .ranks import assert_same

SHAW = ["--pos-enc", "shaw", "--max-tokens", 300]  # 6 batches per epoch
LINES = "--task language_modeling --sample-break-mode eos --tokens-per-sample 24".split()

Train = Callable[..., support.Run]


def interrupted(train: Train, folder: Path, last: int, *stops: int) -> tuple[support.Run, support.Run]:
    """Run an undisturbed training of `last` updates, and one that stops and resumes after each of `stops`."""
    whole = train("--max-update", last, "--save-dir", folder / "whole")
    for updates in (*stops, last):
        resumed = train("--max-update", updates, "--save-dir", folder / "resumed")
    return whole, resumed


def assert_equal(whole: support.Run, resumed: support.Run) -> None:
    """Check that the last losses and all parameters are equal, bit by bit."""
    assert 0 < len(resumed.losses) < len(whole.losses)
    assert resumed.losses == whole.losses[-len(resumed.losses) :]
    assert_same(resumed.model.state_dict(), whole.model.state_dict(), rtol=0, atol=0)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_lm.write_corpus(tmp_path_factory.mktemp("masked-lm") / "data-bin")


@pytest.mark.parametrize(
    ("stops", "options"),
    [
        ((3, 9, 14), []),  # in three epochs
        ((8,), ["--num-workers", 2, "--data-buffer-size", 2]),
        ((4,), ["--update-freq", 2]),
        ((9,), ["--curriculum", 1]),  # shuffled from epoch 2 on
        pytest.param((6,), [], marks=pytest.mark.long),  # after epoch 1
        pytest.param((14,), ["--curriculum", 9], marks=pytest.mark.long),  # no epoch is shuffled
        pytest.param((8,), ["--update-ordered-indices-seed"], marks=pytest.mark.long),
        pytest.param((8,), ["--update-epoch-batch-itr", "True"], marks=pytest.mark.long),
    ],
    ids=str,
)
def test_resumed_translation_is_undisturbed(
    data: Path, tmp_path: Path, stops: tuple[int, ...], options: list[Any]
) -> None:
    def train(*more: Any) -> support.Run:
        return support.train(data, *SHAW, "--dropout", 0.1, *options, *more)

    assert_equal(*interrupted(train, tmp_path, 16, *stops))


MASKED = ["--pos-enc", "t5", "--batch-size", 32]  # 2 batches per epoch


@pytest.mark.parametrize(
    ("task", "workers"), [(masked_lm.TASK, 0), (masked_lm.STOCK_TASK, 2)], ids=["posenc_masked_lm", "masked_lm"]
)
def test_resumed_masked_language_models_are_undisturbed(
    text: Path, tmp_path: Path, task: list[str], workers: int
) -> None:
    """Masks depend on the epoch, which must reach the worker processes as well."""

    def train(*more: Any) -> support.Run:
        return masked_lm.train(text, *MASKED, "--num-workers", workers, *more, task=task)

    assert_equal(*interrupted(train, tmp_path, 6, 3))


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


@pytest.mark.parametrize("task", [LINES, lm.TASK], ids=["language_modeling", "posenc_lm_memory"])
def test_resumed_language_models_are_undisturbed(tmp_path: Path, task: list[str]) -> None:
    corpus = lm.write_corpus(tmp_path / "data-bin")

    def train(*more: Any) -> support.Run:
        return lm.train(corpus, "--pos-enc", "alibi", "--batch-size", 16, *more, task=task)  # 4 batches per epoch

    assert_equal(*interrupted(train, tmp_path, 8, 6))


def test_a_resumed_epoch_keeps_its_batches_on_their_gpus() -> None:
    """--fix-batches-to-gpus, with a data set that reads ahead: fairseq forgets the flag when it resumes."""

    class Prefetching(FairseqDataset):
        supports_prefetch = True

        def prefetch(self, indices: Any) -> None:
            """Read nothing."""

    def iterator() -> Any:
        batches = [[number] for number in range(12)]
        epochs = EpochBatchIterator(Prefetching(), list, batches, seed=1, num_shards=2, shard_id=1, epoch=2)
        epochs._fix_batches = True
        return epochs

    whole, resumed = iterator(), iterator()
    whole.next_epoch_itr(fix_batches_to_gpus=True)
    resumed.load_state_dict({"version": 2, "epoch": 2, "iterations_in_epoch": 2, "shuffle": True})
    assert resumed.epoch_batch_sampler.batches == whole.epoch_batch_sampler.batches[2:]
    assert len(resumed.epoch_batch_sampler.batches) == 4


def test_two_resumed_processes_are_undisturbed(data: Path, tmp_path: Path) -> None:
    """Training stops in epoch 2."""

    def train(updates: int, folder: Path) -> list[dict[str, Any]]:
        save = ["--save-interval-updates", 5, "--save-dir", folder]
        return ranks.two_processes(folder, support.command_line(data, *SHAW, "--max-update", updates, *save))

    whole = train(7, tmp_path / "whole")
    (tmp_path / "resumed").mkdir()
    shutil.copy(tmp_path / "whole" / "checkpoint_2_5.pt", tmp_path / "resumed" / "checkpoint_last.pt")
    resumed = train(7, tmp_path / "resumed")
    for ours, theirs in zip(resumed, whole, strict=True):
        assert ours["losses"] == theirs["losses"][5:]
        assert_same(ours["model"], theirs["model"], rtol=0, atol=0)


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use fairseq's batches without this plugin's fix."""
    monkeypatch.setattr(FairseqTask, "get_batch_iterator", FairseqTask.get_batch_iterator.__wrapped__)
    monkeypatch.setattr(EpochBatchIterator, "next_epoch_itr", EpochBatchIterator.next_epoch_itr.__wrapped__)
    return


@pytest.mark.usefixtures("shipped")
def test_the_shipped_training_is_another_one(data: Path, tmp_path: Path) -> None:
    """Without this plugin's fix, training resumes exactly in epoch 1, but not in epoch 2."""

    def train(*more: Any) -> support.Run:
        return support.train(data, *SHAW, *more)

    assert_equal(*interrupted(train, tmp_path / "first", 10, 3))
    whole, resumed = interrupted(train, tmp_path / "second", 10, 8)
    assert resumed.losses != whole.losses[-len(resumed.losses) :]


# -- the end


def state(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = load_checkpoint_to_cpu(str(folder / "checkpoint_last.pt"))
    return loaded


@pytest.mark.parametrize("options", [["--max-update", 4], ["--max-update", 6], ["--max-epoch", 1]], ids=str)
def test_a_finished_training_makes_no_further_update(data: Path, tmp_path: Path, options: list[Any]) -> None:
    train = support.train(data, *SHAW, *options, "--save-dir", tmp_path)
    updates, written = train.trainer.get_num_updates(), (tmp_path / "checkpoint_last.pt").read_bytes()
    again = support.train(data, *SHAW, *options, "--save-dir", tmp_path)
    assert again.losses == []
    assert again.trainer.get_num_updates() == updates
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == written


def test_it_is_finished_as_a_process_too(data: Path, tmp_path: Path) -> None:
    """With `python -m fairseq_cli.train`, the module is `__main__`."""
    words = support.command_line(data, *SHAW, "--max-update", 2, "--save-dir", tmp_path)
    support.trained(words)
    done = support.run([*support.script("train"), *words], package=False, forked=True)
    assert "training has already finished: it made 2 updates, and --max-update is 2" in done.stdout + done.stderr
    assert state(tmp_path)["optimizer_history"][-1]["num_updates"] == 2


def test_a_training_out_of_time_is_finished(data: Path, tmp_path: Path) -> None:
    options = [*SHAW, "--stop-time-hours", 1e-9, "--save-dir", tmp_path]
    assert len(support.train(data, *options).losses) == 1
    assert support.train(data, *options).losses == []


def test_patience_counts_on_after_an_interruption(data: Path, tmp_path: Path) -> None:
    """The learning rate is so low that no validation brings a better score after the first: 1 + 2 epochs."""
    options = [*SHAW, "--lr", 1e-30, "--patience", 2, "--valid-subset", "valid", "--save-dir", tmp_path]
    assert len(support.train(data, *options, "--max-epoch", 2).losses) == 12
    assert state(tmp_path)["extra_state"]["early_stop"]["num_runs"] == 1
    assert len(support.train(data, *options).losses) == 6
    assert support.train(data, *options).losses == []
    assert len(support.train(data, *options, "--patience", 3).losses) == 6


def test_a_training_that_starts_from_a_finished_one_begins(data: Path, tmp_path: Path) -> None:
    """With --finetune-from-model, neither the patience nor the time of the new training is used up."""
    options = [*SHAW, "--lr", 1e-30, "--patience", 1, "--valid-subset", "valid"]
    support.train(data, *options, "--save-dir", tmp_path / "one")
    source = ["--finetune-from-model", tmp_path / "one" / "checkpoint_last.pt"]
    assert len(support.train(data, *options, *source, "--save-dir", tmp_path / "other").losses) == 12


def test_one_training_does_not_count_for_the_next(data: Path, tmp_path: Path) -> None:
    """fairseq stores the best score in a function attribute, which all trainings of a process share."""
    options = [*SHAW, "--lr", 1e-30, "--patience", 1, "--valid-subset", "valid"]
    for folder in ("one", "other"):
        assert len(support.train(data, *options, "--save-dir", tmp_path / folder).losses) == 12
