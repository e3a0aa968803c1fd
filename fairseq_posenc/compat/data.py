"""Read text and binarised data so that no sentence is shifted, and name the file and the line of what is damaged."""

from __future__ import annotations

import builtins
import contextlib
import inspect
import os
import re
import struct
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..core.reading import colon_problem, decoded, read_lines
from ..core.refusal import InputError
from .commands import in_one_line
from .patching import overlay, replace, running

_UNREADABLE = (AssertionError, KeyError, ValueError, OverflowError, struct.error)  # what fairseq raises
_ENTRY = re.compile(r".* [+-]?\d{1,4300}( #fairseq:overwrite)?")  # a line of dict.txt; Python reads 4,300 digits
_CURE = "The data are damaged or incomplete: copy both files again, or binarise the data again."


class DataError(InputError):
    """Raised if text or binarised data are damaged; the message names the file."""


def mend() -> None:
    """Check the data of trainings and the text of fairseq-preprocess, and read text by line feeds only.

    Three modules of fairseq also get names that numpy 2 lacks, without a change of numpy itself: `np.compat.long`
    (--sample-break-mode eos, --num-batch-buckets) and `np.percentile(interpolation=)` (--num-batch-buckets).
    """
    from fairseq import file_chunker_utils
    from fairseq.data import (
        Dictionary,
        LanguagePairDataset,
        data_utils,
        indexed_dataset,
        language_pair_dataset,
        token_block_dataset,
    )

    for module in (token_block_dataset, language_pair_dataset):
        overlay(module, "np", compat=Namespace(long=int))
    overlay(data_utils, "np", percentile=_percentile)
    memory_mapped = indexed_dataset.MMapIndexedDataset
    replace(memory_mapped, "_do_init", _checked)
    for kind in (memory_mapped, memory_mapped.Index):  # of an object that could not be built
        replace(kind, "__del__", _without_error)
    replace(LanguagePairDataset, "__init__", _of_equal_sides)
    replace(Dictionary, "add_from_file", _of_a_file)
    replace(indexed_dataset.IndexedRawTextDataset, "read_data", _without_line_ends)
    modules = [file_chunker_utils, indexed_dataset]
    if (preprocess := running("fairseq_cli.preprocess")) is not None:
        modules.append(preprocess)
        replace(preprocess, "main", _checked_preprocess)
    for module in modules:
        module.open = open_by_line_feeds  # for this module only
    if (interactive := running("fairseq_cli.interactive")) is not None:
        replace(interactive, "buffered_read", sentences)


def _percentile(*args: Any, interpolation: str | None = None, **kwargs: Any) -> Any:
    if interpolation is not None:
        kwargs["method"] = interpolation
    return np.percentile(*args, **kwargs)


# -- binarised data


def _checked(original: Callable[..., None], dataset: Any, path: str) -> None:
    """Check that NAME.idx and NAME.bin fit each other when they are opened.

    NAME.idx stores the size of each item and its place in NAME.bin. The places follow from the sizes, so the check
    detects a wrong bit in NAME.idx and a truncated NAME.bin. It does not detect wrong tokens inside NAME.bin, because
    the format has no checksums.
    """
    try:
        original(dataset, path)
    except _UNREADABLE as error:
        empty = next((name for name in (f"{path}.idx", f"{path}.bin") if not os.path.getsize(name)), None)
        problem = "the file is empty" if empty else f"the index cannot be read ({type(error).__name__}: {error})"
        raise DataError(f"{empty or f'{path}.idx'}: {problem}. {_CURE}") from error
    index = dataset._index
    ends = np.cumsum(index._sizes, dtype=np.int64) * index._dtype_size
    wrong = (index._pointers != np.concatenate(([0], ends[:-1]))) | (index._sizes < 0) if len(ends) else ends
    if wrong.any():
        raise DataError(f"{path}.idx: the size or the position of item {int(wrong.argmax())} is wrong. {_CURE}")
    expected, actual = int(ends[-1]) if len(ends) else 0, os.path.getsize(f"{path}.bin")
    if expected != actual:
        raise DataError(f"{path}.bin has {actual:,} bytes, but {path}.idx describes {expected:,}. {_CURE}")


def _without_error(original: Callable[..., None], instance: Any) -> None:
    with contextlib.suppress(AttributeError):
        original(instance)


# -- pairs


def _of_equal_sides(original: Callable[..., None], dataset: Any, *args: Any, **kwargs: Any) -> None:
    """Compare the numbers of sentences of each pair of files; fairseq compares only the totals of several corpora."""
    given = inspect.signature(original).bind(dataset, *args, **kwargs).arguments
    for source, target in zip(*(_files(given.get(side)) for side in ("src", "tgt")), strict=False):
        if len(source) != len(target):
            raise DataError(
                f"{_name(source, 'the source')} has {len(source):,} sentences, but {_name(target, 'the target')} has "
                f"{len(target):,}. Binarise their text again with fairseq-preprocess --user-dir, which ends sentences "
                "at line feeds only and refuses text that is not parallel."
            )
    original(dataset, *args, **kwargs)


def _files(dataset: Any) -> list[Any]:
    """Return the files of which fairseq made a dataset by concatenation, or by adding or removing tokens."""
    from fairseq.data import ConcatDataset

    while hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    if isinstance(dataset, ConcatDataset):
        return [file for part in dataset.datasets for file in _files(part)]
    return [] if dataset is None else [dataset]


def _name(dataset: Any, otherwise: str) -> str:
    return getattr(dataset, "_path", None) or getattr(dataset, "path", None) or otherwise


# -- dictionaries


def _of_a_file(original: Callable[..., None], dictionary: Any, file: Any) -> None:
    """Name the file and the line of a dictionary that cannot be read; fairseq names at most one of them."""
    try:
        original(dictionary, file)
    except Exception as error:
        if isinstance(error, OSError) or not isinstance(file, str):  # fairseq calls it again with the opened file
            raise
        lines = read_lines(Path(file))  # raises the error if the file is not UTF-8
        bad = next((number for number, line in enumerate(lines, 1) if not _ENTRY.fullmatch(line.rstrip())), None)
        place, problem = (file, error) if bad is None else (f"{file}:{bad}", "it is not a symbol, a space and a count")
        raise DataError(f"{place}: {problem}. Use the dict.txt that was written with the data.") from error


# -- text


def open_by_line_feeds(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    """Open a file; only a line feed ends a line of text. The tokenizer removes a carriage return before it.

    Python's text files also split lines at a carriage return (file_chunker_utils.py:25, indexed_dataset.py:280,
    preprocess.py:236, interactive.py:44). If a sentence contained one, all sentences after it would lose their
    translations.
    """
    newline = {} if "b" in mode else {"newline": "\n"}
    return builtins.open(file, mode, *args, **{**newline, **kwargs})


def _without_line_ends(original: Callable[..., None], dataset: Any, path: str, dictionary: Any) -> None:
    """Read raw text; keep its lines, which fairseq-generate prints, without the carriage return of CR LF."""
    dataset.path = path  # the other kinds of files know theirs
    original(dataset, path, dictionary)
    dataset.lines = [line.removesuffix("\r") for line in dataset.lines]


def sentences(original: Callable[..., Any], path: str, buffer_size: int) -> Iterator[list[str]]:
    """Yield the sentences that fairseq-interactive reads from a file or, if `path` is -, from the terminal or a pipe.

    Raises:
        NotTextError: A line is not UTF-8.
    """
    name = "standard input" if path == "-" else path
    with contextlib.nullcontext(sys.stdin.buffer) if path == "-" else builtins.open(path, "rb") as lines:
        buffer = []
        for number, line in enumerate(lines, 1):
            buffer.append(decoded(line, name, number).strip())
            if len(buffer) >= buffer_size:
                yield buffer
                buffer = []
        if buffer:
            yield buffer


def _checked_preprocess(original: Callable[..., Any], args: Namespace) -> Any:
    """Run fairseq-preprocess if its text is right; otherwise end with one line, and write nothing."""
    with in_one_line():
        check_text(args)
    return original(args)


def check_text(args: Namespace) -> None:
    """Check all text that fairseq-preprocess would read.

    Raises:
        NotTextError: A line is not UTF-8.
        DataError: Two files of translations have different numbers of lines, or fairseq-train could not open --destdir.
    """
    if problem := colon_problem(args.destdir):
        raise DataError(f"--destdir {args.destdir}: {problem}")
    languages = [args.source_lang] if args.only_source else [args.source_lang, args.target_lang]
    for prefixes in (args.trainpref, args.validpref, args.testpref):
        for prefix in prefixes.split(",") if prefixes else []:
            files = [f"{prefix}.{language}" if language else prefix for language in languages]
            counts = {file: _count_lines(file) for file in files if os.path.isfile(file)}
            if len(set(counts.values())) > 1:
                numbers = ", but ".join(f"{file} has {count:,}" for file, count in counts.items())
                raise DataError(
                    f"{numbers} lines. Each line must translate the line with the same number in the other file. "
                    "Correct the files, or fetch them again."
                )


def _count_lines(file: str) -> int:
    number = 0
    with builtins.open(file, "rb") as lines:
        for number, line in enumerate(lines, 1):
            decoded(line, file, number)
    return number
