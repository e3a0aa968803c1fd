#!/usr/bin/env python3
"""Prepare questions about texts (SQuAD, CMRC 2018, Du et al. 2017) for question generation with copying.

The output is for --task posenc_question_generation. The source of an item is the answer and its context, and the target
is the question. Source words that the dictionary lacks get ids of their own, so that a model can copy them. The input
is JSON in the format of SQuAD (1.1, 2.0, CMRC 2018), or sentences in src-*.txt with questions in tgt-*.txt (Du et al.
2017), plain or .gz, which have no answers; --context and --longest-answer are then not used. docs/data.md describes the
output.

The source is `<s> answer </s> context </s>` with the segment ids 0 and 1, like [CLS] answer [SEP] context [SEP] in code
of the first author of Qu et al. (2021) for another task. The paper states neither this order nor the maximum lengths,
which are our choice. Data without answers have the source `<s> sentence </s>`. The target is `question </s>`.

  prepare_questions.py --corpus my-questions.json --output data-bin/mine --bad repair
  prepare_questions.py --corpus nqg/ --output data-bin/nqg
  prepare_questions.py --train train-v1.1.json --valid dev-v1.1.json --output data-bin/squad \\
      --tokenizer bert-base-cased --bad repair --workers 8
  prepare_questions.py --train cmrc2018_train.json --valid cmrc2018_dev.json --output data-bin/cmrc --tokenizer chars
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import command
import numpy as np
import prepared
import question_files as files
from command import at_least
from corpora.binary import dtype_for, shard
from corpora.pieces import END, SPECIALS, UNKNOWN
from prepared import Dictionary, Problem
from question_files import Question
from shared import CorpusError

if TYPE_CHECKING:
    from fairseq_posenc.data.question_pieces import Piece, Surface

FLAGS = "--train and --valid"
BEGIN = 0  # <s>
BY_CHARACTERS = ("zh", "ja")  # languages without spaces between words; text is compared and tokenised by characters
TALLIED = ("items", "windowed", "source pieces", "source unknown", "target pieces", "target copied", "target unknown")


def main(arguments: list[str]) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)
    named = {split: path for split in files.WORDS if (path := getattr(options, split))}
    if bool(options.corpus) == bool(named) or (named and not {"train", "valid"} <= named.keys()):
        parser.error("Give either --corpus, or --train and --valid (and perhaps --test).")
    if options.tokenizer not in (None, "words", "chars") and (options.vocabulary or options.cased):
        parser.error("--vocabulary and --cased need --tokenizer words or chars. Leave these options out.")
    return prepared.run(lambda: prepare(named, options), options.output)


def build_parser() -> argparse.ArgumentParser:
    parser = command.parser("prepare_questions.py", __doc__ or "", "")
    add = parser.add_argument
    text = "Folder with {train,valid,test}.json, or with src-*.txt and tgt-*.txt (the test set is optional). "
    text += "A single JSON file is split by article into train, valid and test (8:1:1)."
    add("--corpus", type=Path, metavar="DIR|FILE", help=text)
    for split in files.WORDS:
        text = f"File of the {split} split, instead of --corpus: a JSON file, or src-NAME.txt (next to tgt-NAME.txt)."
        add(f"--{split}", type=Path, metavar="FILE", help=text)
    text = "Text with the answer that the model sees: the paragraph, or the answer's sentence (default: paragraph)."
    add("--context", choices=("paragraph", "sentence"), default="paragraph", help=text)
    text = "Maximum number of questions in each of the validation and test sets (default: 0, which means all)."
    add("--limit-valid", type=at_least(0), default=0, metavar="N", help=text)
    add("--seed", type=int, default=1, metavar="N", help="Random seed for splitting a single file (default: 1).")
    text = "Split text into words, into characters (words in Latin letters stay whole), or into the pieces of the "
    text += "pretrained encoder in a Hugging Face folder (default: chars for Chinese, otherwise words)."
    add("--tokenizer", metavar="words|chars|DIR", help=text)
    text = "Maximum size of the dictionary of words or characters (default: 20000)."
    add("--vocabulary", type=at_least(1), metavar="N", help=text)
    add("--cased", action="store_true", help="Do not lowercase the text (for --tokenizer words or chars).")
    text = "Language of the text; with auto, the letters decide between English (en) and Chinese (zh) (default: auto)."
    add("--language", default="auto", metavar="CODE", help=text)
    text = "Maximum number of pieces in a source; longer contexts are cut around the answer (default: 512)."
    add("--length", type=at_least(3), default=512, metavar="N", help=text)
    text = "Maximum number of pieces in an answer; --bad says what to do with longer answers (default: 100)."
    add("--longest-answer", type=at_least(1), default=100, metavar="N", help=text)
    text = "Maximum number of pieces in a question; --bad says what to do with longer questions (default: 50)."
    add("--longest-question", type=at_least(1), default=50, metavar="N", help=text)
    prepared.add_common(parser, files.HOW)
    return parser


def prepare(paths: dict[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    """Write the prepared folder, and return the content of its questions.json.

    Args:
        paths: Files of --train, --valid and --test, or nothing with --corpus.
    """
    if not paths:
        paths = files.find(options.corpus, FLAGS) if options.corpus.is_dir() else {"": options.corpus}
    answers = all(map(files.is_json, paths.values()))
    if answers and options.length < options.longest_answer + 4:
        problem = f"--length {options.length} leaves no room for a context after an answer"
        raise CorpusError(f"{problem} of {options.longest_answer} pieces. Give at least {options.longest_answer + 4}.")
    with prepared.new_folder(options.output, files.CURE) as (folder, problems):
        questions = read(paths, options, problems)
        check = partial(files.checked, how=options.bad, problems=problems, answers=answers)
        usable = {split: check(split, part) for split, part in questions.items()}
        language = options.language
        language = language_of([question.text for question in questions["train"]]) if language == "auto" else language
        units = "characters" if language in BY_CHARACTERS else "words" if answers else "spaces"
        surface, dictionary = tokenizer_of(options, units)
        cutter = Cutter(surface, options, language)

        def cuts(split: str) -> Iterator[tuple[Cut | None, list[Problem]]]:
            return prepared.spread(partial(cutter.cut, split), usable[split], options.workers)

        if dictionary is None:
            pieces = Counter[str]()
            for cut, _ in cuts("train"):
                pieces.update([*(cut.answer or ()), *cut.context, *cut.question] if cut else [])
            dictionary = learned(pieces, options.vocabulary or 20_000)
        counts = {}
        for split, part in usable.items():
            items = zip(part, cuts(split), strict=True)
            counts[split] = write_split(folder, split, items, dictionary, options.length, answers, problems)
            counts[split]["given"] = len(questions[split])
            if not counts[split]["items"]:
                reasons = "; ".join(prepared.summary(problems)) or "the files are empty"
                raise CorpusError(f"{split}: all {len(questions[split]):,} questions are left out ({reasons}).")
        problems.sort(key=lambda problem: [*files.WORDS].index(problem.split))
        dictionary.write(folder / "dict.src.txt", folder / "dict.tgt.txt")
        if dictionary.contents is not None:
            prepared.write_json(folder / "tokenizer.json", dictionary.contents)
        record = {"pieces": surface.kind, "cased": surface.cased, "units": units, "answers": answers}
        record |= {"dictionary": len(dictionary), "longest": options.length, "longest_answer": options.longest_answer}
        record |= {"longest_question": options.longest_question, "context": options.context, "language": language}
        record |= {"bad": options.bad, "seed": options.seed}
        record["files"] = {split or "all": prepared.described(path) for split, path in paths.items()}
        record |= {"splits": counts, "problems": prepared.counted(problems)}
        record["round_trip"] = round(round_trip(surface, questions["train"]), 4)
        prepared.write_json(folder / "questions.json", record)
    return record


def read(paths: dict[str, Path], options: argparse.Namespace, problems: list[Problem]) -> dict[str, list[Question]]:
    """Return the questions by split, and append malformed questions to a list of problems.

    Raises:
        CorpusError: A file cannot be read, the files have two formats, or a single file has fewer than three articles.
    """
    if len({*map(files.is_json, paths.values())}) > 1:
        raise CorpusError(f"{', '.join(map(str, paths.values()))}: give all splits as JSON, or all as src-*.txt.")
    questions = dict[str, list[Question]]()
    for split, path in paths.items():
        malformed = list[Question]()
        part = files.read(path, malformed)
        what = [(entry, "malformed question", entry.text) for entry in malformed]
        problems += [files.new_problem(split or "train", *facts, options.bad) for facts in what]
        questions |= {split: part} if split else files.divided(part, path, options.seed, FLAGS)
    limits = {"train": options.limit}
    return {split: part[: limits.get(split, options.limit_valid) or None] for split, part in questions.items()}


# --- pieces


def tokenizer_of(options: argparse.Namespace, units: str) -> tuple[Surface, Dictionary | None]:
    """Return the tokenizer, and the dictionary of a pretrained encoder, or None if it has to be learned.

    Args:
        units: Units into which a metric splits questions. The lines of Du et al. are already tokenised, with spaces
            between the words; another tokenizer could split some words again.
    """
    from fairseq_posenc.data import question_pieces  # takes seconds, which --help does not need

    if options.tokenizer in (None, "words", "chars"):
        kind = options.tokenizer or ("chars" if units == "characters" else "words")
        kind = "spaces" if kind == "words" and units == "spaces" else kind
        return question_pieces.Words(kind, cased=options.cased), None
    dictionary = prepared.pretrained(Path(options.tokenizer), None, "--tokenizer")
    return question_pieces.Pretrained(dictionary.contents or {}, tokenised=units == "spaces"), dictionary


def learned(counts: Counter[str], size: int) -> Dictionary:
    """Return a dictionary of the most frequent pieces; equally frequent pieces are sorted alphabetically."""
    ranked = sorted((-count, name) for name, count in counts.items() if name not in prepared.TAKEN)
    ranked = ranked[: size - len(SPECIALS)]
    if not ranked:
        raise CorpusError("the dictionary cannot be learned, because all training questions are left out.")
    return Dictionary([name for _, name in ranked], [-count for count, _ in ranked])


def language_of(texts: list[str]) -> str:
    """Return `zh` if more than a quarter of the letters are Chinese, otherwise `en`."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    return "zh" if 4 * sum("\u4e00" <= letter <= "\u9fff" for letter in letters) > len(letters) else "en"


def around(context: str, start: int, end: int, language: str) -> tuple[int, int]:
    """Return the start and end offsets of the sentences that contain the characters from `start` to `end`."""
    bounds = _bounds(context, language)
    first = max(begin for begin, _ in bounds if begin <= start)
    last = next((stop for _, stop in bounds if stop >= end), len(context))
    text = context[first:last]
    return first + len(text) - len(text.lstrip()), first + len(text.rstrip())


@lru_cache(maxsize=64)  # the questions of a context are consecutive
def _bounds(context: str, language: str) -> list[tuple[int, int]]:
    from sentencex import segment

    sentences = list(segment(language, context))
    if "".join(sentences) != context:  # the splitter changed the text, so treat it as a single sentence
        return [(0, len(context))]
    ends = [*accumulate(map(len, sentences))]
    return [*zip([0, *ends[:-1]], ends, strict=True)]


def round_trip(surface: Surface, questions: list[Question]) -> float:
    """Return the fraction of questions that tokenising and detokenising restores.

    Lowercasing and repeated spaces do not count as differences.
    """
    texts = [" ".join(question.text.split()) for question in questions]
    joined = [surface.join([piece.name for piece in surface.cut(text)]) for text in texts]
    same = [new == (old if surface.cased else old.lower()) for new, old in zip(joined, texts, strict=True)]
    return sum(same) / len(same)


# --- items


class Cut(NamedTuple):
    """Hold the pieces of an answer (None if the file has no answers), a context and a question.

    Args:
        windowed: Whether the context was too long, so that only a part of it is kept.
        sentence: Text of the answer's sentence, or of the whole source if there is no answer.
    """

    answer: list[str] | None
    context: list[str]
    question: list[str]
    windowed: bool
    sentence: str


class Cutter:
    """Split questions into pieces; the options hold the limits and --context."""

    def __init__(self, surface: Surface, options: argparse.Namespace, language: str) -> None:
        self.surface, self.options, self.language = surface, options, language
        self._context = lru_cache(maxsize=64)(surface.cut)  # the questions of a context are consecutive

    def cut(self, split: str, question: Question) -> tuple[Cut | None, list[Problem]]:
        """Return the pieces of a checked question (None if it is left out) and its problems."""
        options, context = self.options, self._context(question.context)
        parts = {"question": [piece.name for piece in self.surface.cut(question.text)]}
        start, end, first, last, sentence = 0, 0, 0, len(question.context), question.context
        if question.answers:
            text, start = question.answers[0]
            end, parts["answer"] = start + len(text), [piece.name for piece in self.surface.cut(text)]
            bounds = around(question.context, start, end, self.language)
            sentence = question.context[slice(*bounds)]
            first, last = bounds if options.context == "sentence" else (first, last)
        problems = list[Problem]()
        limits = {"answer": options.longest_answer, "question": options.longest_question}
        for name, pieces in (("question", parts["question"]), ("context", context), *parts.items()):
            # an answer, context or question of zero-width characters has no pieces
            if not pieces and not problems:
                what = f"the {name} has no pieces"
                problems.append(files.new_problem(split, question, f"empty {name}", what, options.bad))
        if problems:
            return None, problems
        for name in ("answer", "question"):
            if len(parts.get(name, ())) > limits[name]:
                what = f"{len(parts[name])} pieces exceed the limit of {limits[name]}"
                problems.append(files.new_problem(split, question, f"long {name}", what, options.bad))
                parts[name] = parts[name][: limits[name]]
        if any(problem.done != "repaired" for problem in problems):
            return None, problems
        answer = parts.get("answer")
        context = [piece for piece in context if piece.end > first and piece.start < last]
        room = options.length - 2 - (0 if answer is None else len(answer) + 1)
        names = [piece.name for piece in context[window(context, room, start, end)]]
        return Cut(answer, names, parts["question"], len(names) < len(context), sentence), problems


def window(context: Sequence[Piece], room: int, start: int, end: int) -> slice:
    """Return the part of the context that fits, with the answer in its middle. A long answer is cut at its end."""
    inside = [number for number, piece in enumerate(context) if piece.end > start and piece.start < end]
    first, last = (inside[0], inside[-1]) if inside else (0, 0)
    begin = min(first, (first + last + 1 - room) // 2) if last - first < room else first
    begin = max(0, min(begin, len(context) - room))
    return slice(begin, begin + room)


Items = Iterable[tuple[Question, tuple[Cut | None, list[Problem]]]]


class Ids(NamedTuple):
    """Hold the ids of an item; `unknown` are the words of the source that the dictionary lacks, in their order."""

    source: list[int]
    segments: list[int]
    target: list[int]
    unknown: list[str]


def numbered(cut: Cut, known: Mapping[str, int], size: int) -> Ids:
    """Return the ids of an item.

    Words of the source that the dictionary lacks get ids from `size` on, and the same ids in the target, so that they
    can be copied. Other unknown words of the target become <unk>.
    """
    unknown: dict[str, int] = {}

    def ids(names: Sequence[str]) -> list[int]:
        return [known[name] if name in known else unknown.setdefault(name, size + len(unknown)) for name in names]

    first = [BEGIN, *([*ids(cut.answer), END] if cut.answer is not None else [])]
    second = [*ids(cut.context), END]
    target = [known.get(name, unknown.get(name, UNKNOWN)) for name in cut.question]
    return Ids([*first, *second], [0] * len(first) + [1] * len(second), [*target, END], [*unknown])


def write_split(
    folder: Path, split: str, items: Items, dictionary: Dictionary, longest: int, answers: bool, problems: list[Problem]
) -> dict[str, Any]:
    """Write a split (its src-tgt, segments and surface.jsonl files), append its problems to a list, and count.

    `source unknown` counts pieces of the source that the dictionary lacks. `target copied` counts pieces of the
    question that the dictionary lacks and the source contains.
    """
    known, size, tally = dictionary.ids(), len(dictionary), Counter[str]()
    hashes, lines, references = list[bytes](), list[dict[str, Any]](), dict[bytes, list[str]]()
    types = {"src-tgt.src": dtype_for(size + longest), "src-tgt.tgt": dtype_for(size + longest)}
    types |= {"segments": np.dtype(np.uint16)} if answers else {}
    with ExitStack() as stack:
        writers = [stack.enter_context(shard(folder / f"{split}.{name}", kind)) for name, kind in types.items()]
        for question, (cut, its_problems) in items:
            problems += its_problems
            if cut is None:
                continue
            ids = numbered(cut, known, size)
            for writer, part in zip(writers, (ids.source, ids.target, ids.segments), strict=False):
                writer.put(part)
            # The hash covers only the pieces, because the model does not read the answer's offset or what was cut.
            hashes.append(hashlib.sha256(repr((ids.source, ids.unknown)).encode()).digest())
            references.setdefault(hashes[-1], []).append(question.text)
            answer = {"answer": question.answers[0].text} if question.answers else {}
            facts = {"id": question.id, "question": question.text, **answer}
            lines.append({**facts, "sentence": cut.sentence, "unknown": ids.unknown})
            new = [sum(number >= size for number in part) for part in (ids.source, ids.target)]
            tally.update({"items": 1, "windowed": int(cut.windowed), "source pieces": len(ids.source)})
            tally.update({"source unknown": new[0], "target pieces": len(ids.target), "target copied": new[1]})
            tally.update({"target unknown": ids.target.count(UNKNOWN)})
    place = {source: number for number, source in enumerate(references)}
    rows = [
        # questions with the same source are references of each other
        {"id": facts["id"], "source": place[source], "references": [*dict.fromkeys(references[source])], **facts}
        for source, facts in zip(hashes, lines, strict=True)
    ]
    (folder / f"{split}.surface.jsonl").write_text(prepared.json_lines(rows), encoding="utf-8")
    return {**{name: tally[name] for name in TALLIED}, "sources": len(place)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
