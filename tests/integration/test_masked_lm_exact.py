"""Test that masked language models learn the same in two processes, with accumulated batches, and after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from . import masked_lm, ranks, support
from .ranks import assert_same

UPDATES = 20
#: The batches are not shuffled, so a batch of eight samples contains the next two batches of four. The learning rate is
#: small, because Adam turns rounding errors of gradients near 0 into whole steps.
ORDERED = ["--curriculum", 99, "--max-update", UPDATES, "--lr", "1e-3", "--adam-eps", "1e-6", "--pos-enc", "shaw"]
MASKS = {"pieces": [], "words": ["--mask-whole-words", "--subwords", "sentencepiece"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_lm.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin", seed=4)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write two shards, which epochs read in turn."""
    folder = tmp_path_factory.mktemp("shards")
    return ":".join(str(masked_lm.write_corpus(folder / f"data-{seed}", seed)) for seed in (0, 1))


# -- one update in several parts ----------------------------------------------------------------------------


@pytest.mark.parametrize("masks", ["words", pytest.param("pieces", marks=pytest.mark.long)])
def test_two_processes_and_two_batches_an_update_are_one_batch(data: Path, masks: str, tmp_path: Path) -> None:
    """This includes the ends of epochs, where one process has one batch less."""
    more = [*ORDERED, *MASKS[masks]]
    whole = masked_lm.train(data, *more, "--batch-size", 8)
    first, second = ranks.two_processes(tmp_path, masked_lm.command_line(data, *more, "--batch-size", 4))
    assert len(whole.losses) == UPDATES
    assert first["losses"] == second["losses"] == pytest.approx(whole.losses, rel=0, abs=1e-5)
    assert_same(first["model"], second["model"], rtol=0, atol=0)
    assert_same(first["model"], whole.model.state_dict(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masks", MASKS)
def test_two_batches_an_update_are_one_batch(data: Path, masks: str) -> None:
    more = [*ORDERED, *MASKS[masks]]
    whole = masked_lm.train(data, *more, "--batch-size", 8)
    in_two = masked_lm.train(data, *more, "--batch-size", 4, "--update-freq", 2)
    assert in_two.losses == pytest.approx(whole.losses, rel=0, abs=1e-5)
    assert_same(in_two.model.state_dict(), whole.model.state_dict(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masks", MASKS)
def test_the_batches_are_such_that_mistakes_would_show(data: Path, masks: str) -> None:
    """Halves differ in their numbers of predicted tokens, and the last batch of an epoch has no second half."""
    _, task = masked_lm.built(data, *MASKS[masks])
    counts = [int(batch["target"].ne(1).sum()) for batch in masked_lm.batches(task, "train", size=4)]
    assert len(counts) % 2
    assert len(counts) / 2 < UPDATES / 2
    assert sum(first != second for first, second in zip(counts[::2], counts[1::2], strict=False)) > 2


# -- resuming -----------------------------------------------------------------------------------------------


def learned(run: support.Run) -> dict[str, Tensor]:
    """Return the parameters and the optimizer's state of each parameter."""
    state = {f"model {name}": tensor for name, tensor in run.model.state_dict().items()}
    for number, own in run.trainer.optimizer.state_dict()["state"].items():
        state |= {f"optimizer {number} {name}": torch.as_tensor(value) for name, value in own.items()}
    return state


def assert_goes_on(data: Any, folder: Path, *more: Any, until: int, end: int) -> None:
    """Check that training that stops within an epoch and resumes has the same result."""
    words = ["--batch-size", 4, "--pos-enc", "shaw", "--no-epoch-checkpoints", "--save-interval-updates", until, *more]
    whole = masked_lm.train(data, *words, "--max-update", end, "--save-dir", folder / "whole")
    first = masked_lm.train(data, *words, "--max-update", until, "--save-dir", folder / "broken")
    second = masked_lm.train(data, *words, "--max-update", end, "--save-dir", folder / "broken")
    assert len(second.losses) == end - until
    assert first.losses + second.losses == whole.losses
    assert_same(learned(second), learned(whole), rtol=0, atol=0)


@pytest.mark.parametrize("dropout", ["0.1", pytest.param("0", marks=pytest.mark.long)])
@pytest.mark.parametrize("masks", MASKS)
def test_training_goes_on_exactly(data: Path, masks: str, dropout: str, tmp_path: Path) -> None:
    """This includes random numbers, which fairseq seeds by the number of the update."""
    more = ["--dropout", dropout, "--attention-dropout", dropout, *MASKS[masks]]
    assert_goes_on(data, tmp_path, *more, until=5, end=10)


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.long)])
def test_training_goes_on_exactly_in_the_shard_of_its_epoch(shards: str, workers: int, tmp_path: Path) -> None:
    """Training resumes in the second epoch, with other data, other masks, and worker processes that read ahead."""
    more = ["--dropout", "0.1", "--num-workers", workers, "--data-buffer-size", 3 * workers]
    assert_goes_on(shards, tmp_path, *more, until=15, end=25)
