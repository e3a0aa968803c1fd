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
    """Describe a file of a corpus.

    Random numbers depend on the number of the file in the list of all files, not on its path.
    """

    path: Path
    split: Split
    language: str
    documents: str = "auto"  # one of `documents.KINDS`


def listed(train: list[str], valid: list[str], language: str, documents: str, *, languages: bool) -> list[Source]:
    """Return all files, training files first.

    Args:
        train: Training files and folders, each as PATH or KIND:PATH.
        valid: Validation files and folders, each as PATH or KIND:PATH.
        language: Language of all text, unless `languages` is set.
        documents: Kind of the files whose path has no KIND.
        languages: Whether the given folders contain one subfolder per language, named by the language's code.
    Raises:
        CorpusError: A path does not exist, a folder has no files, or a download is unfinished.
    """
    words_by_split: dict[Split, list[str]] = {"train": train, "valid": valid}
    sources: list[Source] = []
    for split, words in words_by_split.items():
        split_sources: list[Source] = []
        for word in words:
            kind, root = _kind(word, documents)
            parts = _languages(root) if languages else [(language, root)]
            split_sources += [Source(path, split, code, kind) for code, part in parts for path in _files(part)]
        paths = set(_once(dict.fromkeys(source.path for source in split_sources)))
        sources += [source for source in split_sources if source.path in paths]
    return sources


def _kind(word: str, otherwise: str) -> tuple[str, Path]:
    kind, colon, path = word.partition(":")
    return (kind, Path(path)) if colon and kind in KINDS and not Path(word).exists() else (otherwise, Path(word))


def _languages(root: Path) -> list[tuple[str, Path]]:
    if not root.is_dir():
        raise CorpusError(f"{root} is not a folder. With --languages, give a folder with one folder per language.")
    inside = [path for path in sorted(root.iterdir()) if not path.name.startswith(".")]
    stray = next((path for path in inside if not path.is_dir()), None)
    if stray or not inside:
        problem = f"{stray} is not a folder" if stray else f"{root} is empty"
        raise CorpusError(f"{problem}. With --languages, sort the files into folders such as {root}/en.")
    return [(path.name, path) for path in inside]


def _files(root: Path) -> list[Path]:
    """Return the files that `root` stands for: `root` is a file, a folder of files or a pattern such as `*.txt`."""
    if not root.exists() and any(mark in root.name for mark in "*?["):
        return _matching(root)
    if root.is_file():
        return [root.absolute()]
    if not root.is_dir():
        raise CorpusError(f"{root}: no such file or folder. Give text files or folders with --train and --valid.")
    files = sorted(_below(root.absolute(), frozenset()))
    if not files:
        raise CorpusError(f"{root}: the folder has no files. Give a folder with text files.")
    return files


def _matching(pattern: Path) -> list[Path]:
    """Expand a pattern that the shell left as it is, and return the matching files."""
    files = sorted(path for path in pattern.absolute().parent.glob(pattern.name) if path.is_file())
    if not files:
        raise CorpusError(f"{pattern}: no file matches this pattern. Fetch the files first, or give other files.")
    return files


def _below(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Yield all files below a folder; links are followed, because large corpora are often assembled with them."""
    real = folder.resolve()
    if real in above:
        raise CorpusError(f"{folder} is a link to a folder above it. Remove the link.")
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _below(path, above | {real})
        elif path.is_file():
            yield path
        else:
            raise CorpusError(f"{path} is a broken link or not a regular file. Remove it.")


def _once(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield each text once: if X.gz and X both exist, skip X.gz, which fetch.py keeps after unpacking."""
    paths = list(paths)
    there = {*paths, *(folder for path in paths for folder in path.parents)}
    for path in paths:
        if path.suffix == ".part":
            raise CorpusError(f"{path} is an unfinished download. Fetch the file again, or remove it.")
        plain = path.with_suffix("") if path.suffix in OPENERS else path
        plain = plain.with_suffix("") if plain.suffix == ".tar" else plain
        if plain != path and plain in there:
            print(f"{path} is skipped, because its unpacked content {plain.name} is in the same folder", flush=True)
            continue
        yield path
