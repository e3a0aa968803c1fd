"""Test that a resumed training equals an uninterrupted one, and that a finished training does not change."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data import FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask

from . import lm, masked_lm, support
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


def learned(run: support.Run) -> dict[str, Any]:
    """Return the parameters and the optimizer's state of each parameter."""
    state = {f"model {name}": tensor for name, tensor in run.model.state_dict().items()}
    for number, own in run.trainer.optimizer.state_dict()["state"].items():
        state |= {f"optimizer {number} {name}": torch.as_tensor(value) for name, value in own.items()}
    return state


def assert_equal(whole: support.Run, resumed: support.Run) -> None:
    """Check that the last losses, all parameters and the optimizer are equal, bit by bit."""
    assert 0 < len(resumed.losses) < len(whole.losses)
    assert resumed.losses == whole.losses[-len(resumed.losses) :]
    assert_same(learned(resumed), learned(whole), rtol=0, atol=0)


@pytest.fixture(scope="module")
def corpora(data: Path, text: Path, lines: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return corpora by name; epochs read the folders of `shards` and `turns` in turn, which differ in length."""
    folder = tmp_path_factory.mktemp("corpora")
    shutil.copytree(lines, folder / "lines")
    for end in ("bin", "idx"):
        shutil.copy(lines / f"test.{end}", folder / "lines" / f"train.{end}")
    shards = f"{text}:{masked_lm.write_corpus(folder / 'text', seed=1)}"
    return {
        "pairs": f"{data}",
        "text": f"{text}",
        "shards": shards,
        "lines": f"{lines}",
        "turns": f"{lines}:{folder}/lines",
    }


DROPOUT = ["--dropout", 0.1, "--attention-dropout", 0.1]
TRANSLATION = [*SHAW, *DROPOUT]
SPARING = [*SHAW, "--weight-decay", 0.5, "--pos-enc-no-decay"]
MASKED = ["--pos-enc", "t5", "--batch-size", 32]  # 2 batches per epoch
WORDS = ["--mask-whole-words", "--subwords", "sentencepiece", "--batch-size", 4, "--pos-enc", "shaw", *DROPOUT]
XL = ["--pos-enc", "xl"]
LAMB = ["--optimizer", "posenc_lamb", "--lr", 0.02, "--encoder-embed-dim", 32]
#: By case: the kind of model, the corpus, options, where the training stops, and its last update.
RESUMED: dict[str, tuple[Any, str, list[Any], tuple[int, ...], int]] = {
    "in three epochs": (support, "pairs", TRANSLATION, (3, 9, 14), 16),
    "workers": (support, "pairs", [*TRANSLATION, "--num-workers", 2, "--data-buffer-size", 2], (8,), 16),
    "accumulation": (support, "pairs", [*TRANSLATION, "--update-freq", 2], (4,), 6),
    "shuffled from epoch 2 on": (support, "pairs", [*TRANSLATION, "--curriculum", 1], (9,), 16),
    "random positions": (support, "pairs", [*TRANSLATION, "--pos-enc-random", 64], (3,), 5),
    "without decay": (support, "pairs", [*SPARING, "--pos-enc", "m2"], (2,), 4),
    "masked": (masked_lm, "text", MASKED, (3,), 6),
    "masked words of the second shard": (masked_lm, "shards", WORDS, (15,), 20),
    "LAMB": (masked_lm, "text", [*MASKED, *LAMB], (3,), 6),
    "streams": (lm, "lines", ["--pos-enc", "alibi", "--batch-size", 16], (6,), 8),
    "memory and accumulation": (lm, "lines", [*XL, "--update-freq", 2, *DROPOUT], (3,), 6),
    "folders in turn": (lm, "turns", [*XL, *DROPOUT], (3, 14), 16),
}
RESUMED_IN_LONG_TESTS: dict[str, tuple[Any, str, list[Any], tuple[int, ...], int]] = {
    "after epoch 1": (support, "pairs", TRANSLATION, (6,), 16),
    "nothing is shuffled": (support, "pairs", [*TRANSLATION, "--curriculum", 9], (14,), 16),
    "a seed of indices": (support, "pairs", [*TRANSLATION, "--update-ordered-indices-seed"], (8,), 16),
    "iterators of each epoch": (support, "pairs", [*TRANSLATION, "--update-epoch-batch-itr", "True"], (8,), 16),
    "workers and shards": (masked_lm, "shards", [*WORDS, "--num-workers", 1, "--data-buffer-size", 3], (15,), 25),
}


@pytest.mark.parametrize(
    "case", [*RESUMED, *(pytest.param(name, marks=pytest.mark.long) for name in RESUMED_IN_LONG_TESTS)]
)
def test_a_resumed_training_is_undisturbed(case: str, corpora: dict[str, str], tmp_path: Path) -> None:
    """This includes random numbers, masks of the epoch, and batches within an epoch."""
    module, corpus, options, stops, last = {**RESUMED, **RESUMED_IN_LONG_TESTS}[case]

    def train(*more: Any) -> support.Run:
        run: support.Run = module.train(corpora[corpus], *options, "--no-epoch-checkpoints", *more)
        return run

    assert_equal(*interrupted(train, tmp_path, last, *stops))


@pytest.mark.parametrize(
    ("module", "corpus", "task", "workers"),
    [
        pytest.param(masked_lm, "text", masked_lm.STOCK_TASK, 2, id="masked_lm"),
        pytest.param(lm, "lines", LINES, 0, id="language_modeling"),
    ],
)
def test_tasks_of_fairseq_resume_too(
    module: Any, corpus: str, task: list[str], workers: int, corpora: dict[str, str], tmp_path: Path
) -> None:
    """Masks depend on the epoch, which must reach the worker processes as well."""

    def train(*more: Any) -> support.Run:
        run: support.Run = module.train(corpora[corpus], *MASKED, "--num-workers", workers, *more, task=task)
        return run

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


ENDS = [["--max-update", 4], ["--max-epoch", 1], ["--stop-time-hours", 1e-9]]


@pytest.mark.parametrize("options", ENDS, ids=str)
def test_a_finished_training_makes_no_further_update(data: Path, tmp_path: Path, options: list[Any]) -> None:
    train = support.train(data, *SHAW, *options, "--save-dir", tmp_path)
    updates, written = train.trainer.get_num_updates(), (tmp_path / "checkpoint_last.pt").read_bytes()
    again = support.train(data, *SHAW, *options, "--save-dir", tmp_path)
    assert (updates, again.losses) == (len(train.losses), [])
    assert again.trainer.get_num_updates() == updates
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == written


def test_it_is_finished_as_a_process_too(data: Path, tmp_path: Path) -> None:
    """With `python -m fairseq_cli.train`, the module is `__main__`."""
    words = support.command_line(data, *SHAW, "--max-update", 2, "--save-dir", tmp_path)
    support.trained(words)
    done = support.run([*support.script("train"), *words], package=False, forked=True)
    assert "training has already finished: it made 2 updates, and --max-update is 2" in done.stdout + done.stderr


def test_patience_counts_on_after_an_interruption(data: Path, tmp_path: Path) -> None:
    """The learning rate is so low that no validation brings a better score after the first: 1 + 2 epochs.

    With --finetune-from-model, the patience of a new training is not used up. fairseq stores the best score in a
    function attribute, which all trainings of a process share.
    """
    still = [*SHAW, "--lr", 1e-30, "--valid-subset", "valid"]
    options = [*still, "--patience", 2, "--save-dir", tmp_path / "one"]
    assert len(support.train(data, *options, "--max-epoch", 2).losses) == 12
    state = load_checkpoint_to_cpu(str(tmp_path / "one" / "checkpoint_last.pt"))
    assert state["extra_state"]["early_stop"]["num_runs"] == 1
    assert len(support.train(data, *options).losses) == 6
    assert support.train(data, *options).losses == []
    assert len(support.train(data, *options, "--patience", 3).losses) == 6
    source = ["--finetune-from-model", tmp_path / "one" / "checkpoint_last.pt"]
    for more in (source, []):
        other = [*still, "--patience", 1, "--save-dir", tmp_path / f"other{len(more)}"]
        assert len(support.train(data, *other, *more).losses) == 12
