"""GLUE's files to the folder that `--task posenc_sentence_prediction` reads."""

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
#: of a training text, so that pieces that no model knows are noticed
MOST_UNKNOWN = 0.2
#: how a table of positions is made longer, here and in what follows
TRAINED = "(here, and of fairseq-train) --pos-enc-args"
#: of any split, so that it is named here and in reports
STRANGE = 0.05


@dataclass(frozen=True)
class Settings:
    """See `prepare_glue.py --help`. languages: Those of XNLI, or none for all that are there; English trains and is
    developed on. pos_enc_args: Those of the fine-tuning."""

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
    """Write the prepared folder `where`, complete or not at all.

    Args:
        folder: The folder with GLUE's files.
    Returns:
        The record, glue.json.
    Raises:
        CorpusError: what cannot be read, or does not fit, or is empty; `RefusedError` with WHERE.problems.jsonl beside.
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
        CorpusError: see `reading.find`; a training file beside rows that stand for it; a language without files.
    """
    if not settings.train_rows:
        return _of_languages(folder, settings, reading.find(folder, settings.task, settings.form))
    found = reading.find(folder, settings.task, settings.form, needed=("valid",))
    if "train" in found:
        raise CorpusError(f"--train-rows is for a folder without a training file, and {found['train']} is there")
    return _of_languages(folder, settings, {"train": found["valid"], **found})


def _of_languages(folder: Path, settings: Settings, found: dict[str, Path]) -> dict[str, Path]:
    """Return the splits of the chosen languages, and English, on which the model is trained."""
    if not settings.languages:
        return found
    missing = set(settings.languages) - {language(split) for split in found}
    if missing:
        raise CorpusError(f"--languages {','.join(sorted(missing))}: {folder} has no such files of {settings.task}")
    needed = reading.NEEDED
    return {split: path for split, path in found.items() if split in needed or language(split) in settings.languages}


def _read(named: dict[str, Path], settings: Settings) -> Iterator[Split]:
    """Read the rows of each split. Those that are for training are left out of the development set of all languages."""
    count, form = settings.train_rows, settings.form
    for split, path in named.items():
        rows = list(reading.read(path, form, "valid" if split == "train" and count else split))
        if not rows and list(named.values()).count(path) > 1:
            continue  # a language that a file of many has not
        whole = len(rows)
        if split == "train":
            rows = rows[: count or None][: settings.limit or None]
        elif split == "valid" or (form.translated and split.startswith("valid")):
            rows = rows[count:]
        yield Split(split, path, rows, len(rows), whole)


def _refuse_shifted(splits: list[Split], settings: Settings) -> None:
    """Refuse languages of other lengths: translations of rows for training are found by their number.

    Raises:
        CorpusError: The development sets of several languages are not of one length.
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
    """Raise a CorpusError if no row of a split is left."""
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
    """Write everything but problems.jsonl, and return the record, without the files."""
    with quiet():
        from fairseq_posenc.data import question_pieces  # seconds, which --help does not need

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
    """Refuse items without positions: fairseq-train leaves them out of training, and fails in the development set.

    Raises:
        CorpusError: items of so many pieces are beyond what the encoding defines; a model that cannot be read.
    """
    from fairseq_posenc.hub.pretrained import read
    from fairseq_posenc.models.lengths import check_length, fine_tuned

    with vocabulary.readable(settings.checkpoint, "--checkpoint"):
        pos = fine_tuned(read(settings.checkpoint), settings.pos_enc_args)
        check_length(pos, longest, "items", "--longest LIMIT cuts them off, or a model of another encoding", TRAINED)


def _split(made: Path, split: str, rows: list[Row], cutter: Cutter, form: Format, size: int) -> dict[str, Any]:
    """Write the files of a split, and return what is in them."""
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
