"""Rows of text and label to the folder that `--task posenc_sentence_prediction` reads."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora import lines
from corpora.errors import CorpusError
from corpora.pieces import END, UNKNOWN
from glue.output import Item, split_files
from questions import output as files
from questions import problems
from questions.problems import Problem

from . import reading
from .reading import Columns, Row, Source
from .words import Segmenter, Vocabulary, vocabulary

RECORD = "glue.json"  # as prepare_glue.py calls it, so that the task finds the longest item
VECTORS = "word_vectors.safetensors"
#: tokens that the task adds to words: </s>, or <s> a </s> b </s>
MARKS = {1: 1, 2: 3}


@dataclass(frozen=True)
class Settings:
    """See `prepare_text_classification.py --help`."""

    task: str  # one of `TASKS`, or "own"
    data: Path
    text: str
    pair: str
    label: str
    tokenizer: str
    more_than: int
    glove: Path | None
    longest: int
    valid_part: float
    seed: int
    bad: str
    limit: int


@dataclass(frozen=True)
class Example:
    """A row as words."""

    row: Row
    sentences: tuple[tuple[str, ...], ...]


def prepare(where: Path, settings: Settings) -> dict[str, Any]:
    """Write the folder `where` complete or not at all, and return its record.

    Raises:
        CorpusError: A file cannot be read, or a row is unusable (`RefusedError`, with WHERE.problems.jsonl).
    """
    given_sources = sources(settings)
    with files.new_folder(where) as folder:
        given = {split: list(source.rows()) for split, source in given_sources.items()}
        labels = known_labels(given["train"])
        kept, wrong = checked(given, labels, settings.bad)
        problems.refuse(where, wrong, "--bad skip leaves them out", "".join(_places(wrong)))
        kept["train"] = kept["train"][: settings.limit or None]
        kept = with_valid(kept, settings)
        for split, rows in kept.items():
            if not rows:
                path = given_sources.get(split, given_sources["train"]).path
                raise CorpusError(f"{path}: no row is left for {split}")
        record = write(folder, kept, labels, settings)
        paths = {split: source.path for split, source in given_sources.items()}
        record["files"] = {split: files.described(path) for split, path in paths.items() if path.is_file()}
        record["problems"] = problems.counted(wrong)
        files.write_json(folder / RECORD, record)
        problems.tell(folder, wrong)
    return record


def sources(settings: Settings) -> dict[str, Source]:
    """Return the sources of the task, or of one's own folder, by split."""
    if settings.task != "own":
        return reading.published(settings.task, settings.data)
    return reading.own(settings.data, Columns(settings.text, settings.pair, settings.label))


def known_labels(rows: list[Row]) -> tuple[str, ...]:
    """Return the labels of the training set in alphabetical order.

    Raises:
        CorpusError: There are fewer than two.
    """
    labels = sorted({row.label for row in rows if row.label})
    if len(labels) < 2:
        raise CorpusError(
            f"the training set has {len(labels)} different labels; two are needed: --label names the column"
        )
    return tuple(labels)


def checked(
    given: dict[str, list[Row]], labels: tuple[str, ...], bad: str
) -> tuple[dict[str, list[Row]], list[Problem]]:
    """Return the usable rows of each split, with tidy text, and what is wrong with the others."""
    kept: dict[str, list[Row]] = {}
    wrong = list[Problem]()
    done = "refused" if bad == "refuse" else "left out"
    for split, rows in given.items():
        kept[split] = []
        for row in rows:
            tidied = row._replace(texts=tuple(map(lines.tidy, row.texts)))
            kind = problem(tidied, labels)
            if kind is None:
                kept[split].append(tidied)
            else:
                wrong.append(Problem(split, row.where, row.where, *kind, done))
    return kept, wrong


def problem(row: Row, labels: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the kind of problem and its description, or None for a usable row."""
    if not all(map(lines.is_seen, row.texts)):
        return "empty text", f"the text is {row.texts!r}"
    if not row.label:
        return "no label", "the row has no label"
    if row.label not in labels:
        return "unknown label", f"the label is {row.label!r}; the training set has: {', '.join(labels)}"
    return None


def _places(wrong: list[Problem]) -> Iterator[str]:
    return (f"{one.where}: {one.what}\n" for one in wrong[: problems.SHOWN])


def with_valid(kept: dict[str, list[Row]], settings: Settings) -> dict[str, list[Row]]:
    """Hold out a part of training as the validation set if there is none, and as the test set if there is none.

    Checkpoints are chosen on the validation set, and the test set is scored once, so they must not be the same.
    """
    kept = dict(kept)
    for number, split in enumerate(("valid", "test")):
        if split not in kept:
            draw = random.Random(f"{settings.seed}.{number}")
            out = [draw.random() < settings.valid_part for _ in kept["train"]]
            kept[split] = [row for row, gone in zip(kept["train"], out, strict=True) if gone]
            kept["train"] = [row for row, gone in zip(kept["train"], out, strict=True) if not gone]
    order = ("train", "valid", "test")
    return {split: kept[split] for split in (*order, *(split for split in kept if split not in order))}


def write(folder: Path, kept: dict[str, list[Row]], labels: tuple[str, ...], settings: Settings) -> dict[str, Any]:
    """Write everything but the record and the problems; return the record without the files."""
    segmenter = Segmenter(settings.tokenizer)
    examples = {
        split: [Example(row, tuple(tuple(segmenter.words(text)) for text in row.texts)) for row in rows]
        for split, rows in kept.items()
    }
    counted = Counter(word for one in examples["train"] for sentence in one.sentences for word in sentence)
    words = vocabulary(counted, settings.more_than, settings.glove)
    sentences = len(kept["train"][0].texts)
    counts = {split: _split(folder, split, some, words, labels, settings) for split, some in examples.items()}
    for number in range(sentences):
        (folder / f"input{number}" / "dict.txt").write_text(words.text(), encoding="utf-8")
    (folder / "label" / "dict.txt").write_text("".join(f"{label} 1\n" for label in labels), encoding="utf-8")
    if words.vectors is not None:
        from safetensors.numpy import save_file

        save_file({"vectors": words.vectors}, folder / VECTORS)
    return {
        "task": settings.task,
        "pair": sentences == 2,
        "labels": list(labels),
        "longest": settings.longest,
        "tokenizer": settings.tokenizer,
        "words": len(words.counts),
        "more than": settings.more_than,
        "word vectors": None if settings.glove is None else files.described(settings.glove),
        "splits": counts,
    }


def _split(
    folder: Path, split: str, examples: list[Example], words: Vocabulary, labels: tuple[str, ...], settings: Settings
) -> dict[str, Any]:
    """Write the files of a split and return what is in them."""
    tally, longest = Counter[str](items=0, cut=0, pieces=0, unknown=0), 0
    sentences = len(examples[0].sentences)
    with split_files(folder, split, len(words.counts), sentences, labels) as writer:
        for one in examples:
            item = cut([words.encode(sentence) for sentence in one.sentences], settings.longest)
            writer.add(one.row.where, item, one.row.label)
            longest = max(longest, min(item.pieces, settings.longest))
            unknown = sum(ids.count(UNKNOWN) for ids in item.sentences)
            tally.update(items=1, cut=int(item.cut), pieces=item.pieces, unknown=unknown)
    return {**tally, "labelled": True, "longest": longest, "labels": dict(Counter(one.row.label for one in examples))}


def cut(sentences: list[list[int]], longest: int) -> Item:
    """Return an item of at most `longest` tokens; the longer sentence of a pair is cut, as often as needed."""
    marks, words = MARKS[len(sentences)], sum(map(len, sentences))
    while sum(map(len, sentences)) > longest - marks:
        max(reversed(sentences), key=len).pop()  # the second of two that are equally long
    return Item([[*ids, END] for ids in sentences], words + marks, words > longest - marks)
