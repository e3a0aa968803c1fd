"""Find the files of a corpus or a test set under the names that their publishers use, or as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from corpora.compressed import OPENERS, there
from corpora.errors import CorpusError

#: ISO 639-3 codes, which OPUS uses in the file names of WMT's test sets.
LONG = {"en": "eng", "de": "deu", "cs": "ces"}
#: Subfolders in which WMT's archives and OPUS hold test sets.
BELOW = ("", "dev", "test", "test-full", "{a}-{b}", "{b}-{a}", "{A}-{B}", "{B}-{A}")
NEWSTEST = re.compile(r"newstest20\d\d")
#: Value of --newstest for the test sets that sacreBLEU downloads, checks and stores (in ~/.sacrebleu or $SACREBLEU).
SACREBLEU = "sacrebleu"
#: sacreBLEU's wmt14 lacks 266 sentences of the full en-de set of 2014, which was published later.
NAMES = {"newstest2014": "wmt14/full"}
Pair = tuple[str, str]


class Source(NamedTuple):
    """Hold the name and the two files of a training corpus, a validation set or a test set.

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
        names = f"{path.name}.{pair[0]} or {path.name}.{pair[1]}"
        raise CorpusError(f"--train {prefix}: {names} is missing (plain or {', '.join(OPENERS)}). {_listing(path)}")
    return Source("train", path.name, files)


def held_out(split: str, name: str, newstest: str, pair: Pair, *, look: bool = False) -> Source:
    """Return a validation or test set.

    Args:
        name: newstestYEAR, or a path without the endings of the two files.
        newstest: Folder that holds newstestYEAR, or `sacrebleu` to download it; empty if `name` is a path.
        look: Whether to look up only the names of the files, and download nothing.
    Raises:
        CorpusError: The set does not exist.
    """
    path = Path(name)
    if not (newstest and NEWSTEST.fullmatch(name)):
        files = _named(path.parent, path.name, pair)
        if files is None:
            cure = "" if newstest or path.parent != Path() else " Give the folder of WMT's sets with --newstest."
            what = f"the set needs {_forms(path.name, pair)}"
            raise CorpusError(f"--{split} {name}: {what}. {_listing(path)}{cure}")
        return Source(split, path.name, files)
    if newstest == SACREBLEU:
        return Source(split, name, _fetched(name, pair, look=look))
    folders = [Path(newstest) / _filled(below, pair) for below in BELOW]
    files = next((files for folder in folders if (files := _named(folder, name, pair))), None)
    if files is None:
        searched = ", ".join(dict.fromkeys(str(folder) for folder in folders if folder.is_dir())) or "that folder"
        what = f"{name} ({_forms(name, pair)}) is missing in {searched}"
        raise CorpusError(f"--newstest {newstest}: {what}. Name other sets with --valid and --test.")
    return Source(split, name, files)


def _named(folder: Path, name: str, pair: Pair) -> tuple[Path, Path] | None:
    """Return the files of a set in any known form; sgm files come first, because they contain document boundaries."""
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
    first, second = (there(folder / name, OPENERS) for name in names)
    return (first, second) if first and second else None


def _listing(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no folder {path.parent}."
    names = sorted(file.name for file in path.parent.iterdir() if file.is_file())
    return f"The files of {path.parent} are {', '.join(names[:10])}." if names else f"{path.parent} holds no files."


def _filled(below: str, pair: Pair) -> str:
    a, b = pair
    return below.format(a=a, b=b, A=LONG.get(a, a), B=LONG.get(b, b))


def _fetched(newstest: str, pair: Pair, *, look: bool = False) -> tuple[Path, Path]:
    """Return the two sgm files of newstestYEAR; download them if they do not exist.

    Args:
        look: Whether to return only the names that sacreBLEU gives to the files, without downloading them.
    Raises:
        CorpusError: sacreBLEU lacks the set or the pair, or the download failed.
    """
    from sacrebleu.dataset import DATASETS  # takes a second, which --help does not need

    name, languages = NAMES.get(newstest, f"wmt{newstest[-2:]}"), "-".join(pair)
    dataset, cure = DATASETS.get(name), "give a folder with the sgm files as --newstest DIR"
    if dataset is None or languages not in dataset.langpairs:
        what = f"sacreBLEU has no {newstest} ({name}) for {languages}"
        raise CorpusError(f"--newstest {SACREBLEU}: {what}. Name other sets, or {cure}.")
    names = dataset.langpairs[languages]
    if look:
        return Path(f"{SACREBLEU}:{name}", names[0]), Path(f"{SACREBLEU}:{name}", names[1])
    try:
        lines = Path(dataset.get_files(languages)[0])
    except (OSError, SystemExit, EOFError) as error:  # sacreBLEU exits if a checksum is wrong
        what = f"{newstest} could not be fetched from {' '.join(dataset.data)} ({error})"
        raise CorpusError(f"--newstest {SACREBLEU}: {what}. Try again, or {cure}.") from None
    return lines.parent / "raw" / names[0], lines.parent / "raw" / names[1]
