"""Turn rows with a text and a label into the folder that `--task posenc_sentence_prediction` reads."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from corpora import lines
from corpora.errors import CorpusError
from corpora.pieces import UNKNOWN
from glue.output import Example, Layout, write_dictionaries, write_split
from questions import output as files
from questions import problems
from questions.problems import Problem

from . import reading
from .reading import Columns, Row, Source
from .words import splitter, vocabulary

RECORD = "glue.json"  # the name that prepare_glue.py uses; from this file the task reads the length of the longest item
VECTORS = "word_vectors.safetensors"
#: Number of special tokens in an item by its number of texts: `a </s>`, or `<s> a </s> b </s>`.
MARKS = {1: 1, 2: 3}


@dataclass(frozen=True)
class Settings:
    """Hold the options of prepare_text_classification.py; see its --help."""

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


def prepare(where: Path, settings: Settings) -> dict[str, Any]:
    """Write all files of the folder `where`, or none after an error, and return the content of its glue.json.

    Raises:
        CorpusError: A file cannot be read.
        RefusedError: Rows are unusable and --bad is refuse; WHERE.problems.jsonl lists them.
    """
    by_split = sources(settings)
    with files.new_folder(where) as folder:
        original = {split: list(source.rows()) for split, source in by_split.items()}
        labels = known_labels(original["train"])
        usable, bad_rows = checked(original, labels, settings.bad)
        problems.refuse(where, bad_rows, "To leave these rows out, give --bad skip.", "".join(_places(bad_rows)))
        usable["train"] = usable["train"][: settings.limit or None]
        usable = with_valid(usable, settings)
        for split, rows in usable.items():
            if not rows:
                path = by_split.get(split, by_split["train"]).path
                raise CorpusError(f"{path}: the split {split} has no usable rows. Give a file with more rows.")
        record = write(folder, usable, labels, settings)
        paths = {split: source.path for split, source in by_split.items()}
        record["files"] = {split: files.described(path) for split, path in paths.items() if path.is_file()}
        record["problems"] = problems.counted(bad_rows)
        files.write_json(folder / RECORD, record)
        problems.tell(folder, bad_rows)
    return record


def sources(settings: Settings) -> dict[str, Source]:
    """Return the sources of the published task, or of the user's own folder, by split."""
    if settings.task != "own":
        return reading.published(settings.task, settings.data)
    return reading.own(settings.data, Columns(settings.text, settings.pair, settings.label))


def known_labels(rows: list[Row]) -> tuple[str, ...]:
    """Return the labels of the training set in alphabetical order.

    Raises:
        CorpusError: There are fewer than two labels.
    """
    labels = sorted({row.label for row in rows if row.label})
    if len(labels) < 2:
        what = f"the training set has {len(labels)} different labels, but at least 2 are needed"
        raise CorpusError(f"{what}. Check --label, which names the column with the labels.")
    return tuple(labels)


def checked(
    original: dict[str, list[Row]], labels: tuple[str, ...], bad: str
) -> tuple[dict[str, list[Row]], list[Problem]]:
    """Return the usable rows of each split, with text that `lines.tidy` cleaned, and the problems of the other rows."""
    usable: dict[str, list[Row]] = {}
    bad_rows = list[Problem]()
    done = "refused" if bad == "refuse" else "left out"
    for split, rows in original.items():
        usable[split] = []
        for row in rows:
            tidied = row._replace(texts=tuple(map(lines.tidy, row.texts)))
            kind = problem(tidied, labels)
            if kind is None:
                usable[split].append(tidied)
            else:
                bad_rows.append(Problem(split, row.where, row.where, *kind, done))
    return usable, bad_rows


def problem(row: Row, labels: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the kind of problem and its description, or None for a usable row."""
    if not all(map(lines.is_seen, row.texts)):
        return "empty text", f"the text has no visible characters: {row.texts!r}"
    if not row.label:
        return "no label", "the row has no label"
    if row.label not in labels:
        return "unknown label", f"the label {row.label!r} does not occur in the training set ({', '.join(labels)})"
    return None


def _places(bad_rows: list[Problem]) -> Iterator[str]:
    return (f"{problem.where}: {problem.what}\n" for problem in bad_rows[: problems.SHOWN])


def with_valid(rows: dict[str, list[Row]], settings: Settings) -> dict[str, list[Row]]:
    """Hold out training rows for a missing validation set and for a missing test set.

    The two sets must differ, because checkpoints are chosen on the validation set, and the test set is scored once.
    """
    rows = dict(rows)
    for number, split in enumerate(("valid", "test")):
        if split not in rows:
            draw = random.Random(f"{settings.seed}.{number}")
            is_held_out = [draw.random() < settings.valid_part for _ in rows["train"]]
            rows[split] = [row for row, held_out in zip(rows["train"], is_held_out, strict=True) if held_out]
            rows["train"] = [row for row, held_out in zip(rows["train"], is_held_out, strict=True) if not held_out]
    order = ("train", "valid", "test")
    return {split: rows[split] for split in (*order, *(split for split in rows if split not in order))}


def write(folder: Path, rows: dict[str, list[Row]], labels: tuple[str, ...], settings: Settings) -> dict[str, Any]:
    """Write all files except glue.json and problems.jsonl; return the content of glue.json without file hashes."""
    words_of = splitter(settings.tokenizer)
    texts = {
        split: [[words_of(text) for text in row.texts] for row in split_rows] for split, split_rows in rows.items()
    }
    dictionary, vectors = vocabulary(Counter(chain(*chain(*texts["train"]))), settings.more_than, settings.glove)
    ids, sentences = dictionary.ids(), len(rows["train"][0].texts)
    layout = Layout(len(dictionary), sentences, labels, settings.longest, MARKS[sentences])
    counts = {}
    for split, split_rows in rows.items():
        examples = (
            Example(row.where, [[ids.get(word, UNKNOWN) for word in text] for text in row_texts], row.label)
            for row, row_texts in zip(split_rows, texts[split], strict=True)
        )
        counts[split] = write_split(folder, split, examples, layout)
        counts[split]["labels"] = dict(Counter(row.label for row in split_rows))
    write_dictionaries(folder, dictionary.text(), layout)
    if vectors is not None:
        from safetensors.numpy import save_file

        save_file({"vectors": vectors}, folder / VECTORS)
    return {
        "task": settings.task,
        "pair": sentences == 2,
        "labels": list(labels),
        "longest": settings.longest,
        "tokenizer": settings.tokenizer,
        "words": len(dictionary.symbols),
        "more than": settings.more_than,
        "word vectors": None if settings.glove is None else files.described(settings.glove),
        "splits": counts,
    }
