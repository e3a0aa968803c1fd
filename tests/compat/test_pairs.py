"""Test that files with different numbers of sentences are named before the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq.data import LanguagePairDataset, indexed_dataset
from fairseq.tasks.translation import load_langpair_dataset

from fairseq_posenc.compat.data_files import DataError

from .data import words


def write(folder: Path, impl: str, split: str, english: int, german: int) -> None:
    for language, count in (("en", english), ("de", german)):
        prefix = folder / f"{split}.en-de.{language}"
        if impl == "raw":
            prefix.write_text("a b\n" * count, encoding="utf-8")
            continue
        builder = indexed_dataset.make_builder(f"{prefix}.bin", impl, len(words()))
        for _ in range(count):
            builder.add_item(torch.tensor([4, 5, 2], dtype=torch.int32))
        builder.finalize(f"{prefix}.idx")


def load(folder: Path, impl: str, **more: Any) -> LanguagePairDataset:
    settings = {"combine": True, "upsample_primary": 2, "left_pad_source": True, "left_pad_target": False}
    limits = {"max_source_positions": 9, "max_target_positions": 9}
    return load_langpair_dataset(
        str(folder), "train", "en", words(), "de", words(), dataset_impl=impl, **settings, **limits, **more
    )


@pytest.mark.parametrize("impl", ["mmap", "cached", "raw"])
@pytest.mark.parametrize("more", [{}, {"truncate_source": True, "prepend_bos": True}])
def test_both_files_and_both_counts_are_named(impl: str, more: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path, impl, "train", 5, 4)
    error = rf"{tmp_path}/train.en-de.en has 5 sentences, but {tmp_path}/train.en-de.de has 4. Binarise"
    with pytest.raises(DataError, match=error):
        load(tmp_path, impl, **more)


def test_the_second_of_several_corpora_is_named(tmp_path: Path) -> None:
    """The totals are equal, so fairseq itself would train on pairs that are shifted by one sentence."""
    write(tmp_path, "mmap", "train", 6, 6)
    write(tmp_path, "mmap", "train1", 5, 4)
    write(tmp_path, "mmap", "train2", 4, 5)
    with pytest.raises(DataError, match=r"train1.en-de.en has 5 sentences, but .*train1.en-de.de has 4"):
        load(tmp_path, "mmap")


def test_equal_files_are_loaded(tmp_path: Path) -> None:
    write(tmp_path, "mmap", "train", 6, 6)
    write(tmp_path, "mmap", "train1", 5, 5)
    assert len(load(tmp_path, "mmap")) == 2 * 6 + 5


def test_a_source_alone_is_loaded() -> None:
    lines = [torch.tensor([4, 2])] * 3
    assert len(LanguagePairDataset(lines, [2, 2, 2], words())) == 3
    with pytest.raises(DataError, match="the source has 3 sentences, but the target has 2"):
        LanguagePairDataset(lines, [2, 2, 2], words(), lines[:2], [2, 2], words())
