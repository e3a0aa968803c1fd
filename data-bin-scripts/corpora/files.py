"""List the files of a corpus in an order that does not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from .compressed import OPENERS
from .documents import KINDS
from .errors import CorpusError

Split = Literal["train", "valid"]


class Source(NamedTuple):
    """A file of a corpus; its number in the list of all files identifies it when documents are drawn."""

    path: Path
    split: Split
    language: str
    documents: str = "auto"  # one of `documents.KINDS`


def listed(train: list[str], valid: list[str], language: str, documents: str, *, languages: bool) -> list[Source]:
    """Return all files, those of training first.

    Args:
        train: Files and folders of training, each also as KIND:PATH.
        valid: Those of validation.
        language: Language of all text, unless `languages` is set.
        documents: Kind of the files that name none.
        languages: Each given folder holds one folder per language, named by the language's code.
    Raises:
        CorpusError: A path does not exist, a folder has no files, or a download is unfinished.
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
    """Return the file itself, all files below the folder, or the files that match the pattern."""
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
    """Return the files that match a pattern, which no shell has expanded."""
    found = sorted(path for path in pattern.absolute().parent.glob(pattern.name) if path.is_file())
    if not found:
        raise CorpusError(f"{pattern}: no such files; fetch them first, or give others")
    return found


def _below(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Yield all files below a folder; links are followed, because large corpora are often assembled with them."""
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
    """Yield each text once: where X.gz and X are both given, skip X.gz, which the downloader keeps after unpacking."""
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
