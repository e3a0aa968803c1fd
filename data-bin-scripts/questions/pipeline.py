"""Convert files of questions to the folder that `--task posenc_question_generation` reads."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from corpora.binary import dtype_for, shard
from corpora.errors import CorpusError
from corpora.processes import mapped

from . import output, problems, splits, vocabulary
from .checks import checked
from .items import Cut, Cutter, Ids, Item, Shape, described, grouped, numbered
from .problems import Problem
from .reading import Question, is_json
from .sentences import BY_CHARACTERS, language_of

AUTO = "auto"
CHUNK = 256  # questions per chunk
CURE = (
    "--bad skip leaves out bad questions. --bad repair also searches the context for misplaced answers, and cuts long "
    "answers and questions."
)
Questions = dict[str, list[Question]]


@dataclass(frozen=True)
class Settings:
    """Hold the options of prepare_questions.py; see its --help.

    Args:
        shape: Limits and language of the items; for the language `AUTO`, the program detects the language.
        tokenizer: `words` or `chars`; None lets `tokenizer_path` or the language decide.
    """

    shape: Shape
    tokenizer: str | None
    tokenizer_path: Path | None
    cased: bool
    vocabulary: int
    seed: int
    limit: int
    limit_valid: int
    workers: int


def prepare(files: splits.Files, where: Path, settings: Settings) -> dict[str, Any]:
    """Write the prepared folder, completely or not at all.

    Returns:
        The content of questions.json.
    Raises:
        CorpusError: A file cannot be read or has the wrong format.
        RefusedError: Questions have problems and --bad is refuse; OUTPUT.problems.jsonl lists them.
    """
    with output.new_folder(where) as folder:
        questions = splits.questions(files, settings.seed, settings.limit, settings.limit_valid)
        answers = all(is_json(path) for path in files.values())
        language = settings.shape.language
        language = language_of([question.text for question in questions["train"]]) if language == AUTO else language
        run = Run(folder, files, answers, replace(settings, shape=replace(settings.shape, language=language)), [])
        record = run.all(questions)
        run.problems.sort(key=lambda problem: splits.SPLITS.index(problem.split))
        problems.refuse(where, run.problems, CURE, problems.UNUSABLE)
        problems.tell(folder, run.problems)
    return record


@dataclass
class Run:
    """Hold the settings, the problems and the counts while a folder is prepared.

    Args:
        answers: Whether the files have answers.
        problems: Problems of all splits so far.
    """

    folder: Path
    files: splits.Files
    answers: bool
    settings: Settings
    problems: list[Problem]

    def all(self, questions: Questions) -> dict[str, Any]:
        """Write everything except problems.jsonl, and return the content of questions.json."""
        how = self.settings.shape.bad
        usable: Questions = {}
        for split, split_questions in questions.items():
            usable[split], split_problems = checked(split, split_questions, how, answers=self.answers)
            self.problems += split_problems
        cutter, dictionary = self._pieces(usable)
        counts = {split: self._write(split, part, cutter, dictionary) for split, part in usable.items()}
        for split, facts in counts.items():
            facts["given"] = len(questions[split])
            if not facts["items"]:
                reasons = "; ".join(problems.summary(self.problems)) or "the files are empty"
                raise CorpusError(f"{split}: all {facts['given']:,} questions are left out ({reasons}).")
        record = self._record(cutter, dictionary, counts, questions)
        dictionary.write(self.folder, "dict.src.txt", "dict.tgt.txt")
        output.write_json(self.folder / "questions.json", record)
        return record

    # --- pieces

    @property
    def units(self) -> str:
        """Return the units into which a metric splits questions before it compares them.

        The lines of Du et al. are already tokenised, with spaces between the words; another tokenizer could split some
        words again.
        """
        if self.settings.shape.language in BY_CHARACTERS:
            return "characters"
        return "words" if self.answers else "spaces"

    def _pieces(self, usable: Questions) -> tuple[Cutter, vocabulary.Dictionary]:
        with quiet():
            from fairseq_posenc.data import question_pieces  # takes seconds, which --help does not need

        settings, shape = self.settings, self.settings.shape
        if settings.tokenizer_path is not None:
            dictionary = vocabulary.pretrained(settings.tokenizer_path)
            pieces = question_pieces.Pretrained(dictionary.contents or {}, tokenised=self.units == "spaces")
            return Cutter(pieces, shape), dictionary
        kind = settings.tokenizer or ("chars" if shape.language in BY_CHARACTERS else "words")
        kind = "spaces" if kind == "words" and not self.answers else kind
        cutter = Cutter(question_pieces.Words(kind, cased=settings.cased), shape)
        counts = Counter[str]()
        for cut, _ in self._cut("train", usable["train"], cutter):
            if cut:
                counts.update([*(cut.answer or ()), *cut.context, *cut.question])
        return cutter, vocabulary.learned(counts, settings.vocabulary)

    # --- items

    def _write(
        self, split: str, questions: list[Question], cutter: Cutter, dictionary: vocabulary.Dictionary
    ) -> dict[str, Any]:
        """Write a split (its src-tgt, segments and surface.jsonl files), and return its counts."""
        known, size, tally = dictionary.ids(), len(dictionary), Counter[str]()
        ids, small = dtype_for(size + self.settings.shape.longest), np.dtype(np.uint16)
        items = list[Item]()
        with ExitStack() as stack:
            types = {"src-tgt.src": ids, "src-tgt.tgt": ids} | ({"segments": small} if self.answers else {})
            shards = [
                stack.enter_context(shard(self.folder / f"{split}.{name}", dtype)) for name, dtype in types.items()
            ]
            for question, (cut, its_problems) in zip(questions, self._cut(split, questions, cutter), strict=True):
                self.problems += its_problems
                if cut is None:
                    continue
                item = numbered(cut, known, size)
                for writer, part in zip(shards, (item.source, item.target, item.segments), strict=False):
                    writer.put(part)
                items.append(described(question, cut, item))
                tally.update(_tally(cut, item, size))
        lines = grouped(items)
        (self.folder / f"{split}.surface.jsonl").write_text(output.json_lines(lines), encoding="utf-8")
        return {name: tally[name] for name in TALLIED} | {"sources": len({line["source"] for line in lines})}

    def _cut(self, split: str, questions: list[Question], cutter: Cutter) -> Iterator[tuple[Cut | None, list[Problem]]]:
        """Yield the pieces and the problems of each question; several processes work on the questions in chunks."""
        chunks = (questions[begin : begin + CHUNK] for begin in range(0, len(questions), CHUNK))
        for results in mapped(partial(_cut_all, cutter, split), chunks, self.settings.workers):
            yield from results

    # --- the record

    def _record(
        self, cutter: Cutter, dictionary: vocabulary.Dictionary, counts: dict[str, dict[str, Any]], questions: Questions
    ) -> dict[str, Any]:
        settings, pieces = self.settings, cutter.surface
        record: dict[str, Any] = {"pieces": pieces.kind, "cased": pieces.cased, "units": self.units}
        record |= {"answers": self.answers, "dictionary": len(dictionary)}
        record |= {**asdict(settings.shape), "seed": settings.seed}
        record["files"] = {split or "all": output.described(path) for split, path in self.files.items()}
        record |= {"splits": counts, "problems": problems.counted(self.problems)}
        record["round_trip"] = round(_round_trip(pieces, questions["train"]), 4)
        if "" in self.files:
            titles = {split: [*dict.fromkeys(entry.title for entry in part)] for split, part in questions.items()}
            record["articles"] = {split: titles[split] for split in titles if split != "train"}
        return record


def _cut_all(cutter: Cutter, split: str, questions: list[Question]) -> list[tuple[Cut | None, list[Problem]]]:
    return [cutter.cut(split, question) for question in questions]


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the log messages of fairseq's import."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(before)


TALLIED = ("items", "windowed", "source pieces", "source unknown", "target pieces", "target copied", "target unknown")


def _tally(cut: Cut, ids: Ids, size: int) -> dict[str, int]:
    """Count the pieces of an item.

    `source unknown` counts pieces of the source that the dictionary lacks. `target copied` counts pieces of the
    question that the dictionary lacks and the source contains.
    """
    return {
        "items": 1,
        "windowed": int(cut.windowed),
        "source pieces": len(ids.source),
        "source unknown": sum(number >= size for number in ids.source),
        "target pieces": len(ids.target),
        "target copied": sum(number >= size for number in ids.target),
        "target unknown": ids.target.count(3),
    }


def _round_trip(pieces: Any, questions: list[Question]) -> float:
    """Return the fraction of questions that tokenising and detokenising restores.

    Lowercasing and repeated spaces do not count as differences.
    """
    same = 0
    for question in questions:
        text = " ".join(question.text.split())
        same += pieces.join([piece.name for piece in pieces.cut(text)]) == (text if pieces.cased else text.lower())
    return same / len(questions)
