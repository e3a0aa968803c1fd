"""The files of a corpus, in an order that does not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from .compressed import OPENERS
from .errors import CorpusError

Split = Literal["train", "valid"]


class Source(NamedTuple):
    """A file of a corpus. Its number in the list of all is its name: documents are drawn by it."""

    path: Path
    split: Split
    language: str


def listed(train: list[Path], valid: list[Path], language: str, *, languages: bool) -> list[Source]:
    """All files, those of training first.

    Args:
        language: of all text, unless `languages`: then each folder given holds a folder a language, named by its code.
    Raises:
        CorpusError: what does not exist, a folder without files, an unfinished download.
    """
    given: dict[Split, list[Path]] = {"train": train, "valid": valid}
    found: list[Source] = []
    for split, paths in given.items():
        for root in paths:
            parts = _languages(root) if languages else [(language, root)]
            found += [Source(path, split, code) for code, part in parts for path in _files(part)]
    return found


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
    """The file itself, or all files in the folder and those below it."""
    if root.is_file():
        return [root.resolve()]
    if not root.is_dir():
        raise CorpusError(f"{root}: no such file or folder; give text with --train and --valid")
    found = sorted(path for path in root.resolve().rglob("*") if path.is_file() and not _hidden(path, root.resolve()))
    if not found:
        raise CorpusError(f"{root}: a folder without files; give one with text")
    return list(_once(found))


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _once(paths: Iterable[Path]) -> Iterator[Path]:
    """The downloader leaves X.gz beside X, which it unpacked: the text counts once."""
    paths = list(paths)
    there = set(paths)
    for path in paths:
        if path.suffix == ".part":
            raise CorpusError(f"{path}: an unfinished download; fetch it again, or remove it")
        if path.suffix in OPENERS and path.with_suffix("") in there:
            print(f"{path} is left out: {path.with_suffix('').name} is beside it", flush=True)
            continue
        yield path
