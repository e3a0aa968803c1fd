"""Read the rows of GLUE's files. Fields are never quoted: quotation marks are part of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from corpora import lines
from corpora.compressed import there
from corpora.errors import CorpusError

from .formats import AX, LANGUAGES, MRPC_DEV_IDS, MRPC_TRAIN, Format, language

BOM = "\ufeff"
#: column of XNLI's original files, which hold all languages
LANGUAGE = "language"
#: splits that every task needs
NEEDED = ("train", "valid")


class Row(NamedTuple):
    """Hold a line of a data file of the task.

    Args:
        where: File name and line number.
        id: Value of the file's own index column, otherwise the row's number from 0.
        label: Label, or None if the file has none.
        fields: Number of fields of the line.
        expected: Number of fields that the line should have.
    """

    where: str
    id: str
    sentences: tuple[str, ...]
    label: str | None
    fields: int
    expected: int


def find(folder: Path, task: str, how: Format, *, needed: tuple[str, ...] = NEEDED) -> dict[str, Path]:
    """Return the files of a task by split, plain or .gz, from FOLDER/TASK, the unpacked archive, or FOLDER.

    Raises:
        CorpusError: A required split has no file.
    """
    places = [folder / name for name in (task, *how.folders)] + [folder]
    paths = {split: path for split, names in how.files.items() if (path := _first(places, names, split))}
    for split in needed:
        if split not in paths:
            names = " or ".join(how.files[split])
            rows = "Add the file, or give --train-rows N to train on the first rows of the (English) development set."
            cure = rows if split == "train" and "valid" in paths else "Add the file."
            problem = f"neither the folder nor its subfolder {task} holds {names} (plain or .gz)"
            raise CorpusError(f"{folder}: {problem}. {cure}")
    return paths


def _first(places: list[Path], names: tuple[str, ...], split: str) -> Path | None:
    around = [places[-1].parent, places[-1] / "diagnostic"] if split == AX else []
    return next((path for place in (*places, *around) for name in names if (path := there(place / name))), None)


def read(path: Path, how: Format, split: str) -> Iterator[Row]:
    """Yield the rows of a split.

    Raises:
        CorpusError: The file cannot be read, is empty, or its header lacks a column.
    """
    file_lines = lines.of_file(path)
    first = next(file_lines, None)
    if first is None:
        raise CorpusError(f"{path}: the file is empty.")
    header, begun = _header(first, how, split)
    columns = _columns(path, header, how, split)
    chosen = _chosen(path, header, split)
    number = 0
    for line in chain([] if begun else [first], file_lines):
        fields = line.text.split("\t")
        if chosen and not chosen(fields):
            continue
        yield _row(f"{path.name}:{line.number}", str(number), fields, header, columns, how)
        number += 1


def strays(path: Path, how: Format, split: str) -> Iterator[tuple[str, str]]:
    """Yield the place and the language code of each line with an unknown code, if the file holds several languages."""
    file_lines = lines.of_file(path)
    first = next(file_lines, None)
    header = _header(first, how, split)[0] if first else []
    if LANGUAGE not in header:
        return
    place = header.index(LANGUAGE)
    for line in file_lines:
        code = "".join(line.text.split("\t")[place : place + 1])
        if code not in LANGUAGES:
            yield f"{path.name}:{line.number}", code


def _chosen(path: Path, header: list[str], split: str) -> Callable[[list[str]], bool] | None:
    """Return a function that tells whether a line belongs to the split, or None if all lines belong to it."""
    if path.name.removesuffix(".gz") == MRPC_TRAIN:
        return _mrpc(path, split)
    if LANGUAGE in header:
        place, code = header.index(LANGUAGE), language(split)
        return lambda fields: fields[place : place + 1] == [code]
    return None


class Columns(NamedTuple):
    sentences: list[int]
    label: int | None
    number: int | None


def _header(line: lines.Line, how: Format, split: str) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the line is a header.

    Of CoLA's files, only the test file has a header. XTREME's files of XNLI have no header, and XTREME's test files of
    XNLI have no labels.
    """
    names = line.text.removeprefix(BOM).split("\t")
    known = [how.aliases.get(name, name) for name in names]
    if not how.header or set(how.sentences) <= set(known):
        return known, True
    bare = [name for name in how.header if name != how.label]
    return (bare if not split.startswith(NEEDED) and len(names) == len(bare) else list(how.header)), False


def _columns(path: Path, header: list[str], how: Format, split: str) -> Columns:
    """Return the indices of the columns; training and development files must have labels.

    The published test files of MRPC have labels, too.
    """
    place = {name: number for number, name in enumerate(header)}
    needed = [*how.sentences, *([how.label] if split.startswith(NEEDED) else [])]
    if missing := [name for name in needed if name not in place]:
        raise CorpusError.at(path, 1, f"the header lacks the column {missing[0]!r}; it has {', '.join(header)}.")
    index = next((place[name] for name in how.index if name in place), None)
    return Columns([place[name] for name in how.sentences], place.get(how.label), index)


def _row(where: str, number: str, fields: list[str], header: list[str], columns: Columns, how: Format) -> Row:
    def text(column: int | None) -> str | None:
        return None if column is None or column >= len(fields) else fields[column].strip()

    sentences = tuple(text(column) or "" for column in columns.sentences)
    label = text(columns.label)
    label = label if label is None else how.aliases.get(label, label)
    return Row(where, text(columns.number) or number, sentences, label, len(fields), len(header))


def _mrpc(path: Path, split: str) -> Callable[[list[str]], bool]:
    """Return a function that tells whether a pair of MRPC's training file belongs to the split.

    GLUE publishes the ids of the development set in a separate file.
    """
    listed = there(path.with_name(MRPC_DEV_IDS))
    if listed is None:
        raise CorpusError(
            f"{path}: {MRPC_DEV_IDS} must be in the same folder. Fetch the file with fetch.py glue/{MRPC_DEV_IDS}."
        )
    ids = {tuple(line.text.split("\t")[:2]) for line in lines.of_file(listed)}
    return lambda fields: (tuple(fields[1:3]) in ids) == (split == "valid")
