"""Read, check and divide questions: JSON in SQuAD's format, or lines of sentences and questions (Du et al. 2017)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from corpora import keys, lines
from corpora.lines import DAMAGED, only_file, opened
from prepared import Problem
from shared import CorpusError

HOW = ("refuse", "skip", "repair")  # values of --bad
CURE = "Correct the file, leave these questions out with --bad skip, or see --bad repair in --help."
#: kinds of problems that --bad repair repairs
REPAIRED = {"misplaced answer", "long answer", "long question"}
#: kinds that SQuAD 2.0 contains on purpose; they are reported and never refused
EXPECTED = {"unanswerable"}
#: words for a split in file names; Du et al. and SQuAD use dev
WORDS = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
#: patterns of file names, the user's own and the published ones
NAMES = ("{}.json", "src-{}.txt", "{}-v1.1.json", "{}-v2.0.json", "cmrc2018_{}.json")
Kind = TypeVar("Kind")


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
    context: str
    text: str
    answers: tuple[Answer, ...] = ()
    impossible: bool = False


def new_problem(split: str, question: Question, kind: str, what: str, how: str) -> Problem:
    """Return a problem with a question; `how` is the value of --bad."""
    done = "repaired" if how == "repair" and kind in REPAIRED else "left out"
    done = "refused" if how == "refuse" and kind not in EXPECTED else done
    return Problem(split, question.where, question.id, kind, what, done)


# --- files


def is_json(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".json")


def read(path: Path, malformed: list[Question]) -> list[Question]:
    """Return all questions of a file, in the order of the file.

    Args:
        path: NAME.json, or src-NAME.txt with tgt-NAME.txt in the same folder; plain or .gz.
        malformed: List that receives the places of malformed questions and paragraphs; `text` says what is wrong.
    Raises:
        CorpusError: The file is missing, damaged, empty or in another format.
    """
    if not path.exists():
        raise CorpusError(f"{path}: no such file or folder.")
    if not is_json(path) and not (path.name.startswith("src-") and path.name.removesuffix(".gz").endswith(".txt")):
        raise CorpusError(f"{path}: give NAME.json in SQuAD's format or src-NAME.txt, plain or .gz.")
    questions = [*(_squad(path, malformed) if is_json(path) else _lines(path))]
    if not questions and not malformed:
        raise CorpusError(f"{path}: the file has no questions.")
    return questions


def _squad(path: Path, malformed: list[Question]) -> Iterator[Question]:
    try:
        with opened(path) as file:
            content = json.loads(file.read())
    except DAMAGED as error:
        raise CorpusError(f"{path}: the file is damaged or incomplete ({error}). Fetch the file again.") from None
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path}: the file is not valid JSON in UTF-8 ({error}). Correct the file.") from None
    for number, article in enumerate(_field(f"{path}: the file", content, "data", list)):
        parts = _field(f"{path}: article {number + 1}", article, "paragraphs", list)
        title = str(article.get("title") or article.get("id") or "")
        for index, part in enumerate(parts):
            name = f"article {number + 1}, paragraph {index + 1}"
            empty = Question(name, f"{path.name}: {name} ({title})", number, "", "")
            try:
                empty = empty._replace(context=_field("the paragraph", part, "context", str))
                entries = _field("the paragraph", part, "qas", list)
            except CorpusError as error:
                malformed.append(empty._replace(text=str(error)))
                continue
            for entry in entries:
                try:
                    yield _question(empty, entry)
                except CorpusError as error:
                    known = entry.get("id") if isinstance(entry, dict) else None
                    malformed.append(empty._replace(id=known if isinstance(known, str) else name, text=str(error)))


def _question(empty: Question, entry: Any) -> Question:
    """Return a question of the paragraph of an empty question."""
    name, answers = _field("the question", entry, "id", str), list[Answer]()
    for answer in _field("the question", {"answers": entry.get("answers") or []}, "answers", list):
        text, start = _field("an answer", answer, "text", str), answer.get("answer_start")
        if not isinstance(start, int):
            raise CorpusError(f"'answer_start' is {start!r}, but must be a number.")
        answers.append(Answer(text, start))
    text, impossible = _field("the question", entry, "question", str), bool(entry.get("is_impossible", False))
    return empty._replace(id=name, text=text, answers=tuple(answers), impossible=impossible)


def _field(place: str, table: Any, key: str, kind: type[Kind]) -> Kind:
    value = table.get(key) if isinstance(table, dict) else None
    if not isinstance(value, kind):
        name = "text" if kind is str else "list"
        raise CorpusError(f"{place} has no {name} '{key}', which SQuAD's format requires.")
    return value


def _lines(sources: Path) -> Iterator[Question]:
    """Yield the questions; equal sentences form one article, so that all questions of a sentence stay in one split."""
    targets = sources.with_name(f"tgt{sources.name.removeprefix('src')}")
    if not targets.is_file():
        raise CorpusError(f"{targets}: no such file. src-NAME.txt and tgt-NAME.txt must both exist.")
    sentences, questions, numbers = [*lines.of_file(sources)], [*lines.of_file(targets)], dict[str, int]()
    if len(sentences) != len(questions):
        lengths = f"{sources} has {len(sentences)} lines, and {targets} has {len(questions)}"
        raise CorpusError(f"{lengths}. Give files with one question per sentence.")
    stem = sources.name.removesuffix(".gz").removesuffix(".txt").removeprefix("src-")
    for (number, sentence), (_, question) in zip(sentences, questions, strict=True):
        text, name = sentence.strip(), f"{stem}:{number}"
        article = numbers.setdefault(text, len(numbers))
        yield Question(name, f"{sources.name}:{number}", article, text, question.strip())


def find(folder: Path, flags: str, names: Sequence[str] = NAMES) -> dict[str, Path]:
    """Return the files of a folder by split.

    Args:
        flags: Options that name the files of the splits, for error messages.
        names: Patterns of the file names of a split.
    Raises:
        CorpusError: A training or validation file is missing, or a split has several files.
    """
    files = dict[str, Path]()
    for split, words in WORDS.items():
        candidates = [name.format(word) for word in words for name in names]
        cure = f"Give the files with {flags}."
        if path := only_file(folder, candidates, cure, needed=split != "test"):
            files[split] = path
    return files


def divided(questions: list[Question], path: Path, seed: int, flags: str) -> dict[str, list[Question]]:
    """Divide the articles randomly, 8:1:1; test and valid get at least one article each.

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
    tenth = max(1, len(drawn) // 10)
    parts = {"train": drawn[2 * tenth :], "valid": drawn[tenth : 2 * tenth], "test": drawn[:tenth]}
    return {name: [entry for article in sorted(part) for entry in by_article[article]] for name, part in parts.items()}


# --- checks


def checked(
    split: str, questions: list[Question], how: str, problems: list[Problem], *, answers: bool, impossible: bool = False
) -> list[Question]:
    """Return the usable questions, and append the problems to a list.

    Each question keeps its first usable answer. An answer is usable if it occurs at its offset, or was repaired.

    Args:
        how: Value of --bad; `refuse` returns the same questions as `skip`.
        answers: Whether the file has answers.
        impossible: Keep the questions that the file marks as unanswerable (SQuAD 2.0), without an answer.
    """
    usable = list[Question]()
    for question in questions:
        unanswered = not answers or (impossible and question.impossible)
        defect = _defect(question, answered=not unanswered)
        if defect is None and not unanswered:
            placed = [_placed(split, question, answer, how, problems) for answer in question.answers]
            question = question._replace(answers=tuple(filter(None, placed))[:1])
            defect = None if question.answers else ("no answer", "none of the question's answers is usable")
        if defect is None:
            usable.append(question._replace(answers=()) if unanswered else question)
        else:
            problems.append(new_problem(split, question, *defect, how))
    return usable


def _defect(question: Question, *, answered: bool) -> tuple[str, str] | None:
    """Return the kind and the description of what is wrong with a question, or None."""
    for kind, text in (("context", question.context), ("question", question.text)):
        if not text.strip():
            return f"empty {kind}", f"the {kind} is {text!r}"
    if answered and question.impossible:
        return "unanswerable", "is_impossible is true"
    if answered and not question.answers:
        return "no answer", "the question has no answers"
    return None


def _placed(split: str, question: Question, answer: Answer, how: str, problems: list[Problem]) -> Answer | None:
    """Return the answer at its offset, or None if it is not there and not repaired; append the problem to a list."""
    (text, start), context = answer, question.context
    if text.strip() and start >= 0 and context.startswith(text, start):
        return answer
    place, kind, what = None, "empty answer", f"the answer is {text!r}"
    if text.strip():
        place, kind = nearest(context, text, start), "misplaced answer"
        at_offset = context[max(0, start) :][: len(text)]
        elsewhere = "occurs nowhere" if place is None else f"occurs at offset {place}"
        what = f"{text!r} is not at offset {start}, where the context has {at_offset!r}; the answer {elsewhere}"
    problem = new_problem(split, question, kind, what, "skip" if place is None and how == "repair" else how)
    problems.append(problem)
    return Answer(text, place) if place is not None and problem.done == "repaired" else None


def nearest(context: str, text: str, start: int) -> int | None:
    """Return the offset of the occurrence nearest to `start` (the earlier one if two are equally near), or None."""
    places, at = list[int](), context.find(text)
    while at >= 0:
        places.append(at)
        at = context.find(text, at + 1)
    return min(places, key=lambda place: abs(place - start), default=None)
