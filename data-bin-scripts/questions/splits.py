"""Find the file of each split, and divide a single file into three splits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from corpora import keys
from corpora.compressed import there
from corpora.errors import CorpusError

from .reading import Question, is_json, read

SPLITS = ("train", "valid", "test")
#: words for a split in file names; Du et al. and SQuAD use dev
ALSO = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
#: patterns of file names, the user's own and the published ones
NAMES = ("{}.json", "src-{}.txt", "{}-v1.1.json", "{}-v2.0.json", "cmrc2018_{}.json")
SHARES = (8, 1, 1)

Files = dict[str, Path]


def find(text: Path, names: Sequence[str] = NAMES, flags: str = "--train and --valid") -> Files:
    """Return the files of a folder by split, or {'': text} for a single file.

    Args:
        names: Patterns of the file names of a split.
        flags: Options that name the files of the splits, for error messages.
    Raises:
        CorpusError: The path does not exist, a training or validation file is missing, or a split has several files.
    """
    if text.is_file():
        if not is_json(text):
            raise CorpusError(
                f"{text}: a single file must be NAME.json. Give the folder with src-NAME.txt, or --train and --valid."
            )
        return {"": text}
    if not text.is_dir():
        raise CorpusError(f"{text}: no such file or folder.")
    files = {split: path for split in SPLITS if (path := _only(text, split, names, flags))}
    for split in ("train", "valid"):
        if split not in files:
            expected = ", ".join(name.format(word) for word in ALSO[split] for name in names[:2])
            existing = ", ".join(sorted(path.name for path in text.iterdir())[:10]) or "nothing"
            problem = f"the folder has no file for {split} ({expected}, plain or .gz); it holds {existing}"
            raise CorpusError(f"{text}: {problem}. Give the files with {flags}.")
    return files


def _only(folder: Path, split: str, names: Sequence[str], flags: str) -> Path | None:
    candidates = [name.format(word) for word in ALSO[split] for name in names]
    files = {name: path for name in candidates if (path := there(folder / name))}
    if len(files) > 1:
        first, other, *_ = files
        raise CorpusError(f"{folder} has both {first} and {other} for {split}. Give the files with {flags}.")
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
        by_split = parts(read(files[""]), files[""], seed)
    elif len({is_json(path) for path in files.values()}) > 1:
        raise CorpusError(f"{', '.join(map(str, files.values()))}: give all splits as JSON, or all as src-*.txt.")
    else:
        by_split = {split: read(path) for split, path in files.items()}
    return {split: part[: (limit if split == "train" else limit_others) or None] for split, part in by_split.items()}


def parts(
    questions: list[Question], path: Path, seed: int, flags: str = "--train and --valid"
) -> dict[str, list[Question]]:
    """Split the articles randomly; test and valid each get a tenth of the articles, but at least one.

    Args:
        flags: Options that name the files of the splits, for error messages.
    Raises:
        CorpusError: The file has fewer than three articles.
    """
    by_article: dict[int, list[Question]] = defaultdict(list)
    for question in questions:
        by_article[question.article].append(question)
    if len(by_article) < 3:
        problem = f"splitting needs 3 or more articles, but the file has {len(by_article)}"
        raise CorpusError(f"{path}: {problem}. Give a file for each split with {flags}.")
    drawn = sorted(by_article, key=lambda article: int(keys.keys(seed, keys.ORDER, article)[0]))
    tenth = max(1, len(drawn) * SHARES[2] // sum(SHARES))
    chosen = {"train": drawn[2 * tenth :], "valid": drawn[tenth : 2 * tenth], "test": drawn[:tenth]}
    return {
        split: [entry for article in sorted(part) for entry in by_article[article]] for split, part in chosen.items()
    }
