"""Name the files if the two sides of a parallel corpus differ in their number of sentences.

fairseq ends with an AssertionError that names neither a file nor a number (data/language_pair_dataset.py:238). If
several corpora are concatenated, fairseq compares their totals only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .data_files import DataError
from .patching import replace


def mend() -> None:
    """Compare the numbers of sentences of each pair of files."""
    from fairseq.data import LanguagePairDataset
    from fairseq.data.indexed_dataset import IndexedRawTextDataset

    replace(LanguagePairDataset, "__init__", _of_equal_sides)
    replace(IndexedRawTextDataset, "read_data", _with_path)


def _with_path(original: Callable[..., None], dataset: Any, path: str, dictionary: Any) -> None:
    dataset.path = path  # the other kinds of files know theirs
    original(dataset, path, dictionary)


def _of_equal_sides(
    original: Callable[..., None],
    dataset: Any,
    src: Any,
    src_sizes: Any,
    src_dict: Any,
    tgt: Any = None,
    *args: Any,
    **kwargs: Any,
) -> None:
    for source, target in _pairs(src, tgt) if tgt is not None else ():
        if len(source) != len(target):
            raise DataError(
                f"{_name(source, 'the source')} has {len(source):,} sentences, but {_name(target, 'the target')} has "
                f"{len(target):,}. Binarise their text again with fairseq-preprocess --user-dir, which ends sentences "
                "at line feeds only and refuses text that is not parallel."
            )
    original(dataset, src, src_sizes, src_dict, tgt, *args, **kwargs)


def _pairs(src: Any, tgt: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of files, or the two datasets if they were not made of files in the same way."""
    sources, targets = list(_parts(src)), list(_parts(tgt))
    return zip(sources, targets, strict=True) if len(sources) == len(targets) else iter([(src, tgt)])


def _parts(dataset: Any) -> Iterator[Any]:
    """Yield the files of which fairseq made a dataset by concatenation, or by adding or removing tokens."""
    from fairseq.data import ConcatDataset

    if isinstance(dataset, ConcatDataset):
        for part in dataset.datasets:
            yield from _parts(part)
    elif hasattr(dataset, "dataset") and len(dataset.dataset) == len(dataset):
        yield from _parts(dataset.dataset)
    else:
        yield dataset


def _name(dataset: Any, otherwise: str) -> str:
    return getattr(dataset, "_path", None) or getattr(dataset, "path", None) or otherwise
