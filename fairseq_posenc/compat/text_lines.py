"""Read text by line feeds only, and check the text of fairseq-preprocess before it writes anything.

Python's text files also split lines at a carriage return (file_chunker_utils.py:25, indexed_dataset.py:280,
preprocess.py:236, interactive.py:44). If a sentence contains one, all sentences after it lose their translations.
"""

from __future__ import annotations

import builtins
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import ModuleType
from typing import Any

from ..core.reading import colon_problem, decoded
from ..core.refusal import InputError
from . import refusals
from .patching import replace, running


class TextError(InputError):
    """Raised if text cannot be binarised; the message names the file and the line."""


def mend() -> None:
    """Read text by line feeds, in fairseq-preprocess, in fairseq-interactive and with --dataset-impl raw."""
    from fairseq import file_chunker_utils
    from fairseq.data import indexed_dataset

    for module in (file_chunker_utils, indexed_dataset):
        _open_by_line_feeds(module)
    replace(indexed_dataset.IndexedRawTextDataset, "read_data", _without_line_ends)
    if (preprocess := running("fairseq_cli.preprocess")) is not None:
        _open_by_line_feeds(preprocess)
        replace(preprocess, "main", checked_preprocess)
    if (interactive := running("fairseq_cli.interactive")) is not None:
        replace(interactive, "buffered_read", sentences)


def _open_by_line_feeds(module: ModuleType) -> None:
    """Let a module call `open_by_line_feeds` as `open`; the built-in function itself stays."""
    module.open = open_by_line_feeds  # type: ignore[attr-defined]


def open_by_line_feeds(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    """Open a file; only a line feed ends a line of text. The tokenizer removes a carriage return before it."""
    newline = {} if "b" in mode else {"newline": "\n"}
    return builtins.open(file, mode, *args, **{**newline, **kwargs})


def _without_line_ends(original: Callable[..., None], dataset: Any, *args: Any) -> None:
    """Read raw text; keep its lines, which fairseq-generate prints, without the carriage return of CR LF."""
    original(dataset, *args)
    dataset.lines = [line.removesuffix("\r") for line in dataset.lines]


def sentences(original: Callable[..., Any], path: str, buffer_size: int) -> Iterator[list[str]]:
    """Yield the sentences that fairseq-interactive reads from a file or, if `path` is -, from the terminal or a pipe.

    Raises:
        NotTextError: A line is not UTF-8.
    """
    name = "standard input" if path == "-" else path
    with nullcontext(sys.stdin.buffer) if path == "-" else builtins.open(path, "rb") as lines:
        buffer = []
        for number, line in enumerate(lines, 1):
            buffer.append(decoded(line, name, number).strip())
            if len(buffer) >= buffer_size:
                yield buffer
                buffer = []
        if buffer:
            yield buffer


def checked_preprocess(original: Callable[..., Any], args: Namespace) -> Any:
    """Run fairseq-preprocess if its text is right; otherwise end with one line, and write nothing."""
    with refusals.in_one_line():
        check(args)
    return original(args)


def check(args: Namespace) -> None:
    """Check all text that fairseq-preprocess would read.

    Raises:
        NotTextError: A line is not UTF-8.
        TextError: Two files of translations have different numbers of lines, or fairseq-train could not open --destdir.
    """
    if problem := colon_problem(args.destdir):
        raise TextError(f"--destdir {args.destdir}: {problem}")
    languages = [args.source_lang] if args.only_source else [args.source_lang, args.target_lang]
    for prefixes in (args.trainpref, args.validpref, args.testpref):
        for prefix in prefixes.split(",") if prefixes else []:
            files = [f"{prefix}.{language}" if language else prefix for language in languages]
            _check_same_length([(file, _count_lines(file)) for file in files if os.path.isfile(file)])


def _count_lines(file: str) -> int:
    number = 0
    with builtins.open(file, "rb") as lines:
        for number, line in enumerate(lines, 1):
            decoded(line, file, number)
    return number


def _check_same_length(counts: list[tuple[str, int]]) -> None:
    if len({count for _, count in counts}) > 1:
        (source, first), (target, second) = counts
        raise TextError(
            f"{source} has {first:,} lines, but {target} has {second:,}. Each line must translate the line with the "
            "same number in the other file. Correct the files, or fetch them again."
        )
