#!/usr/bin/env python3
"""Prepare SQuAD, XQuAD, MLQA, TyDiQA-GoldP or your own questions for extractive question answering.

The output is for --task posenc_squad: questions and contexts are tokenised for a pretrained model, contexts are cut
into overlapping windows, and the offsets of the pieces in the text are stored. The input is JSON in the format of SQuAD
1.1 or 2.0, plain or .gz.

  prepare_spans.py --checkpoint checkpoint_last.pt --train train-v1.1.json --eval dev-v1.1.json \\
      --output data-bin/squad-spans
  prepare_spans.py --checkpoint bert-base-uncased --separators 1 --version 2.0 --train train-v2.0.json \\
      --eval dev-v2.0.json --length 512 --output data-bin/squad2-spans
  prepare_spans.py --checkpoint xlm/ --eval de=xquad.de.json --eval zh=xquad.zh.json --output data-bin/xquad
  prepare_spans.py --checkpoint xlm/ --set mlqa --corpus MLQA_V1/test --languages en,de,zh --output data-bin/mlqa
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import command
import numpy as np
import prepared
import question_files as files
from command import at_least
from corpora.binary import dtype_for, shard
from corpora.pieces import SPECIALS, UNKNOWN
from prepared import Dictionary, Problem
from question_files import Question
from shared import CorpusError

if TYPE_CHECKING:
    from fairseq_posenc.data.span_items import Item, Shape
    from fairseq_posenc.data.span_pieces import Pieces

TRAIN, FLAGS = "train", "--train and --eval"
SPLITTERS = ("words", "chars", "spaces")  # simple tokenizers, implemented in fairseq_posenc/data/question_pieces.py
#: counts of each split in the record
COUNTED = (
    *("given", "questions", "windows", "in several windows", "without answer", "pieces", "unknown pieces"),
    *("answers given back", "pieces without windows", "sequences over 512 pieces"),
)
BERT_LENGTH = 512  # maximum length of BERT; the counts say how many questions with their contexts are longer
#: kinds of problems; an answer in no window is not learned, and no prediction can equal it
NO_WINDOW, CUT, LONG = "answer in no window", "cut question", "long context"
SCORED = "scored as it is"  # how evaluation splits handle questions with problems
#: fields of a window: the number of its question, its first piece of the context, its number of context pieces, the
#: column of the first one, and the columns of the answer's first and last piece
FIELDS = ("question", "first", "length", "column", "start", "end")
#: kinds of questions that --without leaves out, and of training questions that are in an evaluation split, too
ELSEWHERE, BOTH = "question scored elsewhere", "question that is answered too"


class Sets(NamedTuple):
    """Describe a set of XTREME (Hu et al. 2020): its languages, patterns of their file names, and its subfolders.

    The long name of a language, such as english, may stand in a file name.
    """

    languages: str
    names: tuple[str, ...]
    folders: tuple[str, ...]
    long: str = ""


MLQA = tuple(f"{above}{name}" for above in ("", "mlqa/") for name in ("MLQA_V1/test", "test", ""))
TYDIQA = ("tydiqa-goldp-v1.1-dev", "tydiqa", "tydiqa/tydiqa-goldp-v1.1-dev")
SETS = {
    "xquad": Sets("en ar de el es hi ru th tr vi zh", ("xquad.{code}",), ("xquad",)),
    "mlqa": Sets("en ar de es hi vi zh", ("test-context-{code}-question-{code}",), MLQA),
    # XTREME's names, then those of the published archive
    "tydiqa": Sets(
        "en ar bn fi id ko ru sw te",
        ("tydiqa.goldp.{code}.dev", "tydiqa-goldp-dev-{long}"),
        TYDIQA,
        "english arabic bengali finnish indonesian korean russian swahili telugu",
    ),
}


def main(arguments: list[str]) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.corpus and not options.set and (options.train or options.eval):
        parser.error("--corpus cannot be combined with --train or --eval. Leave out --corpus or the other options.")
    if options.set and not options.corpus:
        parser.error("--set needs --corpus, the folder with the published files.")
    if options.languages and not (options.set or options.without):
        parser.error("--languages needs --set or --without.")
    if not (options.corpus or options.train or options.eval):
        parser.error("Give --corpus, --train or --eval.")
    return prepared.run(lambda: prepare(options), options.output)


def build_parser() -> argparse.ArgumentParser:
    parser = command.parser("prepare_spans.py", __doc__ or "", "")
    add = parser.add_argument
    text = "Version of SQuAD's format; in 2.0, questions may have no answer (default: 1.1)."
    add("--version", choices=("1.1", "2.0"), default="1.1", help=text)
    text = "Folder with train.json and dev.json (or train-v1.1.json and so on), or a single JSON file, which is split "
    text += "by article into train and valid (8:2). With --set: folder with the published files of the set."
    add("--corpus", type=Path, metavar="FILE|DIR", help=text)
    add("--seed", type=int, default=1, metavar="N", help="Random seed for splitting a single file (default: 1).")
    add("--train", type=Path, metavar="FILE", help="Training file (not together with --corpus).")
    text = "Evaluation file, which becomes the split NAME (default: valid). This option can be repeated."
    add("--eval", action="append", default=[], metavar="[NAME=]FILE", help=text)
    text = "XTREME set for evaluation; each language becomes a split that is named by the language's code."
    add("--set", choices=list(SETS), help=text)
    text = "Languages of --set and --without; each must have a file (default: all that have a file)."
    add("--languages", default="", metavar="A,B", help=text)
    text = "Maximum number of questions of each evaluation split (default: 0, which means all)."
    add("--limit-eval", type=at_least(0), default=0, metavar="N", help=text)
    text = "Leave out all questions whose ids occur in the files of the XTREME set SET in DIR, so that you can choose "
    text += "settings on questions that are not in the test set. The option can be repeated."
    add("--without", action="append", default=[], metavar="SET=DIR", help=text)
    text = "Maximum number of pieces in a window, including the question (default: 384)."
    add("--length", type=at_least(1), default=384, metavar="N", help=text)
    text = "Distance in pieces between the starts of neighbouring windows (default: 128)."
    add("--stride", type=at_least(1), default=128, metavar="N", help=text)
    text = "Maximum number of pieces in a question; longer questions are cut and counted (default: 64)."
    add("--longest-question", type=at_least(1), default=64, metavar="N", help=text)
    prepared.add_model(parser)
    prepared.add_common(parser, files.HOW)
    return parser


# --- files


def sources(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files by split, with `TRAIN` first, or {'': --corpus} for a single file.

    Raises:
        CorpusError: A file is missing, or two options name the same split or file.
    """
    if options.corpus and not options.set:
        if not options.corpus.is_dir():
            return {"": options.corpus}
        return files.find(options.corpus, FLAGS, ("{}.json", f"{{}}-v{options.version}.json"))
    paths = {TRAIN: options.train} if options.train else {}
    for word in options.eval:
        name, equals, path = word.partition("=")
        name, path = (name, path) if equals else ("valid", word)
        if not re.fullmatch(r"[\w.-]+", name) or name in paths:
            raise CorpusError(f"--eval {word}: give NAME=FILE with a new name of letters, digits, '.', '-' and '_'.")
        paths[name] = Path(path)
    if options.set:
        paths |= find(options.corpus, options.set, options.languages)
    for split, path in paths.items():
        if split != TRAIN and options.train and path.resolve() == options.train.resolve():
            raise CorpusError(f"--train and {split} are the same file, {path}. Give another file for evaluation.")
    return paths


def find(folder: Path, name: str, languages: str = "") -> dict[str, Path]:
    """Return the file of each language of a set.

    A file may hold a part of the questions and have one more word in its name, as in `xquad.de.part1.json.gz`.

    Args:
        languages: Languages that must have files, separated by commas; if empty, return all that have files.
    Raises:
        CorpusError: A language is unknown or has no file, no file exists at all, or a language has two files.
    """
    known, chosen = SETS[name], [*filter(None, languages.split(","))]
    long = dict(zip(known.languages.split(), known.long.split(), strict=False))
    if unknown := [code for code in chosen if code not in known.languages.split()]:
        has = f"{name} has only the languages {known.languages.replace(' ', ',')}"
        raise CorpusError(f"--languages {','.join(unknown)}: {has}.")
    codes = [code for code in known.languages.split() if code in (chosen or known.languages.split())]
    stems = {code: [stem.format(code=code, long=long.get(code, "")) for stem in known.names] for code in codes}
    paths = {code: path for code in codes if (path := _file(folder, known, stems[code]))}
    missing = [code for code in codes if code not in paths]
    if missing and (chosen or not paths):
        expected = " or ".join(f"{stem}.json" for stem in stems[missing[0]])
        problem = f"neither the folder nor its subfolder {known.folders[0]} holds {expected} (plain or .gz)"
        raise CorpusError(f"{folder}: {problem}. It has files for these languages: {','.join(paths) or 'none'}.")
    if missing:
        print(f"{name}: {folder} has no file for {', '.join(missing)}", flush=True)
    return paths


def _file(folder: Path, known: Sets, stems: Sequence[str]) -> Path | None:
    for place in [folder, *(folder / subfolder for subfolder in known.folders)]:
        for stem in stems:
            paths = [path for end in (".json", ".json.gz") if (path := place / f"{stem}{end}").is_file()]
            paths = paths or sorted(path for end in ("json", "json.gz") for path in place.glob(f"{stem}.*.{end}"))
            if len(paths) > 1:
                names = ", ".join(path.name for path in paths)
                raise CorpusError(f"{place}: {names} hold the same split. Keep one of them, or use --eval NAME=FILE.")
            if paths:
                return paths[0]
    return None


# --- questions


def read(paths: dict[str, Path], options: argparse.Namespace, problems: list[Problem]) -> dict[str, list[Question]]:
    """Return each split's questions without repeated ids, and append problems to a list."""
    questions, answered = dict[str, list[Question]](), True
    for split, path in paths.items():
        if path.exists() and not files.is_json(path):  # line files have no offsets of answers
            raise CorpusError(f"{path}: give NAME.json in SQuAD's format, plain or .gz.")
        malformed = list[Question]()
        part = files.read(path, malformed)
        impossible = [question.id for question in part if question.impossible]
        if impossible and options.version == "1.1":
            count = f"{len(impossible)} questions have no answer ({', '.join(impossible[:5])})"
            raise CorpusError(f"{path}: {count}. Give --version 2.0 for the format of SQuAD 2.0.")
        answered &= all(question.answers and not question.impossible for question in part)
        first = {question.id: question for question in reversed(part)}
        repeated = [first[name] for name, count in Counter(question.id for question in part).items() if count > 1]
        part = [question for question in part if first[question.id] is question]
        wrong = [(entry, "malformed question", entry.text) for entry in malformed]
        wrong += [(entry, "duplicate id", "only the first question with this id is kept") for entry in repeated]
        problems += [files.new_problem(split or TRAIN, *facts, options.bad) for facts in wrong]
        if split:
            questions[split] = part
        else:  # the evaluation split gets the shares of validation and test
            drawn = files.divided(part, path, options.seed, FLAGS)
            questions |= {TRAIN: drawn[TRAIN], "valid": [*drawn["valid"], *drawn["test"]]}
    if answered and options.version == "2.0":
        named = ", ".join(map(str, paths.values()))
        raise CorpusError(f"{named}: every question has an answer. Give --version 1.1 for the format of SQuAD 1.1.")
    return questions


def leave_out(
    questions: dict[str, list[Question]], excluded: Sequence[Path], how: str, problems: list[Problem]
) -> None:
    """Remove the questions of the files `excluded` from all splits, and those of other splits from the training split.

    Questions are the same if their ids are equal.
    """
    ids = (question.id for path in excluded for question in files.read(path, []))
    elsewhere = dict.fromkeys(ids, "--without names a set that has a question with this id")
    for split, part in questions.items():
        questions[split] = _without(split, part, elsewhere, ELSEWHERE, "left out", problems)
    splits = {question.id: split for split, part in questions.items() if split != TRAIN for question in part}
    both = {name: f"the split {split} has a question with this id" for name, split in splits.items()}
    if TRAIN in questions:
        done = "refused" if how == "refuse" else "left out"
        questions[TRAIN] = _without(TRAIN, questions[TRAIN], both, BOTH, done, problems)


def _without(
    split: str, part: list[Question], reasons: dict[str, str], kind: str, done: str, problems: list[Problem]
) -> list[Question]:
    """Return the questions whose ids are not in `reasons`, and append the others to a list of problems."""
    gone = [question for question in part if question.id in reasons]
    if gone and len(gone) == len(part):
        reason = reasons[gone[0].id]
        raise CorpusError(f"{split}: all {len(part):,} questions are left out, because {reason}. Give another file.")
    problems += [Problem(split, entry.where, entry.id, kind, reasons[entry.id], done) for entry in gone]
    return [question for question in part if question.id not in reasons]


def check(
    split: str, questions: list[Question], options: argparse.Namespace, problems: list[Problem]
) -> tuple[list[Question], dict[str, Question]]:
    """Return the questions to write, and the usable ones by id, each with one answer; append problems to a list.

    Evaluation keeps questions with problems and all their answers, except those without an answer in SQuAD 1.1.
    """
    unanswerable, bad = options.version == "2.0", list[Problem]()
    usable = files.checked(split, questions, options.bad, bad, answers=True, impossible=unanswerable)
    written = usable if split == TRAIN else [entry for entry in questions if unanswerable or entry.answers]
    scored = {entry.id for entry in written if split != TRAIN}
    kept = [problem.done != "refused" and problem.id in scored for problem in bad]
    problems += [problem._replace(done=SCORED) if keep else problem for problem, keep in zip(bad, kept, strict=True)]
    return written, {question.id: question for question in usable}


# --- output


def prepare(options: argparse.Namespace) -> dict[str, Any]:
    """Write the prepared folder, and return the content of its spans.json."""
    paths, excluded = sources(options), dict[Path, None]()
    for word in options.without:
        name, _, folder = word.partition("=")
        if name not in SETS or not folder:
            raise CorpusError(f"--without {word}: give SET=DIR, where SET is {', '.join(SETS)}.")
        codes = [code for code in options.languages.split(",") if code in SETS[name].languages.split()]
        excluded |= dict.fromkeys(find(Path(folder), name, ",".join(codes)).values())
    with prepared.new_folder(options.output, files.CURE) as (folder, problems):
        questions, parts, counts = read(paths, options, problems), dict[str, Any](), dict[str, Any]()
        leave_out(questions, [*excluded], options.bad, problems)
        for split, part in questions.items():
            questions[split] = part[: (options.limit if split == TRAIN else options.limit_eval) or None]
            parts[split] = check(split, questions[split], options, problems)
        prepared.refuse(options.output, problems, files.CURE)
        dictionary, pieces, facts = vocabulary(options.checkpoint, options.tokenizer)
        from fairseq_posenc.data.span_items import Shape  # takes seconds, which --help does not need

        try:
            shape = Shape(options.length, options.stride, options.longest_question, options.separators)
        except ValueError as error:
            raise CorpusError(str(error)) from None
        for split, (written, usable) in parts.items():
            given = len(questions[split])
            if not written:
                raise CorpusError(f"{split}: all {given:,} questions are left out. Give another file.")
            cutter = Cutter(pieces, shape, usable)
            counts[split] = write_split(folder / split, written, cutter, len(dictionary), options.workers, problems)
            counts[split]["given"] = given
            if split != TRAIN:  # the scored questions in SQuAD's format, which the official scoring scripts read
                prepared.write_json(folder / f"{split}.scored.json", squad_format(written, options.version))
        dictionary.write(folder / "dict.txt")
        if dictionary.contents is not None:
            prepared.write_json(folder / "tokenizer.json", dictionary.contents)
        record = {"version": options.version, **asdict(shape), "bad": options.bad, **facts}
        record["files"] = {split or "all": prepared.described(path) for split, path in paths.items()}
        record["without"] = [prepared.described(path) for path in excluded]
        record |= {"splits": counts, "problems": prepared.counted(problems)}
        prepared.write_json(folder / "spans.json", record)
    return record


def vocabulary(source: Path, tokenizer: str | None) -> tuple[Dictionary, Pieces, dict[str, Any]]:
    """Return the dictionary and the tokenizer of a pretrained model, and facts about them for the record.

    Raises:
        CorpusError: The dictionary or the tokenizer is missing, or belongs to another model.
    """
    hint = "" if tokenizer else f" Or give --tokenizer {', '.join(SPLITTERS)}."
    with prepared.readable(source, "--checkpoint"):
        from fairseq_posenc.data.span_pieces import RegexSplitter, TokenizerSplitter
        from fairseq_posenc.hub.ids import reordered, symbols_in_dictionary
        from fairseq_posenc.hub.pretrained import read
        from fairseq_posenc.hub.vocabulary import dictionary as in_folder

        if tokenizer in SPLITTERS:
            if source.is_dir():
                symbols = in_folder(source)[len(SPECIALS) :]
            elif (checkpoint := read(source)).vocabulary is None:
                where = "neither in the folder of the checkpoint nor in its training data"
                raise CorpusError(f"{source}: dict.txt is {where}. Copy dict.txt into the folder of the checkpoint.")
            else:
                symbols = [*symbols_in_dictionary(reordered(checkpoint)), "<mask>"]
            dictionary = Dictionary(symbols, [1] * len(symbols))
            kind, cased = tokenizer, any(symbol != symbol.lower() for symbol in dictionary.ids())
            pieces: Pieces = RegexSplitter(kind, dictionary.ids(), cased=cased)
        else:
            dictionary = prepared.pretrained(source, tokenizer, "--checkpoint", hint)
            contents = dictionary.contents or {}
            kind, cased = contents["model"]["type"], not (contents.get("normalizer") or {}).get("lowercase", False)
            pieces = TokenizerSplitter(contents)
    return dictionary, pieces, {"tokenizer": kind, "cased": cased, "dictionary": len(dictionary)}


class Windows(NamedTuple):
    """Hold the windows of a question.

    Args:
        length: Number of pieces of the question.
        answer: Text that the answer's pieces cover, or None.
        shortest: Number of pieces of the shortest answer inside one window, 0 if there is none, None if no answer
            occurs at its offset. If several windows hold the first piece of an answer, only the window with the most
            context around this piece counts.
    """

    items: list[Item]
    length: int
    answer: str | None
    shortest: int | None


class Cutter:
    """Convert questions to windows.

    Args:
        pieces: Tokenizer with the model's vocabulary.
        shape: Limits of the windows.
        usable: Questions whose answers are known to be right, by id.
    """

    def __init__(self, pieces: Pieces, shape: Shape, usable: dict[str, Question]) -> None:
        self.pieces, self.shape, self.usable = pieces, shape, usable
        self.context = lru_cache(maxsize=64)(pieces.cut)  # the questions of a context are consecutive

    def answered(self, question: Question) -> Question:
        """Return the question with its usable answer, or without an answer."""
        return self.usable.get(question.id, question._replace(answers=()))

    def windows(self, question: Question) -> Windows:
        from fairseq_posenc.data.span_items import items, owner, place

        context, ids = self.context(question.context), [piece.id for piece in self.pieces.cut(question.text)]
        answers = self.answered(question).answers
        places = [place(context, start, start + len(text)) for text, start in answers]
        made = items(ids, context, places[0] if places else None, self.shape)
        covered = [question.context[context[at[0]].start : context[at[1]].end] for at in places if at]
        lengths, parts = list[int](), [item.window for item in made]
        for text, start in dict.fromkeys([*answers, *question.answers]):
            if text.strip() and start >= 0 and question.context.startswith(text, start):
                at = place(context, start, start + len(text))
                part = parts[owner(parts, at[0])] if at else None
                lengths.append(at[1] - at[0] + 1 if at and part and at[1] < part.first + part.length else 0)
        shortest = min(filter(None, lengths), default=0) if lengths else None
        return Windows(made, len(ids), covered[0] if covered else None, shortest)


def write_split(
    prefix: Path, questions: list[Question], cutter: Cutter, size: int, workers: int, problems: list[Problem]
) -> Counter[str]:
    """Write the files of a split, append problems to a list, and return the counts of the split.

    The files are SPLIT.bin and .idx (the windows), .windows.npy (their places), .questions.jsonl and .contexts.jsonl.

    Args:
        prefix: Path of the files without their endings; its name is the name of the split.
        size: Size of the dictionary.
    """
    counts, contexts = Counter(dict.fromkeys(COUNTED, 0)), dict[str, int]()
    rows, entries, texts = list[tuple[int, ...]](), list[dict[str, Any]](), list[dict[str, Any]]()
    with shard(prefix, dtype_for(size)) as tokens:
        made = prepared.spread(cutter.windows, questions, workers)
        for number, (question, windows) in enumerate(zip(questions, made, strict=True)):
            if question.context not in contexts:
                contexts[question.context] = len(contexts)
                offsets = [(piece.start, piece.end) for piece in cutter.context(question.context)]
                texts.append({"text": question.context, "offsets": offsets})
            for item in windows.items:
                tokens.put(item.tokens)
                rows.append((number, *item.window, item.column, item.start, item.end))
            entry = {"id": question.id, "question": question.text, "context": contexts[question.context]}
            texts_of_answers = [answer.text for answer in question.answers]
            entries.append({**entry, "answers": texts_of_answers, "pieces": windows.shortest})
            length = windows.length + len(texts[contexts[question.context]]["offsets"])
            answers = cutter.answered(question).answers
            counts["questions"] += 1
            counts["without answer"] += not question.answers
            counts["windows"] += len(windows.items)
            counts["in several windows"] += len(windows.items) > 1
            counts["pieces"] += sum(len(item.tokens) for item in windows.items)
            counts["pieces without windows"] += length
            counts["sequences over 512 pieces"] += length > BERT_LENGTH
            counts["unknown pieces"] += sum(item.tokens.count(UNKNOWN) for item in windows.items)
            counts["answers given back"] += bool(answers) and windows.answer == answers[0].text
            for kind, what, done in remarks(prefix.name, windows, answers, cutter.shape):
                problems.append(Problem(prefix.name, question.where, question.id, kind, what, done))
    np.save(f"{prefix}.windows.npy", np.array(rows, np.int32).reshape(-1, len(FIELDS)))
    for name, lines in (("questions", entries), ("contexts", texts)):
        Path(f"{prefix}.{name}.jsonl").write_text(prepared.json_lines(lines), encoding="utf-8")
    return counts


def remarks(
    split: str, windows: Windows, answers: Sequence[files.Answer], shape: Shape
) -> Iterator[tuple[str, str, str]]:
    """Yield what a user should know about the windows of a question: the kind, what it is, and what was done."""
    if windows.length > shape.longest_question:
        yield CUT, f"the question has {windows.length} pieces and is cut to {shape.longest_question}", "cut"
    if len(windows.items) > 1:
        yield LONG, f"the context is split into {len(windows.items)} windows", "read in parts"
    if split == TRAIN and answers and not any(item.start for item in windows.items):
        reason = f"no window contains the answer {answers[0].text!r}, or the answer has no pieces"
        yield NO_WINDOW, reason, "learned as no answer"
    if split != TRAIN and windows.shortest == 0:
        yield NO_WINDOW, "no window contains an answer, or the answers have no pieces", "scored, never found"


def squad_format(questions: list[Question], version: str) -> dict[str, Any]:
    """Return questions in SQuAD's format, from which SQuAD's own scripts read the reference answers."""
    data = []
    for _, article in groupby(questions, key=lambda question: question.article):
        parts = [(context, [*part]) for context, part in groupby(article, key=lambda question: question.context)]
        data.append({"paragraphs": [{"context": context, "qas": [*map(_entry, part)]} for context, part in parts]})
    return {"version": version, "data": data}


def _entry(question: Question) -> dict[str, Any]:
    answers = [{"text": answer.text, "answer_start": answer.start} for answer in question.answers]
    return {"id": question.id, "question": question.text, "answers": answers, "is_impossible": question.impossible}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
