"""Convert GLUE's files to the folder that `--task posenc_sentence_prediction` reads."""

from __future__ import annotations

from collections import Counter
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
from .output import Cutter, split_files
from .reading import Row

RECORD = "glue.json"
#: maximum fraction of unknown pieces in the training text; more means that the tokenizer does not fit
MOST_UNKNOWN = 0.2
#: option that extends the position table, as error messages name it
TRAINED = "(here, and of fairseq-train) --pos-enc-args"
#: fraction of unknown pieces in a split from which a warning is printed here and in reports
STRANGE = 0.05


@dataclass(frozen=True)
class Settings:
    """Hold the options of prepare_glue.py; see its --help.

    Args:
        languages: Languages of XNLI; empty: all that exist. Training and development are always in English.
        pos_enc_args: The `--pos-enc-args` of the fine-tuning.
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
        The record, which is also written to glue.json.
    Raises:
        CorpusError: A file cannot be read, does not fit the task or the model, or is empty.
        RefusedError: Rows are wrong and refused; WHERE.problems.jsonl lists them.
    """
    form, wrong = settings.form, list[Problem]()
    named = sources(folder, settings)
    for path, name in {path: name for name, path in reversed(named.items())}.items():
        wrong += strays(name, reading.strays(path, form, name), settings.bad)
    with files.new_folder(where) as made:
        splits = [*_read(named, settings)]
        for split in splits:
            split.rows, found = checked(split.name, split.rows, form, settings.bad)
            wrong += found
        places = "".join(f"{one.where}: {one.what}\n" for one in wrong[: problems.SHOWN])
        problems.refuse(where, wrong, "--bad skip leaves them out", places)
        _refuse_shifted(splits, settings)
        wrong += translations(splits, wrong) if form.translated else []
        for split in splits:
            _refuse_empty(split, settings)
        record = _write(made, splits, settings)
        for split in splits:
            facts = {"given": split.given, "file": split.path.name, "sha256": digest(split.path)}
            record["splits"][split.name] |= facts
        record["problems"] = problems.counted(wrong)
        files.write_json(made / RECORD, record)
        problems.tell(made, wrong)
    return record


def sources(folder: Path, settings: Settings) -> dict[str, Path]:
    """Return the files by split.

    Raises:
        CorpusError: A needed file or language is missing, or --train-rows is given and a training file exists.
    """
    if not settings.train_rows:
        return _of_languages(folder, settings, reading.find(folder, settings.task, settings.form))
    found = reading.find(folder, settings.task, settings.form, needed=("valid",))
    if "train" in found:
        raise CorpusError(f"--train-rows is for a folder without a training file, and {found['train']} is there")
    return _of_languages(folder, settings, {"train": found["valid"], **found})


def _of_languages(folder: Path, settings: Settings, found: dict[str, Path]) -> dict[str, Path]:
    """Return the splits of the chosen languages, and always those of English for training and development."""
    if not settings.languages:
        return found
    missing = set(settings.languages) - {language(split) for split in found}
    if missing:
        raise CorpusError(f"--languages {','.join(sorted(missing))}: {folder} has no such files of {settings.task}")
    needed = reading.NEEDED
    return {split: path for split, path in found.items() if split in needed or language(split) in settings.languages}


def _read(named: dict[str, Path], settings: Settings) -> Iterator[Split]:
    """Read the rows of each split.

    With --train-rows, the rows for training are left out of the development sets of all languages.
    """
    count, form = settings.train_rows, settings.form
    for split, path in named.items():
        rows = list(reading.read(path, form, "valid" if split == "train" and count else split))
        if not rows and list(named.values()).count(path) > 1:
            continue  # the file of all languages has no rows of this one
        whole = len(rows)
        if split == "train":
            rows = rows[: count or None][: settings.limit or None]
        elif split == "valid" or (form.translated and split.startswith("valid")):
            rows = rows[count:]
        yield Split(split, path, rows, len(rows), whole)


def _refuse_shifted(splits: list[Split], settings: Settings) -> None:
    """Refuse development sets of different lengths with --train-rows, which leaves out translations by row number.

    Raises:
        CorpusError: The development sets of several languages differ in length.
    """
    if not settings.train_rows or not settings.form.translated:
        return
    rows = {language(split.name): split.given for split in splits if split.name.startswith("valid")}
    if len(set(rows.values())) > 1:
        told = ", ".join(f"{code} {count:,}" for code, count in rows.items())
        raise CorpusError(
            "--train-rows leaves the same rows out in all languages, and their development sets are not of one length: "
            f"{told} rows behind the first {settings.train_rows:,}"
        )


def _refuse_empty(split: Split, settings: Settings) -> None:
    """Raise a CorpusError if a split has no rows left."""
    if split.rows:
        return
    why = f"no row of {split.name} in it, only a header"
    if split.given:
        why = f"--bad skip leaves out all of the {split.given:,} rows of {split.name}: none is left"
    elif split.whole:
        count = f"{settings.train_rows:,}"
        why = f"it has {split.whole:,} rows, and --train-rows {count} leaves none of them to {split.name}"
    raise CorpusError(f"{split.path}: {why}")


def _write(made: Path, splits: list[Split], settings: Settings) -> dict[str, Any]:
    """Write everything except problems.jsonl, and return the record without the facts about input files."""
    with quiet():
        from fairseq_posenc.data import question_pieces  # takes seconds, which --help does not need

    form, dictionary = (
        settings.form,
        vocabulary.pretrained(settings.checkpoint, settings.tokenizer_path, "--checkpoint"),
    )
    surface = question_pieces.Pretrained(dictionary.contents or {})
    cutter = Cutter(surface, dictionary.ids(), settings.longest, settings.separators)
    counts = {split.name: _split(made, split.name, split.rows, cutter, form, len(dictionary)) for split in splits}
    _refuse_long(max(facts["longest"] for facts in counts.values()), settings)
    for number in range(len(form.sentences)):
        (made / f"input{number}" / "dict.txt").write_text(dictionary.text(), encoding="utf-8")
    if form.labels:
        (made / "label" / "dict.txt").write_text("".join(f"{label} 1\n" for label in form.labels), encoding="utf-8")
    unknown = counts["train"]["unknown"] / max(counts["train"]["pieces"], 1)
    if unknown > MOST_UNKNOWN:
        raise CorpusError(
            f"{unknown:.0%} of the training text's pieces are not in the dictionary of {settings.checkpoint}: is its "
            "text of another kind?"
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
    """Refuse items that are longer than the encoding has positions.

    fairseq-train would leave such items out of training, and fail on them in validation.

    Raises:
        CorpusError: Items are longer than the encoding allows, or the model cannot be read.
    """
    from fairseq_posenc.hub.pretrained import read
    from fairseq_posenc.models.lengths import check_length, fine_tuned

    with vocabulary.readable(settings.checkpoint, "--checkpoint"):
        pos = fine_tuned(read(settings.checkpoint), settings.pos_enc_args)
        check_length(pos, longest, "items", "--longest LIMIT cuts them off, or a model of another encoding", TRAINED)


def _split(made: Path, split: str, rows: list[Row], cutter: Cutter, form: Format, size: int) -> dict[str, Any]:
    """Write the files of a split, and return its counts."""
    tally = Counter[str](items=0, cut=0, pieces=0, unknown=0)
    labelled, longest = all(row.label is not None for row in rows), 0
    with split_files(made, split, size, len(form.sentences), form.labels) as writer:
        for row in rows:
            item = cutter.item(row)
            writer.add(row.id, item, row.label if labelled else None)
            longest = max(longest, min(item.pieces, cutter.longest))
            unknown = sum(ids.count(UNKNOWN) for ids in item.sentences)
            tally.update(items=1, cut=int(item.cut), pieces=item.pieces, unknown=unknown)
    return {**tally, "labelled": labelled, "longest": longest}
