"""Rows of GLUE's files. Their fields have no quotes: what looks like one is text."""

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
#: a column of XNLI as it was published: all languages in one file
LANGUAGE = "language"
#: splits that a task cannot do without
NEEDED = ("train", "valid")


class Row(NamedTuple):
    """A line of a file. id: by the file's own column, otherwise counted from 0. label: None where the file has none.
    fields: how many there are. wanted: how many there should be."""

    where: str
    id: str
    sentences: tuple[str, ...]
    label: str | None
    fields: int
    wanted: int


def find(folder: Path, task: str, how: Format, *, needed: tuple[str, ...] = NEEDED) -> dict[str, Path]:
    """Return the files of a task by split, plain or .gz: in FOLDER/TASK, where its archive unpacks to, or in FOLDER.

    Raises:
        CorpusError: none of a split that is needed.
    """
    places = [folder / name for name in (task, *how.folders)] + [folder]
    named = {split: found for split, names in how.files.items() if (found := _first(places, names, split))}
    for split in needed:
        if split not in named:
            wanted = " or ".join(how.files[split])
            rows = "; or --train-rows N takes the first rows of the development set, English's where there are several"
            cure = rows if split == "train" and "valid" in named else ""
            raise CorpusError(f"{folder}: no {wanted} of {task}, plain or .gz, in it or in {task}/{cure}")
    return named


def _first(places: list[Path], names: tuple[str, ...], split: str) -> Path | None:
    around = [places[-1].parent, places[-1] / "diagnostic"] if split == AX else []
    return next((path for place in (*places, *around) for name in names if (path := there(place / name))), None)


def read(path: Path, how: Format, split: str) -> Iterator[Row]:
    """Yield the rows of a file.

    Raises:
        CorpusError: a file that cannot be read, or whose header lacks a column.
    """
    found = lines.of_file(path)
    first = next(found, None)
    if first is None:
        raise CorpusError(f"{path}: empty: rows are wanted")
    header, begun = _header(first, how, split)
    columns = _columns(path, header, how, split)
    chosen = _chosen(path, header, split)
    number = 0
    for line in chain([] if begun else [first], found):
        fields = line.text.split("\t")
        if chosen and not chosen(fields):
            continue
        yield _row(f"{path.name}:{line.number}", str(number), fields, header, columns, how)
        number += 1


def strays(path: Path, how: Format, split: str) -> Iterator[tuple[str, str]]:
    """Yield where a file of many languages has lines of an unknown language, and the language that they name."""
    found = lines.of_file(path)
    first = next(found, None)
    header = _header(first, how, split)[0] if first else []
    if LANGUAGE not in header:
        return
    place = header.index(LANGUAGE)
    for line in found:
        named = "".join(line.text.split("\t")[place : place + 1])
        if named not in LANGUAGES:
            yield f"{path.name}:{line.number}", named


def _chosen(path: Path, header: list[str], split: str) -> Callable[[list[str]], bool] | None:
    """Return a function that tells whether a line is of this split, or None if the file has only one split."""
    if path.name.removesuffix(".gz") == MRPC_TRAIN:
        return _mrpc(path, split)
    if LANGUAGE in header:
        place, wanted = header.index(LANGUAGE), language(split)
        return lambda fields: fields[place : place + 1] == [wanted]
    return None


class Columns(NamedTuple):
    sentences: list[int]
    label: int | None
    number: int | None


def _header(line: lines.Line, how: Format, split: str) -> tuple[list[str], bool]:
    """Names of the columns, and whether the line has them. CoLA's files have none but for the test set's, XNLI's as
    XTREME has them none at all, and in the test sets no labels."""
    names = line.text.removeprefix(BOM).split("\t")
    known = [how.aliases.get(name, name) for name in names]
    if not how.header or set(how.sentences) <= set(known):
        return known, True
    bare = [name for name in how.header if name != how.label]
    return (bare if not split.startswith(NEEDED) and len(names) == len(bare) else list(how.header)), False


def _columns(path: Path, header: list[str], how: Format, split: str) -> Columns:
    """Return where the columns are. Training and development files have labels, and published test files of MRPC."""
    place = {name: number for number, name in enumerate(header)}
    wanted = [*how.sentences, *([how.label] if split.startswith(NEEDED) else [])]
    if missing := [name for name in wanted if name not in place]:
        raise CorpusError.at(path, 1, f"no column {missing[0]!r}; there are: {', '.join(header)}")
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
    """Return a function that tells which pairs of the published training file are of this split.

    GLUE publishes the ids of the development set in a file of its own.
    """
    listed = there(path.with_name(MRPC_DEV_IDS))
    if listed is None:
        raise CorpusError(f"{path}: GLUE's {MRPC_DEV_IDS} is not beside it: fetch.py glue/{MRPC_DEV_IDS} brings it")
    ids = {tuple(line.text.split("\t")[:2]) for line in lines.of_file(listed)}
    return lambda fields: (tuple(fields[1:3]) in ids) == (split == "valid")
