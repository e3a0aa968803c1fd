"""Which files are a corpus or a test set: by the names under which they are published, or as plain lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from corpora.compressed import OPENERS, there
from corpora.errors import CorpusError

#: ISO 639-3, by which OPUS names the files of WMT's test sets
LONG = {"en": "eng", "de": "deu", "cs": "ces"}
#: where WMT's archives and OPUS have test sets, below the folder that is given
BELOW = ("", "dev", "test", "test-full", "{a}-{b}", "{b}-{a}", "{A}-{B}", "{B}-{A}")
NEWSTEST = re.compile(r"newstest20\d\d")
#: WMT's test sets as sacreBLEU fetches, checks and keeps them (in ~/.sacrebleu, or $SACREBLEU)
SACREBLEU = "sacrebleu"
#: of 2014, sacreBLEU's wmt14 lacks 266 sentences of the en-de set that was published afterwards
NAMES = {"newstest2014": "wmt14/full"}
Pair = tuple[str, str]


class Source(NamedTuple):
    """A corpus of training, or a set. split: train, valid or test. files: of the two languages."""

    split: str
    name: str
    files: tuple[Path, Path]


def training(prefix: str, pair: Pair) -> Source:
    """PREFIX.A and PREFIX.B.

    Raises:
        CorpusError: one is not there.
    """
    path = Path(prefix)
    files = _both(path.parent, *(f"{path.name}.{language}" for language in pair))
    if files is None:
        names = f"{path.name}.{pair[0]} and {path.name}.{pair[1]}"
        raise CorpusError(f"{path.parent}: {names} are wanted, plain or {', '.join(OPENERS)}; {_there(path)}")
    return Source("train", path.name, files)


def held_out(split: str, word: str, newstest: str, pair: Pair, *, look: bool = False) -> Source:
    """A set.

    Args:
        word: newstestYEAR, looked for in `newstest` (a folder, or sacrebleu), or a path without the ends of its names.
        look: fetch nothing.
    Raises:
        CorpusError: it is not there.
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
    """The files of a set, in any of the forms: sgm before lines, as it tells documents apart."""
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
    """The plain file before a packed one: the downloader leaves both."""
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
    """The two sgm files of newstestYEAR, fetched if they are not there.

    Args:
        look: fetch nothing, and name the files as sacreBLEU does.
    Raises:
        CorpusError: sacreBLEU does not have the set or the pair, or could not fetch it.
    """
    from sacrebleu.dataset import DATASETS  # a second, which --help does not need

    name, languages = NAMES.get(word, f"wmt{word[-2:]}"), "-".join(pair)
    dataset = DATASETS.get(name)
    if dataset is None or languages not in dataset.langpairs:
        raise CorpusError(f"--newstest {SACREBLEU}: it has no {languages} of {word} ({name}); --newstest FOLDER")
    named = dataset.langpairs[languages]
    if look:
        return Path(f"{SACREBLEU}:{name}", named[0]), Path(f"{SACREBLEU}:{name}", named[1])
    try:
        lines = Path(dataset.get_files(languages)[0])
    except (OSError, SystemExit, EOFError) as error:  # it ends the program where a checksum is wrong
        raise CorpusError(
            f"--newstest {SACREBLEU}: {word} could not be fetched from {' '.join(dataset.data)} ({error}); try "
            "again, or --newstest FOLDER with the sgm files"
        ) from None
    return lines.parent / "raw" / named[0], lines.parent / "raw" / named[1]
