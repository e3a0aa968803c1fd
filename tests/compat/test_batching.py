"""Test the last batch, which fairseq drops: first the fault, then the fix."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fairseq")

from fairseq.data import data_utils

from fairseq_posenc.core.refusal import InputError

from .data import pair_dataset


def sentences(batches: Any) -> list[int]:
    return [int(index) for batch in batches for index in batch]


@pytest.mark.parametrize("by", ["function", "vector"])
@pytest.mark.parametrize("count", [1, 7, 8, 13, 60, 61])
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


def test_batches_without_a_multiple_and_with_fixed_shapes_do_not_change() -> None:
    for more in ({}, {"fixed_shapes": [(4, 5), (2, 9)], "required_batch_size_multiple": 8}):
        arguments = {"num_tokens_fn": lambda i: 3 + i % 5, "max_sentences": 4, **more}
        shipped = data_utils.batch_by_size.__wrapped__(np.arange(13), **arguments)
        mended = data_utils.batch_by_size(iter(range(13)), **arguments)
        assert [list(b) for b in mended] == [list(b) for b in shipped]


@pytest.mark.parametrize("by", ["function", "vector"])
def test_a_sentence_beyond_max_tokens_is_named(by: str) -> None:
    sizes = np.array([3, 4, 9, 10])
    vector = {"num_tokens_vec": sizes} if by == "vector" else {}
    arguments = {"num_tokens_fn": lambda i: sizes[i], "max_tokens": 8, **vector}
    with pytest.raises(AssertionError, match="max_tokens"):
        data_utils.batch_by_size.__wrapped__(np.arange(4), **arguments)
    message = r"sentence 2, counted from 0, has 9 tokens, which exceeds max_tokens=8, .* --max-tokens-valid"
    with pytest.raises(InputError, match=message):
        data_utils.batch_by_size(np.arange(4), **arguments)


def test_no_sentences_make_no_batches() -> None:
    arguments = {"num_tokens_fn": lambda i: 1, "max_sentences": 4, "required_batch_size_multiple": 8}
    with pytest.raises(IndexError):
        data_utils.batch_by_size.__wrapped__(np.arange(0), **arguments)
    assert data_utils.batch_by_size(np.arange(0), **arguments) == []


def test_an_iterator_of_a_task_gives_every_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use FairseqTask.get_batch_iterator, as train, validate and generate do."""
    from fairseq.tasks.fairseq_task import FairseqTask

    def count(limit: dict[str, int], **more: Any) -> int:
        iterator = FairseqTask(argparse.Namespace()).get_batch_iterator(
            pair_dataset(60, **more), required_batch_size_multiple=8, data_buffer_size=0, **limit
        )
        return sum(batch["nsentences"] for batch in iterator.next_epoch_itr(shuffle=False))

    assert count({"max_sentences": 16}) == 60
    assert count({"max_tokens": 200}, num_buckets=4) == 60
    monkeypatch.setattr(data_utils, "batch_by_size", data_utils.batch_by_size.__wrapped__)
    assert count({"max_sentences": 16}) == 56  # the fault: 60 = 3 * 16 + 8 + 4
