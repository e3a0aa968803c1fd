"""Convert the files of a task to the folder that `--task posenc_sentence_prediction` reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.errors import CorpusError
from corpora.pieces import UNKNOWN
from questions import output as files
from questions import problems, vocabulary
from questions.pipeline import quiet
from questions.problems import Problem
from shared import digest

from . import reading
from .checks import Split, checked, strays, translations
from .formats import TASKS, Format, language
from .output import Example, Layout, write_dictionaries, write_split
from .reading import Row

RECORD = "glue.json"
#: maximum fraction of unknown pieces in the training text; a larger fraction is an error
MOST_UNKNOWN = 0.2
#: option that extends the position table, for error messages
TRAINED = "--pos-enc-args (also give this flag to fairseq-train)"
#: fraction of unknown pieces in a split above which this program and the reports print a warning
STRANGE = 0.05


@dataclass(frozen=True)
class Settings:
    """Hold the options of prepare_glue.py; see its --help.

    Args:
        languages: Languages of XNLI; if the tuple is empty, all languages that have files. English is always prepared
            for training and development.
        pos_enc_args: The `--pos-enc-args` that fairseq-train gets for the fine-tuning.
    """

    task: str
    checkpoint: Path
    tokenizer_path: Path | None
    longest: int
    separators: int
    bad: str
    limit: int = 0
    train_rows: int = 0
    languages: tuple[str, ...] = ()
    pos_enc_args: str | None = None

    @property
    def form(self) -> Format:
        return TASKS[self.task]


def prepare(folder: Path, where: Path, settings: Settings) -> dict[str, Any]:
    """Write the prepared folder `where`, completely or not at all.

    Args:
        folder: Folder with GLUE's files.
    Returns:
        The content of glue.json.
    Raises:
        CorpusError: A file cannot be read, does not fit the task or the model, or is empty.
        RefusedError: Rows are bad and --bad is refuse; WHERE.problems.jsonl lists them.
    """
    form, row_problems = settings.form, list[Problem]()
    paths = sources(folder, settings)
    for path, name in {path: name for name, path in reversed(paths.items())}.items():
        row_problems += strays(name, reading.strays(path, form, name), settings.bad)
    with files.new_folder(where) as partial:
        splits = [*_read(paths, settings)]
        for split in splits:
            split.rows, split_problems = checked(split.name, split.rows, form, settings.bad)
            row_problems += split_problems
        places = "".join(f"{problem.where}: {problem.what}\n" for problem in row_problems[: problems.SHOWN])
        problems.refuse(where, row_problems, "--bad skip leaves them out.", places)
        _refuse_shifted(splits, settings)
        row_problems += translations(splits, row_problems) if form.translated else []
        for split in splits:
            _refuse_empty(split, settings)
        record = _write(partial, splits, settings)
        for split in splits:
            record["splits"][split.name] |= {
                "given": split.assigned,
                "in file": split.in_file,
                "file": split.path.name,
                "sha256": digest(split.path),
            }
        record["problems"] = problems.counted(row_problems)
        files.write_json(partial / RECORD, record)
        problems.tell(partial, row_problems)
    return record


def sources(folder: Path, settings: Settings) -> dict[str, Path]:
    """Return the file of each split.

    Raises:
        CorpusError: A required file or language is missing, or --train-rows is given and a training file exists.
    """
    if not settings.train_rows:
        return _of_languages(folder, settings, reading.find(folder, settings.task, settings.form))
    paths = reading.find(folder, settings.task, settings.form, needed=("valid",))
    if "train" in paths:
        raise CorpusError(
            f"--train-rows is only for a folder without a training file, but {paths['train']} exists. "
            "Leave out --train-rows."
        )
    return _of_languages(folder, settings, {"train": paths["valid"], **paths})


def _of_languages(folder: Path, settings: Settings, paths: dict[str, Path]) -> dict[str, Path]:
    """Return the files of the chosen languages, and the English files for training and development."""
    if not settings.languages:
        return paths
    missing = set(settings.languages) - {language(split) for split in paths}
    if missing:
        raise CorpusError(
            f"--languages {','.join(sorted(missing))}: {folder} has no {settings.task} files for these languages. "
            "Leave out these languages."
        )
    needed = reading.NEEDED
    return {split: path for split, path in paths.items() if split in needed or language(split) in settings.languages}


def _read(paths: dict[str, Path], settings: Settings) -> Iterator[Split]:
    """Read the rows of each split.

    With --train-rows, the training rows are left out of the development sets of all languages.
    """
    count, form = settings.train_rows, settings.form
    for split, path in paths.items():
        rows = list(reading.read(path, form, "valid" if split == "train" and count else split))
        if not rows and list(paths.values()).count(path) > 1:
            continue  # the file of all languages has no rows of this language
        whole = len(rows)
        if split == "train":
            rows = rows[: count or None][: settings.limit or None]
        elif split == "valid" or (form.translated and split.startswith("valid")):
            rows = rows[count:]
        yield Split(split, path, rows, len(rows), whole)


def _refuse_shifted(splits: list[Split], settings: Settings) -> None:
    """Refuse --train-rows if development sets differ in length, because row numbers identify translations.

    Raises:
        CorpusError: The development sets of several languages differ in length.
    """
    if not settings.train_rows or not settings.form.translated:
        return
    rows = {language(split.name): split.assigned for split in splits if split.name.startswith("valid")}
    if len(set(rows.values())) > 1:
        lengths = ", ".join(f"{code} {count:,}" for code, count in rows.items())
        raise CorpusError(
            f"--train-rows {settings.train_rows} needs development sets with the same number of rows in all languages. "
            f"Without the training rows, the sets have these numbers of rows: {lengths}. Fetch the files again."
        )


def _refuse_empty(split: Split, settings: Settings) -> None:
    """Raise a CorpusError if a split has no rows left."""
    if split.rows:
        return
    problem, cure = f"the file has no rows for {split.name}", "Fetch the file again."
    if split.assigned:
        problem = f"--bad skip leaves out all {split.assigned:,} rows of {split.name}"
        cure = "Correct the rows, or give another file."
    elif split.in_file:
        count = f"{settings.train_rows:,}"
        problem = f"the file has {split.in_file:,} rows, so --train-rows {count} leaves no row for {split.name}"
        cure = "Give a smaller number."
    raise CorpusError(f"{split.path}: {problem}. {cure}")


def _write(folder: Path, splits: list[Split], settings: Settings) -> dict[str, Any]:
    """Write all files except glue.json and problems.jsonl; return the content of glue.json without file hashes."""
    with quiet():
        from fairseq_posenc.data import question_pieces  # takes seconds, which --help does not need

    form = settings.form
    dictionary = vocabulary.pretrained(settings.checkpoint, settings.tokenizer_path, "--checkpoint")
    ids = dictionary.ids()
    surface = question_pieces.Pretrained(dictionary.contents or {})

    def example(row: Row) -> Example:
        sentences = [[ids.get(piece[0], UNKNOWN) for piece in surface.cut(text)] for text in row.sentences]
        return Example(row.id, sentences, row.label)

    marks = 2 + settings.separators * (len(form.sentences) - 1)
    layout = Layout(len(dictionary), len(form.sentences), form.labels, settings.longest, marks)
    counts = {split.name: write_split(folder, split.name, map(example, split.rows), layout) for split in splits}
    _refuse_long(max(facts["longest"] for facts in counts.values()), settings)
    write_dictionaries(folder, dictionary.text(), layout)
    unknown = counts["train"]["unknown"] / max(counts["train"]["pieces"], 1)
    if unknown > MOST_UNKNOWN:
        raise CorpusError(
            f"--checkpoint {settings.checkpoint}: {unknown:.0%} of the training pieces are not in the model's "
            "dictionary, so the model does not fit this text. Give another model."
        )
    return {
        "task": settings.task,
        "pair": len(form.sentences) == 2,
        "labels": list(form.labels),
        "bounds": None if form.labels else list(form.bounds),
        "longest": settings.longest,
        "separators": settings.separators,
        "dictionary": len(dictionary),
        "strange": STRANGE,
        "splits": counts,
    }


def _refuse_long(longest: int, settings: Settings) -> None:
    """Refuse items that have more pieces than the encoding has positions.

    fairseq-train would leave over-long items out of training, and it would fail on them in validation.

    Raises:
        CorpusError: Items are longer than the encoding allows, or the model cannot be read.
    """
    from fairseq_posenc.hub.pretrained import read
    from fairseq_posenc.models.lengths import check_length, fine_tuned

    with vocabulary.readable(settings.checkpoint, "--checkpoint"):
        pos = fine_tuned(read(settings.checkpoint), settings.pos_enc_args)
        check_length(pos, longest, "items", "Cut them with --longest LIMIT, or use another encoding.", TRAINED)
