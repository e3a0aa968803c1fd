"""Read questions from JSON in SQuAD's format, or from parallel lines of sentences and questions (Du et al. 2017)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from corpora import lines
from corpora.compressed import DAMAGED, opened
from corpora.errors import CorpusError

#: the place of each malformed entry, and a description of the problem
Malformed = list[tuple[str, str]]


class Answer(NamedTuple):
    text: str
    start: int  # character offset in the context


class Question(NamedTuple):
    """Hold a question from a file, with its context and answers.

    Args:
        where: Name of the file, followed by the article and paragraph, or by the line number.
        article: Number of the question's article in the file.
        answers: All answers that the file gives.
        impossible: Whether the file says that the context does not answer the question (SQuAD 2.0).
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
    """Return all questions of a file, in the order of the file.

    Args:
        path: NAME.json, or src-NAME.txt with tgt-NAME.txt in the same folder; plain or .gz.
        malformed: List that receives malformed questions and paragraphs of a JSON file. Without a list, the first
            malformed entry raises an error.
    Raises:
        CorpusError: The file is missing, damaged, empty or in another format.
    """
    if not path.exists():
        raise CorpusError(f"{path}: no such file or folder.")
    if is_json(path):
        questions = list(_squad(path, malformed))
    elif plain_name(path).startswith("src-") and plain_name(path).endswith(".txt"):
        questions = list(_lines(path, beside(path)))
    else:
        raise CorpusError(f"{path}: give NAME.json in SQuAD's format or src-NAME.txt, plain or .gz.")
    if not questions:
        raise CorpusError(f"{path}: the file has no questions.")
    return questions


# --- SQuAD's format


def _squad(path: Path, malformed: Malformed | None) -> Iterator[Question]:
    articles = _list(path, "the file", _parsed(path), "data")
    for number, article in enumerate(articles):
        place = f"article {number + 1}"
        for index, paragraph in enumerate(_list(path, place, article, "paragraphs")):
            at = f"{place}, paragraph {index + 1}"
            with _collecting(at, malformed):
                context, entries = _text(path, at, paragraph, "context"), _list(path, at, paragraph, "qas")
                for entry in entries:
                    with _collecting(_id(entry, at), malformed):
                        yield _question(path, f"{at} ({_title(article)})", number, _title(article), context, entry)


@contextmanager
def _collecting(place: str, malformed: Malformed | None) -> Iterator[None]:
    """If the block raises an error, append it to the list `malformed`; if there is no list, do not catch the error."""
    try:
        yield
    except CorpusError as error:
        if malformed is None:
            raise
        malformed.append((place, str(error)))


def _id(question: Any, place: str) -> str:
    name = question.get("id") if isinstance(question, dict) else None
    return name if isinstance(name, str) else place


def _question(path: Path, place: str, article: int, title: str, context: str, entry: Any) -> Question:
    name = _text(path, f"{place}, a question", entry, "id")
    at = f"{place}, question {name}"
    answers = entry.get("answers") or []
    if not isinstance(answers, list):
        raise CorpusError(f"{path}: {at}: 'answers' must be a list.")
    parsed = tuple(_answer(path, at, answer) for answer in answers)
    impossible = bool(entry.get("is_impossible", False))
    where, text = f"{path.name}: {place}", _text(path, at, entry, "question")
    return Question(name, where, article, title, context, text, parsed, impossible)


def _answer(path: Path, place: str, entry: Any) -> Answer:
    text = _text(path, place, entry, "text")
    start = entry.get("answer_start")
    if not isinstance(start, int):
        raise CorpusError(f"{path}: {place}: 'answer_start' is {start!r}, but must be a number.")
    return Answer(text, start)


def _title(article: Any) -> str:
    """Return the title of an article, or its id if it has no title."""
    return str(article.get("title") or article.get("id") or "")


def _parsed(path: Path) -> Any:
    try:
        with opened(path) as file:
            return json.loads(file.read())
    except DAMAGED as error:
        raise CorpusError(f"{path}: the file is damaged or incomplete ({error}). Fetch the file again.") from None
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}: the file is not UTF-8 text ({error}). Convert the file to UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path}: the file is not valid JSON ({error}). Correct or replace the file.") from None


def _list(path: Path, place: str, table: Any, key: str) -> list[Any]:
    return cast(list[Any], _field(path, place, table, key, list, "list"))


def _text(path: Path, place: str, table: Any, key: str) -> str:
    return cast(str, _field(path, place, table, key, str, "text"))


def _field(path: Path, place: str, table: Any, key: str, kind: type, name: str) -> object:
    value = table.get(key) if isinstance(table, dict) else None
    if not isinstance(value, kind):
        raise CorpusError(f"{path}: {place} has no {name} '{key}', which SQuAD's format requires.")
    return value


# --- sentences and questions


def _lines(sources: Path, targets: Path) -> Iterator[Question]:
    """Yield the questions; equal sentences form one article, so that all questions of a sentence stay in one split."""
    if not (sources.is_file() and targets.is_file()):
        missing = targets if sources.is_file() else sources
        raise CorpusError(f"{missing}: no such file. src-NAME.txt and tgt-NAME.txt must both exist.")
    numbers: dict[str, int] = {}
    sentences, questions = list(lines.of_file(sources)), list(lines.of_file(targets))
    if len(sentences) != len(questions):
        lengths = f"{sources} has {len(sentences)} lines, and {targets} has {len(questions)}"
        raise CorpusError(f"{lengths}. Give files with one question per sentence.")
    for (number, sentence), (_, question) in zip(sentences, questions, strict=True):
        where, text = f"{sources.name}:{number}", sentence.strip()
        name = f"{plain_name(sources).removesuffix('.txt').removeprefix('src-')}:{number}"
        yield Question(name, where, numbers.setdefault(text, len(numbers)), "", text, question.strip())
