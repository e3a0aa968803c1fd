"""Find XTREME's (Hu et al. 2020) published question files per language: XQuAD, MLQA and TyDiQA-GoldP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corpora.errors import CorpusError
from questions import reading


@dataclass(frozen=True)
class QuestionSet:
    """A set of questions in several languages.

    Args:
        languages: Languages, English first.
        names: Patterns of a language's file name; the first that exists is read.
        folders: Subfolders of --data that archives unpack to.
        long: Spelling of the languages in some of the names.
        united: Name of a file of all languages, whose question ids begin with the language, spelt as in `long`.
    """

    languages: tuple[str, ...]
    names: tuple[str, ...]
    folders: tuple[str, ...]
    long: Mapping[str, str] = field(default_factory=dict)
    united: str = ""

    def begin(self, language: str) -> str:
        """Return the prefix of a language's ids in the file of all languages."""
        return f"{self.long[language]}-"


TYDIQA = {
    "en": "english",
    "ar": "arabic",
    "bn": "bengali",
    "fi": "finnish",
    "id": "indonesian",
    "ko": "korean",
    "ru": "russian",
    "sw": "swahili",
    "te": "telugu",
}
SETS = {
    "xquad": QuestionSet(tuple("en ar de el es hi ru th tr vi zh".split()), ("xquad.{code}",), ("xquad",)),
    "mlqa": QuestionSet(
        tuple("en ar de es hi vi zh".split()),
        ("test-context-{code}-question-{code}",),
        tuple(f"{above}{name}" for above in ("", "mlqa/") for name in ("MLQA_V1/test", "test", "")),
    ),
    # XTREME's names, then the archive's; the other published file holds all languages
    "tydiqa": QuestionSet(
        tuple(TYDIQA),
        ("tydiqa.goldp.{code}.dev", "tydiqa-goldp-dev-{long}"),
        ("tydiqa-goldp-v1.1-dev", "tydiqa", "tydiqa/tydiqa-goldp-v1.1-dev"),
        TYDIQA,
        "tydiqa-goldp-v1.1-dev",
    ),
}
ENDS = (".json", ".json.gz")


def find(folder: Path, name: str, languages: Sequence[str] = ()) -> dict[str, Path]:
    """Return the files by language, in the set's order.

    A file with a part of the questions has one more word in its name, as in `xquad.de.part1.json.gz`.

    Args:
        name: One of `SETS`.
        languages: Languages that must exist; empty: take those that exist.
    Raises:
        CorpusError: A language is unknown or has no file, no file exists at all, or a language has two files.
    """
    known = SETS[name]
    strange = [one for one in languages if one not in known.languages]
    if strange:
        raise CorpusError(f"--languages {','.join(strange)}: {name} has {','.join(known.languages)}")
    wanted = [one for one in known.languages if one in (languages or known.languages)]
    found = {one: path for one in wanted if (path := _file(folder, known, _names(known, one), f"--eval {one}="))}
    found = found or _united(folder, known, wanted)
    missing = [one for one in wanted if one not in found]
    if missing and (languages or not found):
        names = [*_names(known, missing[0]), *([known.united] if known.united else [])]
        asked = " or ".join(f"{one}.json" for one in names)
        there = f"; --languages {','.join(found)} are there" if found else ""
        raise CorpusError(f"{folder}: no {asked} of {name}, plain or .gz, in it or in {known.folders[0]}/{there}")
    return found


def _united(folder: Path, known: QuestionSet, wanted: Sequence[str]) -> dict[str, Path]:
    """Return the file of all languages for each language that it contains."""
    path = _file(folder, known, [known.united], "--eval NAME=") if known.united else None
    ids = [one.id for one in reading.read(path, [])] if path else []
    return {one: path for one in wanted if path and any(word.startswith(known.begin(one)) for word in ids)}


def begins(name: str, files: Mapping[str, Path]) -> dict[str, str]:
    """Return the prefix of the ids for each language whose file also holds other languages.

    Args:
        files: Files by split, including splits that are not a language of the set.
    """
    known = SETS[name]
    shared = [one for one in known.languages if known.united and one in files]
    return {one: known.begin(one) for one in shared if files[one].name.startswith(known.united)}


def absent(name: str, found: Mapping[str, Path]) -> list[str]:
    """Return the languages of a set that have no file."""
    return [one for one in SETS[name].languages if one not in found]


def _names(known: QuestionSet, language: str) -> list[str]:
    return [one.format(code=language, long=known.long.get(language, "")) for one in known.names]


def _file(folder: Path, known: QuestionSet, names: Sequence[str], named: str) -> Path | None:
    for place in [folder, *(folder / one for one in known.folders)]:
        for stem in names:
            whole = [path for end in ENDS if (path := place / f"{stem}{end}").is_file()]
            parts = sorted(path for end in ENDS for path in place.glob(f"{stem}.*{end}"))
            if len(whole or parts) > 1:
                told = ", ".join(path.name for path in whole or parts)
                raise CorpusError(f"{place}: {told} are of the same: leave one, or name it with {named}FILE")
            if whole or parts:
                return (whole or parts)[0]
    return None
