#!/usr/bin/env python3
"""Prepare texts or pairs of texts with labels for a classifier that is trained from scratch.

The folder is for --arch posenc_classifier and --task posenc_sentence_prediction. The vocabulary holds the frequent
words of the training set (with --glove, only frequent words that have a vector). All other words become <unk>. The
checkpoint is chosen on the validation set, and the test set is scored once. GLUE's test labels are not public, so the
development sets of GLUE become the test sets, and the test sets become the splits glue and glue-mismatched, without
labels. If the validation or test set is missing, rows of the training set are held out for it.

Qu et al. (2021, 4.1) segment text with Stanford's CoreNLP, which needs Java. Here sentencex finds the sentences, and
NLTK splits them into words by the same Penn Treebank conventions. The words differ from CoreNLP's in some cases:
CoreNLP writes brackets as -LRB- and -RRB-, keeps the full stop of `etc.` at the end of a sentence and keeps URLs whole,
and NLTK reads a quote after a space as an opening one. SST-2 is tokenised already (--tokenizer spaces).

  prepare_text_classification.py --task sst2 --corpus data/raw/glue --glove data/raw/glove/glove.840B.300d.zip \\
      --tokenizer spaces --output data-bin/classification/sst2
  prepare_text_classification.py --corpus my-folder --text title --label topic --output data-bin/classification/topics
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import re
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import command
import numpy as np
import prepared
from command import at_least
from corpora import lines
from corpora.lines import DAMAGED, there
from corpora.pieces import UNKNOWN
from numpy.typing import NDArray
from prepare_glue import TASKS, Defect, Row, checked, find, uneven, write_dictionaries, write_split
from prepare_glue import read as read_glue
from prepared import Dictionary, Problem
from shared import CorpusError, nearest

#: Name in GLUE of each value of --task.
OF_GLUE = {"sst2": "SST-2", "qnli": "QNLI", "qqp": "QQP", "mnli": "MNLI", "rte": "RTE"}
#: Our name of each split of GLUE. The test sets have no labels; GLUE's server scores them.
SPLITS = {"train": "train", "valid": "test", "valid-mismatched": "test-mismatched"}
SPLITS |= {"test": "glue", "test-mismatched": "glue-mismatched"}
#: Splits, and the names that the user's own files may have.
OWN = {"train": ("train",), "valid": ("dev", "valid", "validation"), "test": ("test",)}
ENDINGS = (".tsv", ".csv", ".jsonl")
#: Members of IMDB's archive have names like aclImdb/train/pos/0_9.txt.
REVIEW = re.compile(r"(?:^|/)(train|test)/(pos|neg)/(\d+)_\d+\.txt$")
BREAK = re.compile(r"<br\s*/?>")
CURE = "Correct these rows, or leave them out with --bad skip."
#: kind of a word or phrase of SST-2 that is part of training sentences and of validation sentences
SHARED = "phrase of both sides"


def main(arguments: list[str]) -> int:
    parser = command.parser("prepare_text_classification.py", __doc__ or "", "")
    add = parser.add_argument
    text = "Published task whose files --corpus holds (default: your own files)."
    add("--task", choices=("imdb", "snli", *OF_GLUE), default="own", help=text)
    text = "Folder with the files of --task, or your own {train,dev,test}.{tsv,csv,jsonl}, plain or .gz."
    add("--corpus", type=Path, required=True, metavar="DIR", help=text)
    add("--text", default="text", metavar="COLUMN", help="Column with the text in your own files (default: text).")
    add("--pair", default="", metavar="COLUMN", help="Column with the second text of a pair (default: no pairs).")
    add("--label", default="label", metavar="COLUMN", help="Column with the label (default: label).")
    text = "Split text with NLTK's Penn Treebank rules, or at spaces if it is tokenised already (default: nltk)."
    add("--tokenizer", choices=("nltk", "spaces"), default="nltk", help=text)
    text = "Keep words that occur more than N times in the training set (default: 3)."
    add("--more-than", type=at_least(0), default=3, metavar="N", help=text)
    text = "File of word vectors in GloVe's format, plain or zipped; words without a vector become <unk>."
    add("--glove", type=Path, metavar="FILE", help=text)
    text = "Maximum number of tokens in an item, including <s> and </s>; longer texts are cut (default: 512)."
    add("--length", type=at_least(8), default=512, metavar="N", help=text)
    text = "Probability that a training row is held out for a missing validation or test set (default: 0.1)."
    part = command.number(float, lambda value: 0 < value < 1, "a number between 0 and 1")
    add("--valid-part", type=part, default=0.1, metavar="P", help=text)
    add("--seed", type=int, default=1, metavar="N", help="Random seed for holding out rows (default: 1).")
    prepared.add_common(parser, ("refuse", "skip"))
    options = parser.parse_args(arguments)
    if options.task != "own" and (options.text, options.pair, options.label) != ("text", "", "label"):
        parser.error("--text, --pair and --label are only for your own files. Leave them out if you give --task.")
    return prepared.run(lambda: prepare(options), options.output)


# --- files

Source = tuple[Path, Callable[[], Iterator[Row]]]  # a file or folder, and the function that reads its rows


def sources(options: argparse.Namespace) -> dict[str, Source]:
    """Return the sources of the published task, or of the user's own folder, by split.

    Raises:
        CorpusError: A file is missing, or a split has two files.
    """
    folder, places = options.corpus, [options.corpus]
    if options.task in OF_GLUE:
        task, paths = TASKS[OF_GLUE[options.task]], find(folder, OF_GLUE[options.task])
        known = {split: paths[split] for split in SPLITS if split in paths}
        return {SPLITS[split]: (path, partial(read_glue, path, task, split)) for split, path in known.items()}
    if options.task == "imdb":
        places += [folder / name for name in ("aclImdb", "aclImdb_v1", "aclImdb_v1.tar.gz")]
        existing = next((path for path in places if path.is_file() or (path / "train" / "pos").is_dir()), None)
        if existing is None:
            what = "the folder holds neither train/pos/ nor aclImdb_v1.tar.gz. Download IMDB with `fetch.py imdb`"
            raise CorpusError(f"--corpus {folder}: {what}.")
        return {split: (existing, partial(_reviews, existing, split)) for split in ("train", "test")}
    columns, cure = (options.text, options.pair, options.label), "Add the file, or give --task for a published task."
    if snli := options.task == "snli":
        columns, cure = ("sentence1", "sentence2", "gold_label"), "Download SNLI with `fetch.py snli`."
        places += [folder / "snli_1.0", folder / "snli_1.0" / "snli_1.0"]
        folder = next((place for place in places if there(place / "snli_1.0_train.jsonl")), folder)
    paths = dict[str, Path]()
    for split, words in OWN.items():
        names = [f"snli_1.0_{words[0]}.jsonl"] if snli else [f"{word}{end}" for word in words for end in ENDINGS]
        if path := lines.only_file(folder, names, cure, needed=snli or split == "train"):
            paths[split] = path
    return {split: (path, partial(read, path, *columns)) for split, path in paths.items()}


def read(path: Path, text: str, pair: str, label: str) -> Iterator[Row]:
    """Read the rows of a tsv, csv or jsonl file, plain or .gz; the last three arguments name columns.

    tsv files are read like GLUE's: tabs separate the fields, and quotes are text. In csv files, double quotes may
    enclose a field (RFC 4180). In the column gold_label, `-` marks pairs of SNLI on which the annotators did not agree;
    they are left out.

    Raises:
        CorpusError: The file cannot be read, a column is missing, or quotes are broken.
    """
    columns = {"--text": text, "--pair": pair} if pair else {"--text": text}
    is_json = path.name.removesuffix(".gz").endswith(".jsonl")
    for number, record, problem in _objects(path) if is_json else _table(path):
        for flag, name in columns.items():
            if name not in record:
                what = f"{flag} {name}: the file lacks this column{nearest(name, record)}"
                raise CorpusError.at(path, number if is_json else 1, what)
        texts, where = tuple(str(record[name] or "") for name in columns.values()), f"{path.name}:{number}"
        if (value := record.get(label)) != "-" or label != "gold_label":
            yield Row(where, where, texts, None if value is None else str(value).strip(), problem)


#: the number of the first line of a record, its fields, and what is wrong with their number
Records = Iterator[tuple[int, dict[str, Any], str]]


def _table(path: Path) -> Records:
    begin, names = 1, list[str]()
    csv.field_size_limit(lines.LONGEST)
    content = (f"{line.text}\n" for line in lines.of_file(path))
    tsv = csv.reader(content, delimiter="\t", quoting=csv.QUOTE_NONE)
    rows = tsv if ".tsv" in path.suffixes else csv.reader(content, strict=True)
    try:
        for fields in rows:
            if names:
                yield begin, dict(zip(names, [*fields, *[""] * len(names)], strict=False)), uneven(fields, names)
            names = names or [name.removeprefix("\ufeff") for name in fields or [""]]
            begin = rows.line_num + 1
    except csv.Error as error:
        cure = "Write each quote inside a quoted field twice, or convert the file to tsv."
        raise CorpusError.at(path, begin, f"the quotes are broken ({error}). {cure}") from None


def _objects(path: Path) -> Records:
    for line in lines.of_file(path):
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            record = error
        if not isinstance(record, dict):
            what = f"the line is not a JSON object ({record}). Write one JSON object per line."
            raise CorpusError.at(path, line.number, what)
        yield line.number, record, ""


def _reviews(source: Path, split: str) -> Iterator[Row]:
    """Yield IMDB's reviews of a split, sorted by label and number; the archive is read without unpacking it."""
    try:
        found = ((REVIEW.search(name), content) for name, content in _members(source))
        reviews = [(match, content) for match, content in found if match and match[1] == split]
    except (tarfile.TarError, *DAMAGED) as error:
        raise CorpusError(f"{source}: the archive is damaged ({error}). Download the archive again.") from None
    for match, content in sorted(reviews, key=lambda review: (review[0][2], int(review[0][3]))):
        label, where = match[2], f"{split}/{match[2]}/{int(match[3])}"
        text = " ".join(line.text for line in lines.read(source / match.string, io.BytesIO(content)))
        yield Row(where, where, (BREAK.sub(" ", text),), label)


def _members(source: Path) -> Iterator[tuple[str, bytes]]:
    if source.is_dir():
        yield from ((path.relative_to(source).as_posix(), path.read_bytes()) for path in source.rglob("*.txt"))
        return
    with tarfile.open(source, "r|*") as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)):
                yield member.name, file.read()


# --- rows


def prepare(options: argparse.Namespace) -> dict[str, Any]:
    """Write the prepared folder, and return the content of its glue.json."""
    by_split = sources(options)
    with prepared.new_folder(options.output, CURE) as (folder, problems):
        original = {split: [*rows()] for split, (_, rows) in by_split.items()}
        labels = tuple(sorted({row.label for row in original["train"] if row.label and not row.uneven}))
        if len(labels) < 2:
            what = f"the training set has {len(labels)} different labels, but at least 2 are needed"
            raise CorpusError(f"{what}. Check --label, which names the column with the labels.")
        usable = {split: tidied(split, rows, labels, options.bad, problems) for split, rows in original.items()}
        prepared.refuse(options.output, problems, CURE)
        usable["train"] = usable["train"][: options.limit or None]
        usable = with_valid(usable, options, problems)
        for split, rows in usable.items():
            if not rows:
                path = by_split.get(split, by_split["train"])[0]
                raise CorpusError(f"{path}: the split {split} has no usable rows. Give a file with more rows.")
        record = write(folder, usable, labels, options)
        files = {split: path for split, (path, _) in by_split.items() if path.is_file()}
        record["files"] = {split: prepared.described(path) for split, path in files.items()}
        record["problems"] = prepared.counted(problems)
        prepared.write_json(folder / "glue.json", record)
    return record


def tidied(split: str, rows: list[Row], labels: tuple[str, ...], bad: str, problems: list[Problem]) -> list[Row]:
    """Return the usable rows, with text that `lines.tidy` cleaned, and append the problems of the others to a list.

    The rows for GLUE's server have no labels, and a submission needs an answer for each of them, so all are usable.
    """
    clean = [row._replace(texts=tuple(map(lines.tidy, row.texts))) for row in rows]
    if split.startswith("glue"):
        return [row._replace(label=None) for row in clean]
    named = [row._replace(id=row.where) for row in clean]
    return checked(split, named, partial(_defect, labels), bad, problems, kept=False)


def _defect(labels: tuple[str, ...], row: Row) -> Defect:
    if row.uneven:
        return "fields", row.uneven
    if not all(map(lines.is_seen, row.texts)):
        return "empty text", f"the text has no visible characters: {row.texts!r}"
    if not row.label:
        return "no label", "the row has no label"
    if row.label not in labels:
        return "unknown label", f"the label {row.label!r} does not occur in the training set ({', '.join(labels)})"
    return None


def with_valid(
    rows: dict[str, list[Row]], options: argparse.Namespace, problems: list[Problem]
) -> dict[str, list[Row]]:
    """Hold out training rows for a missing validation set and for a missing test set.

    The two sets must differ, because checkpoints are chosen on the validation set, and the test set is scored once. The
    training set of SST-2 holds sentences and phrases of them. Its sentences are held out with all their phrases, and
    phrases of sentences of both sides are left out.
    """
    for number, split in enumerate(("valid", "test")):
        if split not in rows:
            draw, train = random.Random(f"{options.seed}.{number}"), rows["train"]
            groups = sentences(train) if options.task == "sst2" else [{position} for position in range(len(train))]
            drawn = {name: draw.random() < options.valid_part for name in range(len(train))}
            sides = [{drawn[name] for name in names} for names in groups]
            rows["train"] = [row for row, side in zip(train, sides, strict=True) if side == {False}]
            rows[split] = [row for row, side in zip(train, sides, strict=True) if side == {True}]
            shared = [row for row, side in zip(train, sides, strict=True) if len(side) > 1]
            what = f"the phrase is a part of sentences in train and of sentences in {split}"
            problems += [Problem("train", row.where, row.id, SHARED, what, "left out") for row in shared]
    order = ("train", "valid", "test")
    return {split: rows[split] for split in (*order, *(split for split in rows if split not in order))}


def sentences(rows: list[Row]) -> list[set[int]]:
    """Return for each row the numbers of the sentences that contain it; a sentence is in no other row.

    SST-2 does not say which sentence a phrase belongs to.
    """
    words = [row.texts[0].split() for row in rows]
    owners: dict[str, set[int]] = {" ".join(row): set() for row in words}
    for number in sorted(range(len(rows)), key=lambda number: -len(words[number])):
        if not owners[" ".join(words[number])]:
            for begin, end in combinations(range(len(words[number]) + 1), 2):
                if (phrase := " ".join(words[number][begin:end])) in owners:
                    owners[phrase].add(number)
    return [owners[" ".join(row)] for row in words]


# --- words


def splitter(tokenizer: str) -> Callable[[str], list[str]]:
    """Return a function that splits text into words; `tokenizer` is nltk or spaces."""
    if tokenizer == "spaces":
        return str.split
    from nltk.tokenize import NLTKWordTokenizer  # takes a second, which --help does not need
    from sentencex import segment

    split = NLTKWordTokenizer().tokenize
    return lambda text: [word for sentence in segment("en", text) for part in split(sentence) for word in part.split()]


def vocabulary(words: Counter[str], more_than: int, glove: Path | None) -> tuple[Dictionary, NDArray[Any] | None]:
    """Return the words that occur more than `more_than` times in the training text.

    If a file `glove` is given, words without a vector are left out, and the vectors are returned in the order of the
    dictionary, [words, width].

    Raises:
        CorpusError: No word is left, or the vectors cannot be read.
    """
    ranked = sorted(words.items(), key=lambda entry: (-entry[1], entry[0]))
    counts = {word: count for word, count in ranked if count > more_than and word not in prepared.TAKEN}
    vectors = read_vectors(glove, counts.keys()) if glove else {}
    counts = {word: count for word, count in counts.items() if not glove or word in vectors}
    if not counts:
        what = f" and has a vector in {glove}" if glove else ""
        why = f"no word of the training text occurs more than {more_than} times{what}"
        raise CorpusError(f"--more-than {more_than}: {why}. Give --more-than 0.")
    return Dictionary([*counts], [*counts.values()]), np.stack([vectors[word] for word in counts]) if glove else None


def read_vectors(path: Path, words: Collection[str]) -> dict[str, NDArray[np.float32]]:
    """Return the vectors of the words that a file in GloVe's format, plain or zipped, contains.

    The file is read as a stream: glove.840B.300d.zip holds 2.2 million lines (5.6 GB) of a word and 300 numbers,
    separated by spaces. Some words themselves contain spaces (". . ."). Of a repeated word, the first vector counts.

    Raises:
        CorpusError: The file cannot be read, or a line has fewer numbers than the first one.
    """
    vectors, width = dict[str, NDArray[np.float32]](), 0
    for number, line in enumerate(_vector_lines(path), start=1):
        width = width or len(line.split()) - 1
        fields = line.rstrip(b"\r\n").rstrip(b" ").rsplit(b" ", max(width, 1))
        word = fields[0].decode("utf-8", errors="replace")
        try:
            if width < 2 or len(fields) <= width:
                raise ValueError(f"the line has {len(fields) - 1} numbers after the word instead of {width or 'some'}")
            if word in words and word not in vectors:
                vectors[word] = np.array([float(field) for field in fields[1:]], dtype=np.float32)
                if not np.isfinite(vectors[word]).all():
                    raise ValueError("a number is infinite or NaN")
        except ValueError as error:
            cure = "Give word vectors in GloVe's format, or fetch the file again."
            raise CorpusError.at(path, number, f"{error}. {cure}") from None
    if not width:
        raise CorpusError(f"--glove {path}: the file is empty. Give word vectors in GloVe's format.")
    return vectors


def _vector_lines(path: Path) -> Iterator[bytes]:
    with ExitStack() as stack:
        if path.suffix != ".zip":
            yield from stack.enter_context(path.open("rb"))
            return
        try:
            archive = stack.enter_context(zipfile.ZipFile(path))
            names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
            if len(names) != 1:
                what = f"the archive holds {len(names)} files instead of one file of word vectors"
                raise CorpusError(f"--glove {path}: {what}. Unpack the archive, and give the file of word vectors.")
            yield from stack.enter_context(archive.open(names[0]))
        except zipfile.BadZipFile as error:
            raise CorpusError(f"--glove {path}: the archive is damaged ({error}). Download it again.") from None


# --- output


def write(
    folder: Path, rows: dict[str, list[Row]], labels: tuple[str, ...], options: argparse.Namespace
) -> dict[str, Any]:
    """Write all files except glue.json and problems.jsonl; return the content of glue.json without file hashes."""
    split_text, pairs = splitter(options.tokenizer), len(rows["train"][0].texts) == 2
    texts = {
        split: [*prepared.spread(lambda row: [split_text(text) for text in row.texts], part, options.workers)]
        for split, part in rows.items()
    }
    dictionary, vectors = vocabulary(Counter(chain(*chain(*texts["train"]))), options.more_than, options.glove)
    ids, counts = dictionary.ids(), dict[str, dict[str, Any]]()
    for split, part in rows.items():
        items = [[[ids.get(word, UNKNOWN) for word in text] for text in row] for row in texts[split]]
        examples = ((row.id, item, row.label) for row, item in zip(part, items, strict=True))
        marks = 3 if pairs else 1  # `<s> a </s> b </s>`, or `a </s>`
        counts[split] = write_split(folder, split, examples, len(dictionary), labels, options.length, marks)
        counts[split]["labels"] = dict(Counter(row.label for row in part if row.label is not None))
    write_dictionaries(folder, dictionary, labels, 1 + pairs)
    if vectors is not None:
        from safetensors.numpy import save_file

        save_file({"vectors": vectors}, folder / "word_vectors.safetensors")
    facts = {"task": options.task, "pair": pairs, "labels": [*labels], "longest": options.length}
    facts |= {"tokenizer": options.tokenizer, "words": len(dictionary.symbols), "more than": options.more_than}
    facts |= {"word vectors": prepared.described(options.glove) if options.glove else None}
    return {**facts, "splits": counts}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
