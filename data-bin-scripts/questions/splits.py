"""Assign files to splits, and divide a single file into three splits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from corpora import keys
from corpora.compressed import there
from corpora.errors import CorpusError

from .reading import Question, is_json, read

SPLITS = ("train", "valid", "test")
#: names of a split in file names; Du et al. and SQuAD use dev
ALSO = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
#: file names of a split, the user's own and the published ones
NAMES = ("{}.json", "src-{}.txt", "{}-v1.1.json", "{}-v2.0.json", "cmrc2018_{}.json")
SHARES = (8, 1, 1)

Files = dict[str, Path]


def find(text: Path, names: Sequence[str] = NAMES, flags: str = "--train and --valid") -> Files:
    """Return the files of a folder by split, or {'': text} for a single file.

    Args:
        names: Patterns of the file names of a split.
        flags: Options with which the user can name files, for errors.
    Raises:
        CorpusError: The path does not exist, a training or validation file is missing, or a split has several files.
    """
    if text.is_file():
        if not is_json(text):
            raise CorpusError(f"{text}: a lone file is NAME.json; of src-NAME.txt give the folder, or --train, --valid")
        return {"": text}
    if not text.is_dir():
        raise CorpusError(f"{text}: no such file or folder")
    found = {split: path for split in SPLITS if (path := _only(text, split, names, flags))}
    for split in ("train", "valid"):
        if split not in found:
            some = ", ".join(name.format(word) for word in ALSO[split] for name in names[:2])
            others = ", ".join(sorted(path.name for path in text.iterdir())[:10]) or "nothing"
            raise CorpusError(
                f"{text}: no file of {split} ({some}, plain or .gz); there is: {others}. Name files with {flags}"
            )
    return found


def _only(folder: Path, split: str, names: Sequence[str], flags: str) -> Path | None:
    some = [name.format(word) for word in ALSO[split] for name in names]
    files = {name: path for name in some if (path := there(folder / name))}
    if len(files) > 1:
        one, other, *_ = files
        raise CorpusError(f"{folder} has both {one} and {other} for {split}: name files with {flags}")
    return next(iter(files.values()), None)


def questions(files: Files, seed: int, limit: int, limit_others: int) -> dict[str, list[Question]]:
    """Return the questions by split; a single file is divided by article, 8:1:1.

    Args:
        seed: Random seed of the division.
        limit: Maximum number of training questions; 0: all.
        limit_others: Maximum number of questions of each other split; 0: all.
    Raises:
        CorpusError: The files have two formats, or a single file has fewer than three articles.
    """
    if "" in files:
        found = parts(read(files[""]), files[""], seed)
    elif len({is_json(path) for path in files.values()}) > 1:
        raise CorpusError(f"{', '.join(map(str, files.values()))}: json and lines together; all splits are of one form")
    else:
        found = {split: read(path) for split, path in files.items()}
    return {split: some[: (limit if split == "train" else limit_others) or None] for split, some in found.items()}


def parts(
    found: list[Question], path: Path, seed: int, flags: str = "--train and --valid"
) -> dict[str, list[Question]]:
    """Split a file by its articles in random order: the first tenth (at least one) is test, and the next tenth valid.

    Args:
        flags: Options with which the user can name files, for errors.
    Raises:
        CorpusError: The file has fewer than three articles.
    """
    by_article: dict[int, list[Question]] = defaultdict(list)
    for one in found:
        by_article[one.article].append(one)
    if len(by_article) < 3:
        raise CorpusError(
            f"{path} has questions on {len(by_article)} articles; 3 or more can be split. Name files with {flags}"
        )
    drawn = sorted(by_article, key=lambda article: int(keys.keys(seed, keys.ORDER, article)[0]))
    tenth = max(1, len(drawn) * SHARES[2] // sum(SHARES))
    chosen = {"train": drawn[2 * tenth :], "valid": drawn[tenth : 2 * tenth], "test": drawn[:tenth]}
    return {split: [one for article in sorted(some) for one in by_article[article]] for split, some in chosen.items()}
