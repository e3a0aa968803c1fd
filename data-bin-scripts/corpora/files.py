"""The files of a corpus, in an order that does not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from .compressed import OPENERS
from .documents import KINDS
from .errors import CorpusError

Split = Literal["train", "valid"]


class Source(NamedTuple):
    """A file of a corpus. Its number in the list of all is its name: documents are drawn by it."""

    path: Path
    split: Split
    language: str
    documents: str = "auto"  # of `documents.KINDS`


def listed(train: list[str], valid: list[str], language: str, documents: str, *, languages: bool) -> list[Source]:
    """All files, those of training first.

    Args:
        train: files and folders, each also as KIND:PATH. documents: the kind of the others. language: of all text,
            unless `languages`: then each folder given holds a folder a language, named by its code.
    Raises:
        CorpusError: what does not exist, a folder without files, an unfinished download.
    """
    given: dict[Split, list[str]] = {"train": train, "valid": valid}
    found: list[Source] = []
    for split, words in given.items():
        named: list[Source] = []
        for word in words:
            kind, root = _kind(word, documents)
            parts = _languages(root) if languages else [(language, root)]
            named += [Source(path, split, code, kind) for code, part in parts for path in _files(part)]
        once = set(_once(dict.fromkeys(source.path for source in named)))
        found += [source for source in named if source.path in once]
    return found


def _kind(word: str, otherwise: str) -> tuple[str, Path]:
    kind, colon, path = word.partition(":")
    return (kind, Path(path)) if colon and kind in KINDS and not Path(word).exists() else (otherwise, Path(word))


def _languages(root: Path) -> list[tuple[str, Path]]:
    if not root.is_dir():
        raise CorpusError(f"{root}: with --languages a folder is wanted that holds a folder a language (en, de, ...)")
    inside = [path for path in sorted(root.iterdir()) if not path.name.startswith(".")]
    stray = next((path for path in inside if not path.is_dir()), None)
    if stray or not inside:
        what = f"{stray} is not in the folder of a language" if stray else f"{root} is empty"
        raise CorpusError(f"{what}: --languages wants {root}/en/..., {root}/de/...")
    return [(path.name, path) for path in inside]


def _files(root: Path) -> list[Path]:
    """The file itself, all files in the folder and those below it, or those that a pattern fits."""
    if not root.exists() and any(mark in root.name for mark in "*?["):
        return _matching(root)
    if root.is_file():
        return [root.absolute()]
    if not root.is_dir():
        raise CorpusError(f"{root}: no such file or folder; give text with --train and --valid")
    found = sorted(_below(root.absolute(), frozenset()))
    if not found:
        raise CorpusError(f"{root}: a folder without files; give one with text")
    return found


def _matching(pattern: Path) -> list[Path]:
    """Left to us by a command that no shell has read."""
    found = sorted(path for path in pattern.absolute().parent.glob(pattern.name) if path.is_file())
    if not found:
        raise CorpusError(f"{pattern}: no such files; fetch them first, or give others")
    return found


def _below(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Links are followed, as large corpora are often put together by them."""
    real = folder.resolve()
    if real in above:
        raise CorpusError(f"{folder}: a link to a folder that it is in; remove it")
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _below(path, above | {real})
        elif path.is_file():
            yield path
        else:
            raise CorpusError(f"{path}: a link to nothing, or no file; remove it")


def _once(paths: Iterable[Path]) -> Iterator[Path]:
    """The downloader leaves X.gz beside X, which it unpacked: where both are given, the text counts once."""
    paths = list(paths)
    there = {*paths, *(folder for path in paths for folder in path.parents)}
    for path in paths:
        if path.suffix == ".part":
            raise CorpusError(f"{path}: an unfinished download; fetch it again, or remove it")
        plain = path.with_suffix("") if path.suffix in OPENERS else path
        plain = plain.with_suffix("") if plain.suffix == ".tar" else plain
        if plain != path and plain in there:
            print(f"{path} is left out: {plain.name}, what is in it, is beside it", flush=True)
            continue
        yield path
