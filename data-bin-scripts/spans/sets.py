"""Find the files with questions of XTREME (Hu et al. 2020) by language: XQuAD, MLQA and TyDiQA-GoldP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corpora.errors import CorpusError
from questions import reading


@dataclass(frozen=True)
class QuestionSet:
    """Describe a set of questions in several languages.

    Args:
        languages: Languages, English first.
        names: Patterns of a language's file name; the first file that exists is read.
        folders: Subfolders of --data to which archives unpack.
        long: Long names of the languages, such as english, which some file names contain.
        united: Name of a single file that holds all languages, in which question ids begin with the long name of a
            language.
    """

    languages: tuple[str, ...]
    names: tuple[str, ...]
    folders: tuple[str, ...]
    long: Mapping[str, str] = field(default_factory=dict)
    united: str = ""

    def begin(self, language: str) -> str:
        """Return the prefix that the question ids of a language have in the file of all languages."""
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
    # XTREME's names, then those of the published archive; another published file holds all languages
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
    """Return the file of each language, in the order of `QuestionSet.languages`.

    A file may hold a part of the questions and have one more word in its name, as in `xquad.de.part1.json.gz`.

    Args:
        name: One of `SETS`.
        languages: Languages that must have files; if there are none, return all languages that have files.
    Raises:
        CorpusError: A language is unknown or has no file, no file exists at all, or a language has two files.
    """
    known = SETS[name]
    unknown = [code for code in languages if code not in known.languages]
    if unknown:
        languages_known = ",".join(known.languages)
        raise CorpusError(f"--languages {','.join(unknown)}: {name} has only the languages {languages_known}.")
    codes = [code for code in known.languages if code in (languages or known.languages)]
    paths = {code: path for code in codes if (path := _file(folder, known, _names(known, code), f"--eval {code}="))}
    paths = paths or _united(folder, known, codes)
    missing = [code for code in codes if code not in paths]
    if missing and (languages or not paths):
        names = [*_names(known, missing[0]), *([known.united] if known.united else [])]
        expected = " or ".join(f"{stem}.json" for stem in names)
        cure = f" It has files for --languages {','.join(paths)}." if paths else ""
        problem = f"neither the folder nor its subfolder {known.folders[0]} holds {expected} (plain or .gz)"
        raise CorpusError(f"{folder}: {problem}.{cure}")
    return paths


def _united(folder: Path, known: QuestionSet, codes: Sequence[str]) -> dict[str, Path]:
    """Map each language that occurs in the file of all languages to the path of that file."""
    path = _file(folder, known, [known.united], "--eval NAME=") if known.united else None
    ids = [question.id for question in reading.read(path, [])] if path else []
    return {code: path for code in codes if path and any(word.startswith(known.begin(code)) for word in ids)}


def begins(name: str, files: Mapping[str, Path]) -> dict[str, str]:
    """Return the prefix of the question ids for each language whose file also holds other languages.

    Args:
        files: Files by split; splits that are not languages of the set are ignored.
    """
    known = SETS[name]
    shared = [code for code in known.languages if known.united and code in files]
    return {code: known.begin(code) for code in shared if files[code].name.startswith(known.united)}


def absent(name: str, paths: Mapping[str, Path]) -> list[str]:
    """Return the languages of a set that have no file."""
    return [code for code in SETS[name].languages if code not in paths]


def _names(known: QuestionSet, language: str) -> list[str]:
    return [pattern.format(code=language, long=known.long.get(language, "")) for pattern in known.names]


def _file(folder: Path, known: QuestionSet, names: Sequence[str], flag: str) -> Path | None:
    for place in [folder, *(folder / subfolder for subfolder in known.folders)]:
        for stem in names:
            whole = [path for end in ENDS if (path := place / f"{stem}{end}").is_file()]
            parts = sorted(path for end in ENDS for path in place.glob(f"{stem}.*{end}"))
            if len(whole or parts) > 1:
                files = ", ".join(path.name for path in whole or parts)
                raise CorpusError(
                    f"{place}: {files} hold the same split. Keep only one of these files, or choose a file with "
                    f"{flag}FILE."
                )
            if whole or parts:
                return (whole or parts)[0]
    return None
