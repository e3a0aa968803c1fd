"""Read questions from json in SQuAD's format, or from parallel lines of sentences and questions (Du et al. 2017)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from corpora import lines
from corpora.compressed import DAMAGED, opened
from corpora.errors import CorpusError

#: places of malformed entries, and what is wrong with them
Malformed = list[tuple[str, str]]


class Answer(NamedTuple):
    text: str
    start: int  # character offset in the context


class Question(NamedTuple):
    """A question of a file.

    Args:
        where: File name with the article and paragraph, or the line.
        article: Number of its article in the file.
        answers: All answers in the file.
        impossible: The file says that the context does not answer it (SQuAD 2.0).
    """

    id: str
    where: str
    article: int
    title: str
    context: str
    text: str
    answers: tuple[Answer, ...] = ()
    impossible: bool = False


def plain_name(path: Path) -> str:
    return path.name.removesuffix(".gz")


def is_json(path: Path) -> bool:
    return plain_name(path).endswith(".json")


def beside(sources: Path) -> Path:
    """Return the path of tgt-NAME, given src-NAME."""
    return sources.with_name(f"tgt{sources.name.removeprefix('src')}")


def read(path: Path, malformed: Malformed | None = None) -> list[Question]:
    """Return all questions of a file, in its order.

    Args:
        path: NAME.json, or src-NAME.txt with tgt-NAME.txt in the same folder; plain or .gz.
        malformed: List that receives malformed questions and paragraphs of json; if it is None, they raise an error.
    Raises:
        CorpusError: The file is missing, damaged, empty or in another format.
    """
    if not path.exists():
        raise CorpusError(f"{path}: no such file or folder")
    if is_json(path):
        found = list(_squad(path, malformed))
    elif plain_name(path).startswith("src-") and plain_name(path).endswith(".txt"):
        found = list(_lines(path, beside(path)))
    else:
        raise CorpusError(f"{path}: NAME.json in SQuAD's format or src-NAME.txt is wanted, plain or .gz")
    if not found:
        raise CorpusError(f"{path}: no questions in it")
    return found


# --- SQuAD's format


def _squad(path: Path, malformed: Malformed | None) -> Iterator[Question]:
    articles = _list(path, "the file", _parsed(path), "data")
    for number, article in enumerate(articles):
        place = f"article {number + 1}"
        for index, paragraph in enumerate(_list(path, place, article, "paragraphs")):
            at = f"{place}, paragraph {index + 1}"
            with _told(at, malformed):
                context, asked = _text(path, at, paragraph, "context"), _list(path, at, paragraph, "qas")
                for one in asked:
                    with _told(_id(one, at), malformed):
                        yield _question(path, f"{at} ({_title(article)})", number, _title(article), context, one)


@contextmanager
def _told(place: str, malformed: Malformed | None) -> Iterator[None]:
    try:
        yield
    except CorpusError as error:
        if malformed is None:
            raise
        malformed.append((place, str(error)))


def _id(question: Any, place: str) -> str:
    named = question.get("id") if isinstance(question, dict) else None
    return named if isinstance(named, str) else place


def _question(path: Path, place: str, article: int, title: str, context: str, given: Any) -> Question:
    name = _text(path, f"{place}, a question", given, "id")
    at = f"{place}, question {name}"
    answers = given.get("answers") or []
    if not isinstance(answers, list):
        raise CorpusError(f"{path}: {at}: 'answers' is no list")
    found = tuple(_answer(path, at, one) for one in answers)
    impossible = bool(given.get("is_impossible", False))
    where = f"{path.name}: {place}"
    return Question(name, where, article, title, context, _text(path, at, given, "question"), found, impossible)


def _answer(path: Path, place: str, given: Any) -> Answer:
    text = _text(path, place, given, "text")
    start = given.get("answer_start")
    if not isinstance(start, int):
        raise CorpusError(f"{path}: {place}: 'answer_start' is {start!r}: a number is wanted")
    return Answer(text, start)


def _title(article: Any) -> str:
    """Return the title of an article, or its id if it has no title."""
    return str(article.get("title") or article.get("id") or "")


def _parsed(path: Path) -> Any:
    try:
        with opened(path) as file:
            return json.loads(file.read())
    except DAMAGED as error:
        raise CorpusError(f"{path}: cannot be read ({error}): the file is missing, damaged or cut") from None
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}: no UTF-8 ({error})") from None
    except ValueError as error:
        raise CorpusError(f"{path}: no JSON ({error})") from None


def _list(path: Path, place: str, table: Any, key: str) -> list[Any]:
    return cast(list[Any], _field(path, place, table, key, list, "list"))


def _text(path: Path, place: str, table: Any, key: str) -> str:
    return cast(str, _field(path, place, table, key, str, "text"))


def _field(path: Path, place: str, table: Any, key: str, kind: type, name: str) -> object:
    value = table.get(key) if isinstance(table, dict) else None
    if not isinstance(value, kind):
        raise CorpusError(f"{path}: {place} has no {name} '{key}', as SQuAD's format has")
    return value


# --- sentences and questions


def _lines(sources: Path, targets: Path) -> Iterator[Question]:
    """Yield the questions; equal sentences form one article, so that all questions of a sentence stay in one split."""
    if not (sources.is_file() and targets.is_file()):
        missing = targets if sources.is_file() else sources
        raise CorpusError(f"{missing}: no such file; src-NAME.txt and tgt-NAME.txt go together")
    numbers: dict[str, int] = {}
    given, asked = list(lines.of_file(sources)), list(lines.of_file(targets))
    if len(given) != len(asked):
        raise CorpusError(f"{sources} has {len(given)} lines, {targets} {len(asked)}: they are not of one set")
    for (number, sentence), (_, question) in zip(given, asked, strict=True):
        where, text = f"{sources.name}:{number}", sentence.strip()
        name = f"{plain_name(sources).removesuffix('.txt').removeprefix('src-')}:{number}"
        yield Question(name, where, numbers.setdefault(text, len(numbers)), "", text, question.strip())
