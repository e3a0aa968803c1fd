"""WMT's test sets as sacreBLEU fetches, checks and keeps them (in ~/.sacrebleu, or $SACREBLEU)."""

from __future__ import annotations

from pathlib import Path

from corpora.errors import CorpusError

SACREBLEU = "sacrebleu"
#: of 2014, sacreBLEU's wmt14 lacks 266 sentences of the en-de set that was published afterwards
NAMES = {"newstest2014": "wmt14/full"}


def fetched(word: str, pair: tuple[str, str], *, look: bool = False) -> tuple[Path, Path]:
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
