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
from questions.problems import Problem, new_problem
from questions.reading import Answer, Question

from .output import Cutter, SplitWriter, split_files, squad_format
from .vocabulary import Vocabulary, of_model

FLAGS = "--train and --eval"  # options with which a user names files
TRAIN, RECORD = "train", "spans.json"
#: how evaluation splits handle questions with problems
SCORED = "scored as it is"
SCORED_FILE = "scored.json"  # after the split's name
CURE = (
    "--bad skip leaves bad questions out of training. --bad repair also searches the context for misplaced answers. "
    "Evaluation splits keep all questions."
)
#: kinds of problems; an answer in no window is not learned, and no prediction can equal it
NO_WINDOW, CUT, LONG = "answer in no window", "cut question", "long context"
#: kind of a question that --without leaves out
ELSEWHERE = "question scored elsewhere"
#: kind of a training question that an evaluation split also has; a model would be scored on what it has learned
BOTH = "question that is answered too"

BySplit = dict[str, list[Question]]
#: counts of each split in the record
COUNTED = (
    *("given", "questions", "windows", "in several windows", "without answer", "pieces", "unknown pieces"),
    *("answers given back", "pieces without windows", "sequences over 512 pieces"),
)
BERT_LENGTH = 512  # maximum length of BERT; the counts say how many questions with their contexts are longer


@dataclass(frozen=True)
class Settings:
    """Hold the options of prepare_spans.py; see its --help.

    Args:
        begins: Prefix of the question ids of a split, for splits that share a file with other splits.
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
    files: dict[str, Path], model: Path, tokenizer: str, where: Path, settings: Settings, excluded: Sequence[Path] = ()
) -> dict[str, Any]:
    """Write the prepared folder, completely or not at all.

    Args:
        excluded: Files whose questions are left out of all splits, identified by the question ids.
    Returns:
        The content of `RECORD`.
    Raises:
        CorpusError: A file cannot be read or has the wrong format.
        RefusedError: Questions have problems and --bad is refuse; OUTPUT.problems.jsonl lists them.
    """
    with new_folder(where) as folder:
        questions, found_problems = _read(files, settings)
        found_problems += [*_leave_out(questions, excluded), *_part(questions, settings.bad)]
        questions = {split: part[: settings.most(split) or None] for split, part in questions.items()}
        with quiet():
            run = Run(folder, files, settings, of_model(model, tokenizer), found_problems)
            record = run.all(questions, excluded)
        refused = [problem for problem in run.problems if problem.done == "refused"]  # others do not prevent the output
        problems.refuse(where, refused, CURE, problems.UNUSABLE)
        problems.tell(folder, run.problems)
    return record


def _read(files: dict[str, Path], settings: Settings) -> tuple[BySplit, list[Problem]]:
    """Return each split's questions without repeated ids, and the problems with malformed or repeated questions."""
    questions, found_problems, answered = dict[str, list[Question]](), list[Problem](), True
    for split, path in files.items():
        if path.exists() and not reading.is_json(path):  # line files have no offsets of answers
            raise CorpusError(f"{path}: give NAME.json in SQuAD's format, plain or .gz.")
        malformed: reading.Malformed = []
        begin = settings.begins.get(split, "")
        read = [question for question in reading.read(path, malformed) if question.id.startswith(begin)]
        # an entry without an id is reported for all splits that share the file
        shown = [(name, what) for name, what in malformed if name.startswith((begin, "article "))]
        file_problems = [(name, "malformed question", what) for name, what in shown]
        unanswered = [question.id for question in read if question.impossible]
        if unanswered and settings.version == "1.1":
            first_ids = ", ".join(unanswered[:5])
            count = f"{len(unanswered)} questions have no answer ({first_ids})"
            raise CorpusError(f"{path}: {count}. Give --version 2.0 for the format of SQuAD 2.0.")
        answered &= not any(question.impossible or not question.answers for question in read)
        first = dict[str, Question]()
        for question in read:
            first.setdefault(question.id, question)
        if split:
            questions[split] = [*first.values()]
        else:  # split by article; the evaluation split gets the shares of validation and test
            drawn = splits.parts([*first.values()], path, settings.seed, FLAGS)
            questions |= {TRAIN: drawn[TRAIN], "valid": [*drawn["valid"], *drawn["test"]]}
        repeated = [name for name, number in Counter(question.id for question in read).items() if number > 1]
        file_problems += [(name, "duplicate id", "only the first question with this id is kept") for name in repeated]
        found_problems += [new_problem(split or TRAIN, path.name, *facts, settings.bad) for facts in file_problems]
    if answered and settings.version == "2.0":
        named = ", ".join(map(str, files.values()))
        raise CorpusError(f"{named}: every question has an answer. Give --version 1.1 for the format of SQuAD 1.1.")
    return questions, found_problems


def _leave_out(questions: BySplit, excluded: Sequence[Path]) -> list[Problem]:
    """Remove questions from all splits if the files `excluded` hold questions with the same ids.

    Raises:
        CorpusError: A split would have no question left.
    """
    ids = {question.id for path in excluded for question in reading.read(path, [])}
    left_out, what = list[Problem](), "--without names a set that has a question with this id"
    for split, part in questions.items():
        shared = [question for question in part if question.id in ids]
        if shared and len(shared) == len(part):
            raise CorpusError(f"{split}: --without leaves out all {len(part):,} questions. Give another file.")
        left_out += [Problem(split, entry.where, entry.id, ELSEWHERE, what, "left out") for entry in shared]
        questions[split] = [question for question in part if question.id not in ids]
    return left_out


def _part(questions: BySplit, bad: str) -> list[Problem]:
    """Remove questions from the training split if another split has a question with the same id.

    Raises:
        CorpusError: The training split would have no question left.
    """
    train = questions.get(TRAIN, [])
    split_by_id = {entry.id: split for split, part in questions.items() if split != TRAIN for entry in part}
    shared = [question for question in train if question.id in split_by_id]
    if shared and len(shared) == len(train):
        named = ", ".join(dict.fromkeys(split_by_id[question.id] for question in shared))
        raise CorpusError(f"{TRAIN}: all {len(train):,} questions are also in {named}. Give another file.")
    questions |= {TRAIN: [question for question in train if question.id not in split_by_id]} if shared else {}
    what = {split: f"the split {split} has a question with this id" for split in questions}
    return [new_problem(TRAIN, entry.where, entry.id, BOTH, what[split_by_id[entry.id]], bad) for entry in shared]


@dataclass
class Run:
    """Hold the settings, the problems and the counts of one run."""

    folder: Path
    files: dict[str, Path]
    settings: Settings
    vocabulary: Vocabulary
    problems: list[Problem]
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def all(self, questions: BySplit, excluded: Sequence[Path]) -> dict[str, Any]:
        """Write everything except problems.jsonl, and return the content of `RECORD`."""
        from fairseq_posenc.data.span_items import Shape  # takes seconds, which --help does not need

        settings, vocabulary = self.settings, self.vocabulary
        try:
            shape = Shape(settings.longest, settings.stride, settings.longest_question, settings.separators)
        except ValueError as error:
            raise CorpusError(str(error)) from None
        for split, part in questions.items():
            self._split(split, part, Cutter(vocabulary.pieces, shape))
        vocabulary.dictionary.write(self.folder, "dict.txt")
        record: dict[str, Any] = {"version": settings.version, **asdict(shape), "bad": settings.bad}
        record |= {"tokenizer": vocabulary.kind, "cased": vocabulary.cased, "dictionary": len(vocabulary.dictionary)}
        record["files"] = {split or "all": described(path) for split, path in self.files.items()}
        record["without"] = [described(path) for path in excluded]
        record["splits"] = {split: dict(counts) for split, counts in self.counts.items()}
        record["problems"] = problems.counted(self.problems)
        write_json(self.folder / RECORD, record)
        return record

    def _split(self, split: str, questions: list[Question], cutter: Cutter) -> None:
        how, trains = self.settings.bad, split == TRAIN
        unanswerable = self.settings.version == "2.0"
        usable, split_problems = checked(split, questions, how, answers=True, unanswerable=unanswerable)
        # Evaluation keeps questions with problems and all their answers, except those without an answer in SQuAD 1.1.
        unscored = set() if unanswerable else {question.id for question in questions if not question.answers}
        for problem in split_problems:
            unchanged = trains or problem.done == "refused" or problem.id in unscored
            self.problems.append(problem if unchanged else problem._replace(done=SCORED))
        usable_by_id = {question.id: question for question in usable}
        counts = self.counts[split] = Counter(dict.fromkeys(COUNTED, 0) | {"given": len(questions)})
        written = usable if trains else [question for question in questions if question.id not in unscored]
        if not written:
            raise CorpusError(f"{split}: all {len(questions):,} questions are left out. Give another file.")
        with split_files(self.folder, split, len(self.vocabulary.dictionary)) as writer:
            contexts = dict[str, int]()
            for number, question in enumerate(written):
                if question.context not in contexts:
                    contexts[question.context] = len(contexts)
                    writer.context(question.context, cutter.offsets(question.context))
                answers = [answer.text for answer in question.answers]
                counts["without answer"] += not answers
                shown = usable_by_id.get(question.id, question._replace(answers=()))
                pieces = self._windows(split, number, shown, question.answers, writer, cutter)
                facts = {"context": contexts[question.context], "answers": answers, "pieces": pieces}
                writer.question(id=question.id, question=question.text, **facts)
        if not trains:
            # the scored questions in SQuAD's format, which the official scoring scripts read
            write_json(self.folder / f"{split}.{SCORED_FILE}", squad_format(written, self.settings.version))

    def _windows(
        self,
        split: str,
        number: int,
        question: Question,
        answers: Sequence[Answer],
        writer: SplitWriter,
        cutter: Cutter,
    ) -> int | None:
        """Write the windows of a question, and return the length of its shortest answer (see `Cutter.shortest`)."""
        windows, question_length, answer = cutter.items(question)
        shortest = cutter.shortest(question.context, dict.fromkeys([*question.answers, *answers]), windows)
        for item in windows:
            writer.window(item.tokens, number, *item.window, item.column, item.start, item.end)
        counts = self.counts[split]
        counts["questions"] += 1
        counts["windows"] += len(windows)
        counts["in several windows"] += len(windows) > 1
        counts["pieces"] += sum(len(item.tokens) for item in windows)
        length = question_length + len(cutter.offsets(question.context))
        counts["pieces without windows"] += length
        counts["sequences over 512 pieces"] += length > BERT_LENGTH
        counts["unknown pieces"] += sum(item.tokens.count(UNKNOWN) for item in windows)
        counts["answers given back"] += answer is not None and answer == question.answers[0].text

        def report(kind: str, what: str, done: str) -> None:
            self.problems.append(Problem(split, question.where, question.id, kind, what, done))

        if question_length > self.settings.longest_question:
            kept = f"the question has {question_length} pieces and is cut to {self.settings.longest_question}"
            report(CUT, kept, "cut")
        if len(windows) > 1:
            report(LONG, f"the context is split into {len(windows)} windows", "read in parts")
        if question.answers and not any(item.start for item in windows) and split == TRAIN:
            reason = f"no window contains the answer {question.answers[0].text!r}, or the answer has no pieces"
            report(NO_WINDOW, reason, "learned as no answer")
        if shortest == 0 and split != TRAIN:
            reason = "no window contains an answer, or the answers have no pieces"
            report(NO_WINDOW, reason, "scored, never found")
        return shortest
