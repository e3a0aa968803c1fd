#!/usr/bin/env python3
"""Prepare a GLUE task (Wang et al. 2018), or XNLI (Conneau et al. 2018), for a pretrained model.

The output is for --task posenc_sentence_prediction or fairseq's sentence_prediction. The input consists of the
published files, plain or .gz. A GLUE task has train.tsv, dev.tsv and test.tsv; MNLI has matched and mismatched sets.
MRPC may also have msr_paraphrase_{train,test}.txt with mrpc_dev_ids.tsv. XNLI has xnli.{dev,test}.tsv, or
dev-LANGUAGE.tsv and test-LANGUAGE.tsv as in XTREME; it trains on multinli.train.en.tsv, train-en.tsv or GLUE's
MNLI/train.tsv.

A single sentence becomes `<s> a </s>`. A pair becomes `<s> a </s></s> b </s>` (RoBERTa) or `<s> a </s> b </s>` (BERT).
The task adds <s> (--init-token) and the separators before the second sentence (--separator-token), so the files contain
neither. All lengths include <s> and all separators.

  prepare_glue.py --task SST-2 --corpus glue_data --checkpoint checkpoint_last.pt --output data-bin/glue/SST-2
  prepare_glue.py --task MNLI --corpus data/raw/glue --checkpoint bert-base-uncased --separators 1 --length 128 \\
      --output data-bin/glue/MNLI
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import command
import prepared
from command import at_least
from corpora import lines
from corpora.lines import there
from corpora.pieces import END, SPECIALS, UNKNOWN
from prepared import Dictionary, Problem
from shared import CorpusError, digest

NEEDED = ("train", "valid")  # splits that every task needs, and that have labels
PAIR = ("sentence1", "sentence2")
BINARY, ENTAILMENT, THREE = ("0", "1"), ("entailment", "not_entailment"), ("contradiction", "entailment", "neutral")
#: MRPC's training file, which contains the development set, and the list of the development set's ids
MRPC_TRAIN, MRPC_DEV_IDS = "msr_paraphrase_train.txt", "mrpc_dev_ids.tsv"
LANGUAGES = tuple("en ar bg de el es fr hi ru sw th tr ur vi zh".split())  # of XNLI
LANGUAGE = "language"  # column of XNLI's original files, which hold all languages
LOWEST, HIGHEST = 0.0, 5.0  # scores of STS-B
#: A larger fraction of unknown pieces in the training text is an error.
MOST_UNKNOWN = 0.2
CURE = "Correct these rows, or leave them out with --bad skip."


@dataclass(frozen=True)
class Task:
    """Describe the form in which the files of a task are published.

    Args:
        texts: Columns with the sentences (one or two).
        labels: Labels of the classes, separated by spaces; empty for regression.
        files: Candidate files of each split; the first file that exists is read.
        index: Column that numbers the rows; without it, rows are numbered from 0.
        header: Columns of files without a header line.
        folders: Folders to which the archives of the task unpack, besides TASK/.
    """

    texts: tuple[str, ...]
    label: str
    labels: tuple[str, ...] = ()
    files: tuple[str, ...] = ("train train.tsv", "valid dev.tsv", "test test.tsv")
    index: str = "index"
    header: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


MRPC = (f"train train.tsv {MRPC_TRAIN}", f"valid dev.tsv {MRPC_TRAIN}", "test test.tsv msr_paraphrase_test.txt")
MNLI: tuple[str, ...] = ("train train.tsv", "valid dev_matched.tsv", "valid-mismatched dev_mismatched.tsv")
MNLI += ("test test_matched.tsv", "test-mismatched test_mismatched.tsv")
MNLI += ("test-ax AX.tsv ../AX.tsv diagnostic.tsv ../diagnostic/diagnostic.tsv",)
XNLI: tuple[str, ...] = ("train train-en.tsv multinli.train.en.tsv MNLI/train.tsv", "valid dev-en.tsv xnli.dev.tsv")
XNLI += tuple(f"valid-{code} dev-{code}.tsv xnli.dev.tsv" for code in LANGUAGES[1:])
XNLI += tuple(f"test-{code} test-{code}.tsv xnli.test.tsv" for code in LANGUAGES)
XNLI_FOLDERS = ("xnli", "xnli/XNLI-1.0", "xnli/XNLI-MT-1.0/multinli")
#: columns and labels in other versions of XNLI's files, mapped to the names used here
NAMES = {"premise": PAIR[0], "hypo": PAIR[1], "label": "gold_label", "contradictory": "contradiction"}
TASKS = {
    "CoLA": Task(("sentence",), "label", BINARY, header=("source", "label", "mark", "sentence")),
    "SST-2": Task(("sentence",), "label", BINARY),
    "MRPC": Task(("#1 String", "#2 String"), "Quality", BINARY, MRPC),
    "STS-B": Task(PAIR, "score"),
    "QQP": Task(("question1", "question2"), "is_duplicate", BINARY, index="id", folders=("QQP-clean",)),
    "MNLI": Task(PAIR, "gold_label", THREE, MNLI),
    "QNLI": Task(("question", "sentence"), "label", ENTAILMENT, folders=("QNLIv2",)),
    "RTE": Task(PAIR, "label", ENTAILMENT),
    "XNLI": Task(PAIR, "gold_label", THREE, XNLI, header=(*PAIR, "gold_label"), folders=XNLI_FOLDERS),
}


def main(arguments: list[str]) -> int:
    parser = command.parser("prepare_glue.py", __doc__ or "", "")
    add = parser.add_argument
    add("--task", required=True, choices=list(TASKS), help="Name of a GLUE task, or XNLI.")
    text = "Folder that holds the files of the task, either directly or in a subfolder with the name of the task."
    add("--corpus", type=Path, required=True, metavar="DIR", help=text)
    text = "Maximum number of pieces in an item (default: 512). Of longer items, the longer sentence is cut at its end."
    add("--length", type=at_least(8), default=512, metavar="N", help=text)
    text = "If there is no training file, train on the first N rows of the development set, and leave them out of it."
    add("--train-rows", type=at_least(0), default=0, metavar="N", help=text)
    text = "Languages of XNLI's development and test sets, besides English for development (default: all with files)."
    add("--languages", default="", metavar="A,B", help=text)
    prepared.add_model(parser)
    prepared.add_common(parser, ("refuse", "skip"))
    options = parser.parse_args(arguments)
    if options.languages and options.task != "XNLI":
        parser.error(f"--languages is only for --task XNLI. Leave out --languages with --task {options.task}.")
    return prepared.run(lambda: prepare(options, TASKS[options.task]), options.output)


# --- published files


class Row(NamedTuple):
    """Hold a line of a file: its place, its id in the file or its number from 0, its texts and its label (or None)."""

    where: str
    id: str
    texts: tuple[str, ...]
    label: str | None
    uneven: str = ""  # says that the number of fields is wrong


#: kind and description of what is wrong with a row, or None
Defect = tuple[str, str] | None


def uneven(fields: list[str], names: list[str]) -> str:
    """Return what is wrong with the number of fields of a row, or an empty text."""
    right = len(fields) == len(names)
    return "" if right else f"the row has {len(fields)} fields, but the header has {len(names)}"


def language(split: str) -> str:
    """Return the language of a split: `de` for `valid-de`, and English for names without a language."""
    return split.partition("-")[2] or LANGUAGES[0]


def find(folder: Path, name: str, needed: tuple[str, ...] = NEEDED) -> dict[str, Path]:
    """Return the files of a task by split, plain or .gz, from FOLDER/TASK, the unpacked archive, or FOLDER.

    Raises:
        CorpusError: A required split has no file.
    """
    places = [*(folder / part for part in (name, *TASKS[name].folders)), folder]
    candidates = {split: files for split, *files in map(str.split, TASKS[name].files)}
    paths = dict[str, Path]()
    for split, files in candidates.items():
        found = [path for place in places for file in files if (path := there(place / file))]
        if found:
            paths[split] = found[0]
    for split in needed:
        if split not in paths:
            expected = f"{' or '.join(candidates[split])} (plain or .gz)"
            rows = ", or give --train-rows N to train on the first rows of the (English) development set"
            cure = f"Add the file{rows if split == 'train' and 'valid' in paths else ''}"
            raise CorpusError(f"{folder}: neither the folder nor its subfolder {name} holds {expected}. {cure}.")
    return paths


def read(path: Path, task: Task, split: str) -> Iterator[Row]:
    """Yield the rows of a split. Fields are never quoted: quotation marks are part of the text.

    Raises:
        CorpusError: The file cannot be read, its header lacks a column, or a row has an unknown language.
    """
    content, required = lines.of_file(path), split.startswith(NEEDED)
    first = next(content, None) or lines.Line(1, "")
    names = [NAMES.get(name, name) if task.files is XNLI else name for name in first.text.lstrip("\ufeff").split("\t")]
    # Of CoLA's files, only the test file has a header. XTREME's files of XNLI have none, and its test files no labels.
    if task.header and not set(task.texts) <= set(names):
        bare = [name for name in task.header if name != task.label]
        names = bare if not required and len(names) == len(bare) else [*task.header]
        content = chain([first], content)
    for name in (*task.texts, *([task.label] if required else [])):
        if name not in names:
            raise CorpusError.at(path, 1, f"the header lacks the column {name!r}; it has {', '.join(names)}.")
    development = _mrpc_ids(path) if path.name.removesuffix(".gz") == MRPC_TRAIN else None
    number = 0
    for line in content:
        fields = line.text.split("\t")
        cells, where = dict(zip(names, map(str.strip, fields), strict=False)), f"{path.name}:{line.number}"
        if LANGUAGE in names and (code := cells.get(LANGUAGE)) != language(split):
            if code not in LANGUAGES:  # it would shift the row numbers, which are the same in all languages
                raise CorpusError.at(path, line.number, f"unknown language {code!r}. Correct the row, or remove it.")
        elif development is None or (tuple(fields[1:3]) in development) == (split == "valid"):
            label, texts = cells.get(task.label), tuple(cells.get(name, "") for name in task.texts)
            label = NAMES.get(label, label) if label and task.files is XNLI else label
            yield Row(where, cells.get(task.index) or str(number), texts, label, uneven(fields, names))
            number += 1


def _mrpc_ids(path: Path) -> set[tuple[str, ...]]:
    """Return the ids of MRPC's development set, which GLUE publishes in a separate file."""
    listed = there(path.with_name(MRPC_DEV_IDS))
    if listed is None:
        cure = f"Fetch the file with fetch.py glue/{MRPC_DEV_IDS}."
        raise CorpusError(f"{path}: {MRPC_DEV_IDS} must be in the same folder. {cure}")
    return {tuple(line.text.split("\t")[:2]) for line in lines.of_file(listed)}


# --- rows


def prepare(options: argparse.Namespace, task: Task) -> dict[str, Any]:
    """Write the prepared folder, and return the content of its glue.json."""
    paths, splits, facts = sources(options), dict[str, list[Row]](), dict[str, dict[str, Any]]()
    with prepared.new_folder(options.output, CURE) as (folder, problems):
        for split, path in paths.items():
            rows = [*read(path, task, "valid" if split == "train" and options.train_rows else split)]
            if not rows and [*paths.values()].count(path) > 1:
                continue  # the file of all languages has no rows of this language
            facts[split] = {"in file": len(rows), "file": path.name, "sha256": digest(path)}
            if split == "train":
                rows = rows[: options.train_rows or None][: options.limit or None]
            elif split == "valid" or (options.task == "XNLI" and split.startswith("valid")):
                rows = rows[options.train_rows :]  # the training rows, and their translations
            facts[split] = {"given": len(rows), **facts[split]}
            kept = not split.startswith(NEEDED) and task.files is not XNLI  # XNLI's test sets are scored, not submitted
            defect = partial(defect_of, task, split)
            splits[split] = checked(split, rows, defect, options.bad, problems, kept=kept)
        prepared.refuse(options.output, problems, CURE)
        _refuse_shifted(facts, options)
        for split, rows in splits.items():
            if not rows:
                given, in_file = facts[split]["given"], facts[split]["in file"]
                problem = f"{in_file:,} rows in the file, {given:,} for {split}, none of them usable"
                raise CorpusError(f"{paths[split]}: {problem}. Give another file, or a smaller --train-rows.")
        record = _write(folder, splits, options, task)
        for split in splits:
            record["splits"][split] |= facts[split]
        record["problems"] = prepared.counted(problems)
        prepared.write_json(folder / "glue.json", record)
    return record


def sources(options: argparse.Namespace) -> dict[str, Path]:
    """Return the file of each split of the chosen languages; English is always prepared for training and development.

    Raises:
        CorpusError: A required file or language is missing, or --train-rows is given and a training file exists.
    """
    paths = find(options.corpus, options.task, NEEDED if not options.train_rows else ("valid",))
    if options.train_rows and "train" in paths:
        problem = f"--train-rows is only for a folder without a training file, but {paths['train']} exists"
        raise CorpusError(f"{problem}. Leave out --train-rows.")
    paths, chosen = {"train": paths["valid"], **paths}, {*filter(None, options.languages.split(","))}
    if missing := chosen - {language(split) for split in paths}:
        problem = f"{options.corpus} has no {options.task} files for these languages. Leave out these languages."
        raise CorpusError(f"--languages {','.join(sorted(missing))}: {problem}")
    return {split: path for split, path in paths.items() if not chosen or split in NEEDED or language(split) in chosen}


def checked(
    split: str, rows: list[Row], defect: Callable[[Row], Defect], how: str, problems: list[Problem], *, kept: bool
) -> list[Row]:
    """Return the rows to write, and append the problems to a list.

    Args:
        defect: Function that returns the kind and the description of what is wrong with a row, or None.
        how: Value of --bad.
        kept: Whether bad rows are kept without a label, as in GLUE's test sets: a submission has to answer all rows.
    """
    usable = list[Row]()
    for row in rows:
        if (problem := defect(row)) is None:
            usable.append(row)
            continue
        usable += [row._replace(label=None)] if kept else []
        done = "refused" if how == "refuse" else "kept" if kept else "left out"
        problems.append(Problem(split, row.where, row.id, *problem, done))
    return usable


def defect_of(task: Task, split: str, row: Row) -> Defect:
    """Return what is wrong with a row of GLUE or XNLI, or None."""
    labelled = row.label is not None or split.startswith(NEEDED)
    if row.uneven:
        return "fields", row.uneven
    if not all(row.texts):
        return "empty sentence", f"a sentence of {row.texts!r} is empty"
    if labelled and not (row.label in task.labels if task.labels else _is_score(row.label)):
        known = f"one of {', '.join(task.labels)}" if task.labels else f"from {LOWEST:g} to {HIGHEST:g}"
        return "label", f"the label is {row.label!r}, but must be {known}"
    return None


def _is_score(word: str | None) -> bool:
    try:
        return LOWEST <= float(word or "nan") <= HIGHEST
    except ValueError:
        return False


def _refuse_shifted(facts: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    """Refuse --train-rows if development sets differ in length, because row numbers identify translations."""
    rows = {language(split): counts["given"] for split, counts in facts.items() if split.startswith("valid")}
    if options.task == "XNLI" and options.train_rows and len(set(rows.values())) > 1:
        lengths = ", ".join(f"{code} {count:,}" for code, count in rows.items())
        problem = "development sets need the same number of rows in all languages"
        numbers = f"Without the training rows, they have these: {lengths}"
        raise CorpusError(f"--train-rows {options.train_rows}: {problem}. {numbers}. Fetch the files again.")


# --- output

#: the name of a row in SPLIT.ids, the ids of each of its texts, and its label
Example = tuple[str, list[list[int]], str | None]


def write_split(
    folder: Path, split: str, examples: Iterable[Example], size: int, labels: tuple[str, ...], longest: int, marks: int
) -> dict[str, Any]:
    """Write the files of a split, and return its counts.

    The files are input0/SPLIT, input1/SPLIT for pairs, and SPLIT.ids. If all examples have labels, the function also
    writes label/SPLIT for classes, or label/SPLIT.label for regression.

    Args:
        size: Size of the dictionary.
        labels: Labels of the classes; empty for regression.
        longest: Maximum number of pieces of an item, including special symbols.
        marks: Number of special symbols of an item.
    """
    tally, longest_item = Counter[str](items=0, cut=0, pieces=0, unknown=0), 0
    names, texts, found = zip(*examples, strict=True)
    for sentences in texts:
        pieces = sum(map(len, sentences)) + marks
        cut(sentences, longest - marks)
        unknown = sum(sentence.count(UNKNOWN) for sentence in sentences)
        tally.update(items=1, cut=int(pieces > longest), pieces=pieces, unknown=unknown)
        longest_item = max(longest_item, min(pieces, longest))
    for number, column in enumerate(zip(*texts, strict=True)):
        prepared.write_items(folder / f"input{number}" / split, ([*sentence, END] for sentence in column), size)
    _write_lines(folder / f"{split}.ids", names)
    labelled = None not in found
    if labelled and labels:
        classes = ([len(SPECIALS) + labels.index(label), END] for label in found)
        prepared.write_items(folder / "label" / split, classes, len(labels))
    elif labelled:
        _write_lines(folder / "label" / f"{split}.label", found)
    return {**tally, "labelled": labelled, "longest": longest_item}


def write_dictionaries(folder: Path, dictionary: Dictionary, labels: tuple[str, ...], texts: int) -> None:
    """Write the dictionary of each input (first or second sentence), and the dictionary of the classes."""
    dictionary.write(*(folder / f"input{number}" / "dict.txt" for number in range(texts)))
    if labels:
        _write_lines(folder / "label" / "dict.txt", [f"{label} 1" for label in labels])


def cut(sentences: list[list[int]], room: int) -> None:
    """While an item is too long, drop the last piece of its longer sentence, as BERT does."""
    while sum(map(len, sentences)) > room:
        max(reversed(sentences), key=len).pop()  # shortens the second sentence if both are equally long


def _write_lines(path: Path, rows: Iterable[str | None]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def _write(folder: Path, splits: dict[str, list[Row]], options: argparse.Namespace, task: Task) -> dict[str, Any]:
    """Write all files except glue.json and problems.jsonl; return the content of glue.json without file hashes."""
    dictionary = prepared.pretrained(options.checkpoint, options.tokenizer, "--checkpoint")
    from fairseq_posenc.data.question_pieces import Pretrained  # takes seconds, which --help does not need

    ids, pieces = dictionary.ids(), Pretrained(dictionary.contents or {})

    def example(row: Row) -> Example:
        texts = [[ids.get(piece.name, UNKNOWN) for piece in pieces.cut(text)] for text in row.texts]
        return row.id, texts, row.label

    marks, counts = 2 + options.separators * (len(task.texts) - 1), dict[str, dict[str, Any]]()
    for split, rows in splits.items():
        examples = prepared.spread(example, rows, options.workers)
        counts[split] = write_split(folder, split, examples, len(dictionary), task.labels, options.length, marks)
    write_dictionaries(folder, dictionary, task.labels, len(task.texts))
    if (unknown := counts["train"]["unknown"] / max(counts["train"]["pieces"], 1)) > MOST_UNKNOWN:
        problem = f"{unknown:.0%} of the training pieces are not in the model's dictionary"
        cure = "so the model does not fit this text. Give another model."
        raise CorpusError(f"--checkpoint {options.checkpoint}: {problem}, {cure}")
    facts = {"task": options.task, "pair": len(task.texts) == 2, "labels": [*task.labels]}
    facts |= {"bounds": None if task.labels else [LOWEST, HIGHEST], "longest": options.length}
    facts |= {"separators": options.separators, "dictionary": len(dictionary)}
    return {**facts, "splits": counts}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
