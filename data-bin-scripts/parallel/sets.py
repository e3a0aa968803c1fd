"""Find training corpora, validation sets and test sets, and read their pairs."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from corpora.lines import OPENERS, decoded, is_seen, opened, raw, there, tidy
from shared import CorpusError

NEWSTEST = re.compile(r"newstest20\d\d")
#: Value of --newstest for the test sets that sacreBLEU downloads, checks and stores (in ~/.sacrebleu or $SACREBLEU).
SACREBLEU = "sacrebleu"
#: sacreBLEU's wmt14 lacks 266 sentences of the full en-de set of 2014, which was published later.
NAMES = {"newstest2014": "wmt14/full"}
#: ISO 639-3 codes, which OPUS uses in the file names of WMT's test sets.
LONG = {"en": "eng", "de": "deu", "cs": "ces"}
Pair = tuple[str, str]


class Source(NamedTuple):
    """Hold the name and the two files of a training corpus, a validation set or a test set.

    Args:
        split: train, valid or test.
        files: Files of the two languages.
        entities: Whether the lines hold entities such as `&amp;`, which sacreBLEU leaves in its files.
    """

    split: str
    name: str
    files: tuple[Path, Path]
    entities: bool = False


def find(split: str, name: str, newstest: str, pair: Pair, *, download: bool = True) -> Source:
    """Return a corpus PREFIX.A and PREFIX.B (plain or compressed), or the set newstestYEAR.

    Args:
        newstest: Folder that holds newstestYEAR, also in subfolders such as eng-deu, or `sacrebleu`.
        download: Whether sacreBLEU downloads a set that does not exist yet.
    Raises:
        CorpusError: A file does not exist.
    """
    path = Path(name)
    folders, codes = [path.parent], [pair]
    if split != "train" and NEWSTEST.fullmatch(name):
        if newstest == SACREBLEU:
            return Source(split, name, _fetched(name, pair, download), entities=True)
        codes.append((LONG.get(pair[0], pair[0]), LONG.get(pair[1], pair[1])))
        below = ["-".join(names) for a, b in codes for names in ((a, b), (b, a))]
        folders = [Path(newstest, place) for place in ("", *below)]
    for folder in folders:
        for a, b in codes:
            first, second = there(folder / f"{path.name}.{a}", OPENERS), there(folder / f"{path.name}.{b}", OPENERS)
            if first and second:
                return Source(split, path.name, (first, second))
    files = sorted(file.name for file in folders[0].glob("*"))[:10]
    names = f"{path.name}.{pair[0]} or {path.name}.{pair[1]}"
    what = f"{names} is missing in {folders[0]} (plain or {', '.join(OPENERS)})"
    raise CorpusError(f"--{split} {name}: {what}. It holds {', '.join(files) or 'nothing'}.")


def _fetched(newstest: str, pair: Pair, download: bool) -> tuple[Path, Path]:
    from sacrebleu.dataset import DATASETS  # takes a second, which --help does not need

    name, languages = NAMES.get(newstest, f"wmt{newstest[-2:]}"), "-".join(pair)
    dataset, cure = DATASETS.get(name), "give a folder with the files as --newstest DIR"
    if dataset is None or languages not in dataset.langpairs:
        raise CorpusError(f"--newstest: sacreBLEU has no {newstest} ({name}) for {languages}. Name others, or {cure}.")
    try:
        files = dataset.get_files(languages) if download else dataset.langpairs[languages]
    except (OSError, SystemExit, EOFError) as error:  # sacreBLEU exits if a checksum is wrong
        what = f"{newstest} could not be fetched from {' '.join(dataset.data)} ({error})"
        raise CorpusError(f"--newstest: {what}. Try again, or {cure}.") from None
    return Path(files[0]), Path(files[1])


def pairs(files: tuple[Path, Path]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the lines of both files. Only a line feed ends a line; other line breaks would misalign the pairs.

    Raises:
        CorpusError: A file is damaged or empty, or the files have different numbers of lines.
    """
    number = 0
    with ExitStack() as stack:
        sides = (raw(path, stack.enter_context(opened(path))) for path in files)
        for number, (first, second) in enumerate(zip_longest(*sides), start=1):
            if first is None or second is None:
                short, long = files if first is None else files[::-1]
                what = f"{short} ends after line {number - 1}, but {long} continues with line {number}"
                raise CorpusError(f"{what}. Each line must translate that of the other file. Fetch both files again.")
            yield first, second
    if not number:
        raise CorpusError(f"{files[0]} and {files[1]} are both empty. Fetch both files again.")


def write(sources: list[Source], targets: tuple[Path, Path]) -> list[dict[str, object]]:
    """Write the sets of a split with the same normalisation as training text, because models know no other characters.

    Returns:
        The name of each set, its number of pairs, and the number of its pairs that were left out because a side is
        empty (only in validation sets).
    Raises:
        CorpusError: A line is not text, a side of a test pair is empty, or a set has no pairs.
    """
    counts: list[dict[str, object]] = []
    with targets[0].open("wb") as a, targets[1].open("wb") as b:
        for source in sources:
            kept = empty = 0
            for number, sides in enumerate(pairs(source.files), start=1):
                lines = [decoded(path, number, side) for path, side in zip(source.files, sides, strict=True)]
                texts = [tidy(html.unescape(line) if source.entities else line) for line in lines]
                if all(map(is_seen, texts)):
                    a.write(f"{texts[0]}\n".encode())
                    b.write(f"{texts[1]}\n".encode())
                    kept += 1
                elif source.split == "valid":
                    empty += 1
                else:
                    what = "the line is empty, but a test set must keep all lines. Fetch the file again."
                    raise CorpusError.at(source.files[is_seen(texts[0])], number, what)
            if not kept:
                raise CorpusError(f"{source.files[0]}: the set has no pair with text on both sides. Give another set.")
            counts.append({"name": source.name, "pairs": kept, "empty": empty})
    return counts
