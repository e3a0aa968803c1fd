"""Convert files of questions to the folder that `--task posenc_squad` reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from corpora.errors import CorpusError
from corpora.pieces import UNKNOWN
from questions import problems, reading, splits
from questions.checks import checked
from questions.output import described, new_folder, write_json
from questions.pipeline import quiet
from questions.problems import Problem, made
from questions.reading import Answer, Question

from .output import Cutter, SplitWriter, split_files, squad_format
from .vocabulary import Vocabulary, of_model

FLAGS = "--train and --eval"  # options with which a user names files
TRAIN, RECORD = "train", "spans.json"
#: handling of questions with problems in splits that are only evaluated
SCORED = "scored as it is"
SCORED_FILE = "scored.json"  # after the split's name
CURE = (
    "--bad skip leaves them out of training, --bad repair also looks for answers elsewhere in the context; what is to "
    "be answered is scored as it is"
)
#: kinds of problems; an answer in no window is not learned, and no prediction can equal it
NO_WINDOW, CUT, LONG = "answer in no window", "cut question", "long context"
#: a question of --without, which is scored in another set
ELSEWHERE = "question scored elsewhere"
#: a training question whose id another split also has; its score would be that of a learned question
BOTH = "question that is answered too"


#: counts of each split in the record
COUNTED = (
    *("given", "questions", "windows", "in several windows", "without answer", "pieces", "unknown pieces"),
    "answers given back",
)


@dataclass(frozen=True)
class Settings:
    """Hold the options of prepare_spans.py; see its --help.

    Args:
        begins: For splits that share a file, the prefix of the ids of each split.
    """

    version: str
    longest: int
    stride: int
    longest_question: int
    separators: int
    bad: str
    limit: int
    limit_eval: int
    seed: int
    begins: Mapping[str, str] = field(default_factory=dict)

    def most(self, split: str) -> int:
        """Return the maximum number of questions of a split; 0: all."""
        return self.limit if split == TRAIN else self.limit_eval


def prepare(
    files: dict[str, Path], model: Path, tokenizer: str, where: Path, settings: Settings, apart: Sequence[Path] = ()
) -> dict[str, Any]:
    """Write the prepared folder, completely or not at all.

    Args:
        apart: Files whose questions are left out, by their ids.
    Returns:
        The record, which is also written to `RECORD`.
    Raises:
        CorpusError: A file cannot be read or does not fit.
        RefusedError: Questions are wrong and refused; OUTPUT.problems.jsonl lists them.
    """
    with new_folder(where) as folder:
        found, wrong = _read(files, settings)
        wrong += [*_leave_out(found, apart), *_part(found, settings.bad)]
        found = {split: some[: settings.most(split) or None] for split, some in found.items()}
        with quiet():
            run = Run(folder, files, settings, of_model(model, tokenizer), wrong)
            record = run.all(found, apart)
        refused = [one for one in run.problems if one.done == "refused"]  # others do not prevent the output
        problems.refuse(where, refused, CURE, problems.UNUSABLE)
        problems.tell(folder, run.problems)
    return record


def _read(files: dict[str, Path], settings: Settings) -> tuple[dict[str, list[Question]], list[Problem]]:
    """Return the questions of each file, each id once, and the problems of malformed or repeated entries."""
    found, wrong, answered = dict[str, list[Question]](), list[Problem](), True
    for split, path in files.items():
        if path.exists() and not reading.is_json(path):  # line files have no offsets of answers
            raise CorpusError(f"{path}: NAME.json in SQuAD's format is wanted, plain or .gz")
        malformed: reading.Malformed = []
        begin = settings.begins.get(split, "")
        read = [one for one in reading.read(path, malformed) if one.id.startswith(begin)]
        # an entry without an id is reported for all splits that share the file
        told = [(name, "malformed question", what) for name, what in malformed if name.startswith((begin, "article "))]
        without = [one.id for one in read if one.impossible]
        if without and settings.version == "1.1":
            some = ", ".join(without[:5])
            raise CorpusError(
                f"{path}: {len(without)} questions have no answer ({some}), as SQuAD 2.0's: --version 2.0"
            )
        answered &= not any(one.impossible or not one.answers for one in read)
        first = dict[str, Question]()
        for one in read:
            first.setdefault(one.id, one)
        if split:
            found[split] = [*first.values()]
        else:  # by article; evaluation gets what question generation uses for validation and test
            drawn = splits.parts([*first.values()], path, settings.seed, FLAGS)
            found |= {TRAIN: drawn[TRAIN], "valid": [*drawn["valid"], *drawn["test"]]}
        twice = [name for name, number in Counter(one.id for one in read).items() if number > 1]
        told += [(name, "duplicate id", "the first of them is kept") for name in twice]
        wrong += [made(split or TRAIN, path.name, *one, settings.bad) for one in told]
    if answered and settings.version == "2.0":
        named = ", ".join(map(str, files.values()))
        raise CorpusError(f"{named}: every question has an answer, as SQuAD 1.1's: --version 1.1")
    return found, wrong


def _leave_out(found: dict[str, list[Question]], apart: Sequence[Path]) -> list[Problem]:
    """Remove the questions of these files from all splits, by their ids.

    Raises:
        CorpusError: A split would have no question left.
    """
    ids = {one.id for path in apart for one in reading.read(path, [])}
    told = list[Problem]()
    for split, some in found.items():
        gone = [one for one in some if one.id in ids]
        if gone and len(gone) == len(some):
            raise CorpusError(f"{split}: all {len(some):,} questions are those of --without: others are wanted")
        told += [Problem(split, one.where, one.id, ELSEWHERE, "of --without, by its id", "left out") for one in gone]
        found[split] = [one for one in some if one.id not in ids]
    return told


def _part(found: dict[str, list[Question]], bad: str) -> list[Problem]:
    """Remove the questions of the other splits from the training split, by their ids.

    Raises:
        CorpusError: The training split would have no question left.
    """
    train = found.get(TRAIN, [])
    others = {one.id: split for split, some in found.items() if split != TRAIN for one in some}
    shared = [one for one in train if one.id in others]
    if shared and len(shared) == len(train):
        named = ", ".join(dict.fromkeys(others[one.id] for one in shared))
        raise CorpusError(f"{TRAIN}: {named} has all its {len(train):,} questions too, by their ids: others are wanted")
    found |= {TRAIN: [one for one in train if one.id not in others]} if shared else {}
    return [made(TRAIN, one.where, one.id, BOTH, f"{others[one.id]} has its id too", bad) for one in shared]


@dataclass
class Run:
    """Hold the state of one preparation."""

    folder: Path
    files: dict[str, Path]
    settings: Settings
    vocabulary: Vocabulary
    problems: list[Problem]
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def all(self, found: dict[str, list[Question]], apart: Sequence[Path]) -> dict[str, Any]:
        """Write everything except problems.jsonl, and return the content of `RECORD`."""
        from fairseq_posenc.data.span_items import Shape  # takes seconds, which --help does not need

        settings, vocabulary = self.settings, self.vocabulary
        try:
            shape = Shape(settings.longest, settings.stride, settings.longest_question, settings.separators)
        except ValueError as error:
            raise CorpusError(f"--longest, --stride, --longest-question: {error}") from None
        for split, given in found.items():
            self._split(split, given, Cutter(vocabulary.pieces, shape))
        vocabulary.dictionary.write(self.folder, "dict.txt")
        record: dict[str, Any] = {"version": settings.version, **asdict(shape), "bad": settings.bad}
        record |= {"tokenizer": vocabulary.kind, "cased": vocabulary.cased, "dictionary": len(vocabulary.dictionary)}
        record["files"] = {split or "all": described(path) for split, path in self.files.items()}
        record["without"] = [described(path) for path in apart]
        record["splits"] = {split: dict(counts) for split, counts in self.counts.items()}
        record["problems"] = problems.counted(self.problems)
        write_json(self.folder / RECORD, record)
        return record

    def _split(self, split: str, given: list[Question], cutter: Cutter) -> None:
        how, trains = self.settings.bad, split == TRAIN
        kept, wrong = checked(split, given, how, answers=True, unanswerable=self.settings.version == "2.0")
        # What training leaves out is scored here with all its answers, except questions without an answer in SQuAD 1.1.
        never = {one.id for one in given if not one.answers} if self.settings.version == "1.1" else set()
        if not trains:
            wrong = [one if one.done == "refused" or one.id in never else one._replace(done=SCORED) for one in wrong]
        self.problems += wrong
        answered = {one.id: one for one in kept}
        counts = self.counts[split] = Counter(dict.fromkeys(COUNTED, 0) | {"given": len(given)})
        asked = kept if trains else [one for one in given if one.id not in never]
        if not asked:
            raise CorpusError(f"{split}: no question is left of {len(given):,}")
        with split_files(self.folder, split, len(self.vocabulary.dictionary)) as writer:
            contexts = dict[str, int]()
            for number, one in enumerate(asked):
                if one.context not in contexts:
                    contexts[one.context] = len(contexts)
                    writer.context(one.context, cutter.offsets(one.context))
                answers = [answer.text for answer in one.answers]
                counts["without answer"] += not answers
                used = answered.get(one.id, one._replace(answers=()))
                pieces = self._windows(split, number, used, one.answers, writer, cutter)
                facts = {"context": contexts[one.context], "answers": answers, "pieces": pieces}
                writer.question(id=one.id, question=one.text, **facts)
        if not trains:
            # the scored questions, in the format that the sets' own scripts read
            write_json(self.folder / f"{split}.{SCORED_FILE}", squad_format(asked, self.settings.version))

    def _windows(
        self, split: str, number: int, one: Question, answers: Sequence[Answer], writer: SplitWriter, cutter: Cutter
    ) -> int | None:
        """Write the windows of a question, and return the pieces of its shortest answer (see `Cutter.shortest`)."""
        made, question, answer = cutter.items(one)
        shortest = cutter.shortest(one.context, dict.fromkeys([*one.answers, *answers]), made)
        for item in made:
            writer.window(item.tokens, number, *item.window, item.column, item.start, item.end)
        counts = self.counts[split]
        counts["questions"] += 1
        counts["windows"] += len(made)
        counts["in several windows"] += len(made) > 1
        counts["pieces"] += sum(len(item.tokens) for item in made)
        counts["unknown pieces"] += sum(item.tokens.count(UNKNOWN) for item in made)
        counts["answers given back"] += answer is not None and answer == one.answers[0].text

        def report(kind: str, what: str, done: str) -> None:
            self.problems.append(Problem(split, one.where, one.id, kind, what, done))

        if question > self.settings.longest_question:
            report(CUT, f"{question} pieces, {self.settings.longest_question} are read", "cut")
        if len(made) > 1:
            report(LONG, f"its context is read in {len(made)} windows", "read in parts")
        if one.answers and not any(item.start for item in made) and split == TRAIN:
            told = f"{one.answers[0].text!r} is longer than each window, or is none of its pieces"
            report(NO_WINDOW, told, "learned as no answer")
        if shortest == 0 and split != TRAIN:
            told = "each of its answers is longer than its window, or is none of its pieces"
            report(NO_WINDOW, told, "scored, never found")
        return shortest
