"""Test that no sentence is dropped, and that the thread which reads batches ends with the interpreter."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("fairseq")

from fairseq.data import data_utils, iterators
from fairseq.tasks.fairseq_task import FairseqTask

from . import run
from .data import pair_dataset

# -- the last batch


def sentences(batches: Any) -> list[int]:
    return [int(index) for batch in batches for index in batch]


@pytest.mark.parametrize("by", ["function", "vector"])
@pytest.mark.parametrize("count", [1, 8, 13, 61])
@pytest.mark.parametrize("limit", [{"max_sentences": 16}, {"max_tokens": 200}])
def test_no_sentence_is_dropped(by: str, count: int, limit: dict[str, int]) -> None:
    sizes = np.sort(np.random.RandomState(count).randint(3, 20, count))
    vector = {"num_tokens_vec": sizes} if by == "vector" else {}
    arguments = {"num_tokens_fn": lambda i: sizes[i], "required_batch_size_multiple": 8, **vector, **limit}
    shipped = data_utils.batch_by_size.__wrapped__(np.arange(count), **arguments)
    mended = data_utils.batch_by_size(np.arange(count), **arguments)
    assert sentences(mended) == list(range(count))
    assert [list(b) for b in mended[: len(shipped)]] == [list(b) for b in shipped]
    assert len(mended) - len(shipped) == (1 if count % 8 else 0)  # the fault, and no other difference


def test_an_iterator_of_a_task_gives_every_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use FairseqTask.get_batch_iterator, as train, validate and generate do."""

    def count(limit: dict[str, int], **more: Any) -> int:
        iterator = FairseqTask(argparse.Namespace()).get_batch_iterator(
            pair_dataset(60, **more), required_batch_size_multiple=8, data_buffer_size=0, **limit
        )
        return sum(batch["nsentences"] for batch in iterator.next_epoch_itr(shuffle=False))

    assert count({"max_sentences": 16}) == 60
    assert count({"max_tokens": 200}, num_buckets=4) == 60  # with fixed shapes
    assert data_utils.batch_by_size(np.arange(0), len, max_tokens=9, required_batch_size_multiple=8) == []
    monkeypatch.setattr(data_utils, "batch_by_size", data_utils.batch_by_size.__wrapped__)
    assert count({"max_sentences": 16}) == 56  # the fault: 60 = 3 * 16 + 8 + 4


# -- the thread that reads ahead

#: In one fork for each case, stop inside an epoch, and print at the very end whether the thread still runs.
STOP_INSIDE_AN_EPOCH = """
    import atexit, os, sys, threading, torch
    from fairseq.data import iterators

    def is_alive():
        print(any(isinstance(thread, iterators.BackgroundConsumer) for thread in threading.enumerate()), flush=True)
    atexit.register(is_alive)

    assert "fairseq_posenc" not in sys.modules
    for word in ("shipped", "mended", "workers"):
        if word == "mended":
            from fairseq_posenc import compat
            compat.apply()
        if (child := os.fork()) == 0:
            break
        print(word, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    else:
        os._exit(0)

    class Numbers(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return torch.ones(200) * index
        def __len__(self):
            return 4000

    epochs = iterators.EpochBatchIterator(
        Numbers(), torch.stack, [[i] for i in range(4000)], num_workers=int(word == "workers"), buffer_size=10)
    for count, batch in enumerate(epochs.next_epoch_itr()):
        if count == 20:
            break
    print("done training", flush=True)
"""


def test_the_reading_thread_ends_before_the_interpreter() -> None:
    """fairseq's own thread outlives it, and nearly always ends the process with exit code 134."""
    printed = run(STOP_INSIDE_AN_EPOCH).stdout
    assert printed.startswith("done training\nTrue\n"), printed  # the fault
    assert printed.endswith("done training\nFalse\nmended 0\ndone training\nFalse\nworkers 0\n"), printed


def test_workers_end_with_their_epoch() -> None:
    """fairseq keeps the workers, and torch kills them after five seconds each."""
    arguments = (torch.utils.data.TensorDataset(torch.ones(1)), list, [[0]])
    assert not iterators.EpochBatchIterator(*arguments, num_workers=1).persistent_workers
    shipped = iterators.EpochBatchIterator.__new__(iterators.EpochBatchIterator)
    iterators.EpochBatchIterator.__init__.__wrapped__(shipped, *arguments, num_workers=1)
    assert shipped.persistent_workers
