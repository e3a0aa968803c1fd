"""Find the files of a corpus or a test set, by the names under which they are published, or as plain lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from corpora.compressed import OPENERS, there
from corpora.errors import CorpusError

#: ISO 639-3 codes, with which OPUS names the files of WMT's test sets
LONG = {"en": "eng", "de": "deu", "cs": "ces"}
#: subfolders in which WMT's archives and OPUS hold test sets
BELOW = ("", "dev", "test", "test-full", "{a}-{b}", "{b}-{a}", "{A}-{B}", "{B}-{A}")
NEWSTEST = re.compile(r"newstest20\d\d")
#: WMT's test sets as sacreBLEU fetches, checks and stores them (in ~/.sacrebleu or $SACREBLEU)
SACREBLEU = "sacrebleu"
#: sacreBLEU's wmt14 lacks 266 sentences of the full en-de set of 2014, which was published later
NAMES = {"newstest2014": "wmt14/full"}
Pair = tuple[str, str]


class Source(NamedTuple):
    """A training corpus, or a validation or test set.

    Args:
        split: train, valid or test.
        files: Files of the two languages.
    """

    split: str
    name: str
    files: tuple[Path, Path]


def training(prefix: str, pair: Pair) -> Source:
    """Return the training corpus PREFIX.A and PREFIX.B.

    Raises:
        CorpusError: One of the files does not exist.
    """
    path = Path(prefix)
    files = _both(path.parent, *(f"{path.name}.{language}" for language in pair))
    if files is None:
        names = f"{path.name}.{pair[0]} and {path.name}.{pair[1]}"
        raise CorpusError(f"{path.parent}: {names} are wanted, plain or {', '.join(OPENERS)}; {_there(path)}")
    return Source("train", path.name, files)


def held_out(split: str, word: str, newstest: str, pair: Pair, *, look: bool = False) -> Source:
    """Return a validation or test set.

    Args:
        word: newstestYEAR, or a path without the endings of the two files.
        newstest: Folder that holds newstestYEAR, or sacrebleu; empty: `word` is a path.
        look: Fetch nothing.
    Raises:
        CorpusError: The set does not exist.
    """
    path = Path(word)
    if not (newstest and NEWSTEST.fullmatch(word)):
        files = _named(path.parent, path.name, pair)
        if files is None:
            cure = "" if newstest or path.parent != Path() else "; --newstest says where WMT's sets are"
            raise CorpusError(
                f"{word}: no such set of {'-'.join(pair)} ({_forms(path.name, pair)}); {_there(path)}{cure}"
            )
        return Source(split, path.name, files)
    if newstest == SACREBLEU:
        return Source(split, word, _fetched(word, pair, look=look))
    folders = [Path(newstest) / _filled(below, pair) for below in BELOW]
    found = next((files for folder in folders if (files := _named(folder, word, pair))), None)
    if found is None:
        tried = ", ".join(dict.fromkeys(str(folder) for folder in folders if folder.is_dir())) or "no folder"
        raise CorpusError(
            f"--newstest {newstest}: no {word} of {'-'.join(pair)} ({_forms(word, pair)}); looked in {tried}. Name "
            "other sets with --valid and --test"
        )
    return Source(split, word, found)


def _named(folder: Path, name: str, pair: Pair) -> tuple[Path, Path] | None:
    """Return the files of a set in any known form; sgm comes first, as it has document boundaries."""
    return next((files for names in _names(name, pair) if (files := _both(folder, *names))), None)


def _names(name: str, pair: Pair) -> Iterator[tuple[str, str]]:
    a, b = pair
    yield f"{name}-{a}{b}-src.{a}.sgm", f"{name}-{a}{b}-ref.{b}.sgm"
    yield f"{name}-{b}{a}-src.{a}.sgm", f"{name}-{b}{a}-ref.{b}.sgm"  # 2014
    yield f"{name}-{b}{a}-ref.{a}.sgm", f"{name}-{b}{a}-src.{b}.sgm"
    yield f"{name}-src.{a}.sgm", f"{name}-ref.{b}.sgm"
    yield f"{name}-src.{a}.sgm", f"{name}-src.{b}.sgm"  # 2013
    yield f"{name}.{a}", f"{name}.{b}"
    yield f"{name}.{LONG.get(a, a)}", f"{name}.{LONG.get(b, b)}"


def _forms(name: str, pair: Pair) -> str:
    forms = [*_names(name, pair)]
    return " and ".join(forms[0]) + ", or " + " and ".join(forms[5])


def _both(folder: Path, *names: str) -> tuple[Path, Path] | None:
    """Return both files, or None if one is missing; prefer a plain file to a compressed one."""
    one, other = (there(folder / name, OPENERS) for name in names)
    return (one, other) if one and other else None


def _there(path: Path) -> str:
    if not path.parent.is_dir():
        return f"{path.parent} is no folder"
    names = sorted(one.name for one in path.parent.iterdir() if one.is_file())
    return f"there is: {', '.join(names[:10]) or 'nothing'}"


def _filled(below: str, pair: Pair) -> str:
    a, b = pair
    return below.format(a=a, b=b, A=LONG.get(a, a), B=LONG.get(b, b))


def _fetched(word: str, pair: Pair, *, look: bool = False) -> tuple[Path, Path]:
    """Return the two sgm files of newstestYEAR; fetch them if they do not exist.

    Args:
        look: Fetch nothing, and return sacreBLEU's names of the files.
    Raises:
        CorpusError: sacreBLEU lacks the set or the pair, or the download failed.
    """
    from sacrebleu.dataset import DATASETS  # takes a second, which --help does not need

    name, languages = NAMES.get(word, f"wmt{word[-2:]}"), "-".join(pair)
    dataset = DATASETS.get(name)
    if dataset is None or languages not in dataset.langpairs:
        raise CorpusError(f"--newstest {SACREBLEU}: it has no {languages} of {word} ({name}); --newstest FOLDER")
    named = dataset.langpairs[languages]
    if look:
        return Path(f"{SACREBLEU}:{name}", named[0]), Path(f"{SACREBLEU}:{name}", named[1])
    try:
        lines = Path(dataset.get_files(languages)[0])
    except (OSError, SystemExit, EOFError) as error:  # sacreBLEU exits if a checksum is wrong
        raise CorpusError(
            f"--newstest {SACREBLEU}: {word} could not be fetched from {' '.join(dataset.data)} ({error}); try "
            "again, or --newstest FOLDER with the sgm files"
        ) from None
    return lines.parent / "raw" / named[0], lines.parent / "raw" / named[1]
