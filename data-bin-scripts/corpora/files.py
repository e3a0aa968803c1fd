"""List the files of a corpus in an order that does not depend on the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from shared import CorpusError

from .documents import KINDS
from .keys import VALID, fractions, keys
from .lines import OPENERS


class Source(NamedTuple):
    """Describe a file of a corpus: its split (train or valid), the language of its text, and its format (see `KINDS`).

    Random numbers depend on the number of the file in the list of all files, not on its path.
    """

    path: Path
    split: str
    language: str
    documents: str = "auto"


def listed(words: dict[str, list[str]], language: str, documents: str, *, languages: bool) -> list[Source]:
    """Return the files of each split in order.

    Args:
        words: Files, folders and patterns of each split, each as PATH or KIND:PATH.
        language: Language of all text, unless `languages` is set.
        documents: Kind of the files whose path has no KIND.
        languages: Whether the given folders contain one subfolder per language, named by the language's code.
    Raises:
        CorpusError: A path does not exist, a folder has no files, or a download is unfinished.
    """
    sources: list[Source] = []
    for split, paths in words.items():
        for word in paths:
            kind, colon, rest = word.partition(":")
            named = bool(colon) and kind in KINDS and not Path(word).exists()
            root = Path(rest if named else word)
            for code, part in _languages(root) if languages else [(language, root)]:
                sources += [Source(path, split, code, kind if named else documents) for path in _files(part)]
    return list(_once(sources))


def _languages(root: Path) -> list[tuple[str, Path]]:
    inside = sorted(path for path in root.glob("*") if not path.name.startswith("."))
    stray = next((path for path in inside if not path.is_dir()), None)
    if stray or not inside:
        problem = f"{stray} is not a folder" if stray else f"{root} has no folders"
        raise CorpusError(f"{problem}. With --languages, sort the files into folders such as {root}/en.")
    return [(path.name, path) for path in inside]


def _files(root: Path) -> list[Path]:
    """Return the files that `root` stands for: `root` is a file, a folder of files or a pattern such as `*.txt`."""
    if root.is_file():
        return [root.absolute()]
    found = _below(root.absolute()) if root.is_dir() else root.absolute().parent.glob(root.name)
    files = sorted(path for path in found if not path.name.startswith("."))
    if bad := next((path for path in files if not path.is_file() or path.suffix == ".part"), None):
        raise CorpusError(f"{bad} is an unfinished download, a broken link or not a regular file. Remove it.")
    if not files:
        raise CorpusError(f"{root}: there are no such files. Give text files or folders with --train and --valid.")
    return files


def _below(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder; links are followed, because large corpora are often assembled with them."""
    seen: set[Path] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        yield from (Path(place, name) for name in files)
        folders[:] = [name for name in folders if not name.startswith(".") and Path(place, name).resolve() not in seen]
        seen |= {Path(place, name).resolve() for name in folders}


def _once(sources: list[Source]) -> Iterator[Source]:
    """Yield each text once: if X.gz and X both exist, skip X.gz, which fetch.py keeps after unpacking."""
    known = {(source.split, place) for source in sources for place in (source.path, *source.path.parents)}
    seen: set[tuple[str, Path]] = set()
    for source in sources:
        plain = source.path.with_suffix("") if source.path.suffix in OPENERS else source.path
        plain = plain.with_suffix("") if plain.suffix == ".tar" else plain
        if plain != source.path and (source.split, plain) in known:
            print(f"{source.path} is skipped, because its unpacked content {plain.name} is beside it", flush=True)
        elif (source.split, source.path) not in seen:
            seen.add((source.split, source.path))
            yield source


def is_valid(source: Source, file: int, index: int, seed: int, part: float) -> bool:
    """Return whether a document is for validation: its file is, or it is drawn with the probability `part`."""
    drawn = bool(part) and float(fractions(keys(seed, VALID, file, index))[0]) < part
    return drawn or source.split == "valid"
