"""Read rows of text and label from the published files of a task, or from the user's tsv, csv or jsonl files.

tsv files are read like GLUE's: tabs separate the fields, and quotes are text. In csv files, double quotes may enclose
a field (RFC 4180).
"""

from __future__ import annotations

import csv
import json
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from corpora import lines
from corpora.compressed import there
from corpora.errors import CorpusError
from glue import reading as glue
from glue.formats import TASKS as GLUE
from glue.formats import Format
from shared import is_utf16, nearest, utf16_problem


class Row(NamedTuple):
    """Hold a text or a pair of texts, its label, and its place in the files."""

    where: str  # the file with the line, or the member of an archive
    texts: tuple[str, ...]
    label: str | None  # None: the file has no label for this row


#: Splits, and the names that the user's own files may have.
OWN = {"train": ("train",), "valid": ("dev", "valid", "validation"), "test": ("test",)}
ENDINGS = (".tsv", ".csv", ".jsonl")


@dataclass(frozen=True)
class Columns:
    """Hold the names of three columns: the text, the second text of a pair (empty: no pairs) and the label."""

    text: str
    pair: str
    label: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the names of the columns with text: one, or two for pairs."""
        return (self.text, self.pair) if self.pair else (self.text,)


class Source(NamedTuple):
    """Hold the file or folder of a split, and the function that reads the rows from it."""

    path: Path
    rows: Callable[[], Iterator[Row]]


def own(folder: Path, columns: Columns) -> dict[str, Source]:
    """Return the sources in the user's own folder by split.

    Raises:
        CorpusError: There is no training file, or a split has two files.
    """
    paths = {split: path for split, names in OWN.items() if (path := _only(folder, names)) is not None}
    if "train" not in paths:
        what = "the folder holds no train.tsv, train.csv or train.jsonl (plain or .gz)"
        raise CorpusError(f"--data {folder}: {what}. Add the file, or give --task for a published task.")
    return {split: Source(path, partial(read, path, columns)) for split, path in paths.items()}


def _only(folder: Path, names: tuple[str, ...]) -> Path | None:
    paths = [path for name in names for ending in ENDINGS if (path := there(folder / f"{name}{ending}"))]
    if len(paths) > 1:
        what = f"{paths[0].name} and {paths[1].name} hold the same split, but a split must be a single file"
        raise CorpusError(f"--data {folder}: {what}. Remove one of these files.")
    return paths[0] if paths else None


def read(path: Path, columns: Columns) -> Iterator[Row]:
    """Read the rows of a tsv, csv or jsonl file, plain or .gz.

    Raises:
        CorpusError: The file cannot be read, a column is missing, or quotes are broken.
    """
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    records = {"tsv": _tsv, "csv": _csv, "jsonl": _jsonl}[kind](path)
    known: set[str] | None = None
    for number, record in records:
        if known is None or kind == "jsonl":
            known = set(record)
            _refuse_missing(path, number if kind == "jsonl" else 1, columns, known)
        label = record.get(columns.label)
        texts = tuple(str(record[name] or "") for name in columns.texts)
        yield Row(f"{path.name}:{number}", texts, None if label is None else str(label).strip())


def _refuse_missing(path: Path, number: int, columns: Columns, known: set[str]) -> None:
    flags = {"--text": columns.text, "--pair": columns.pair}
    for flag, name in flags.items():
        if name and name not in known:
            raise CorpusError.at(path, number, f"{flag} {name}: the file lacks this column{nearest(name, known)}")


Records = Iterator[tuple[int, Mapping[str, Any]]]


def _tsv(path: Path) -> Records:
    header: list[str] = []
    for line in lines.of_file(path):
        fields = line.text.removeprefix("\ufeff").split("\t")
        if not header:
            header = fields
        elif len(fields) != len(header):
            raise _uneven(path, line.number, len(fields), len(header))
        else:
            yield line.number, dict(zip(header, fields, strict=True))


def _uneven(path: Path, number: int, fields: int, columns: int) -> CorpusError:
    return CorpusError.at(path, number, f"the line has {fields} fields, but the header has {columns}. Correct it.")


def _csv(path: Path) -> Records:
    rows = csv.reader((f"{line.text}\n" for line in lines.of_file(path)), strict=True)
    header: list[str] = []
    begin = 1
    try:
        for fields in rows:
            if not header:
                header = [(fields or [""])[0].removeprefix("\ufeff"), *fields[1:]]  # an empty line has no fields
            elif len(fields) != len(header):
                raise _uneven(path, begin, len(fields), len(header))
            else:
                yield begin, dict(zip(header, fields, strict=True))
            begin = rows.line_num + 1
    except csv.Error as error:
        what = f"the quotes are broken ({error})"
        cure = "Write each quote inside a quoted field twice, or convert the file to tsv."
        raise CorpusError.at(path, begin, f"{what}. {cure}") from None


def _jsonl(path: Path) -> Records:
    for line in lines.of_file(path):
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            what = f"the line is not JSON ({error}). Write one JSON object per line."
            raise CorpusError.at(path, line.number, what) from None
        if not isinstance(record, dict):
            raise CorpusError.at(path, line.number, "the line is not a JSON object. Write one JSON object per line.")
        yield line.number, record


# --- published tasks


#: Name in GLUE of each value of --task.
OF_GLUE = {"sst2": "SST-2", "qnli": "QNLI", "qqp": "QQP", "mnli": "MNLI", "rte": "RTE"}
#: GLUE's test sets have no labels, so its development sets (on the left) are scored as test sets.
SCORED = {"valid": "test", "valid-mismatched": "test-mismatched"}


def published(task: str, data: Path) -> dict[str, Source]:
    """Return the sources of a published task by split.

    Raises:
        CorpusError: A file is missing.
    """
    if task in OF_GLUE:
        return _of_glue(OF_GLUE[task], data)
    return {"imdb": _imdb, "snli": _snli}[task](data)


def _of_glue(name: str, data: Path) -> dict[str, Source]:
    form = GLUE[name]
    paths = glue.find(data, name, form)
    used = {"train": "train", **{theirs: ours for theirs, ours in SCORED.items() if theirs in paths}}
    return {
        ours: Source(paths[theirs], partial(_glue_rows, paths[theirs], form, theirs)) for theirs, ours in used.items()
    }


def _glue_rows(path: Path, form: Format, split: str) -> Iterator[Row]:
    for row in glue.read(path, form, split):
        if row.fields != row.expected:
            raise _uneven(path, int(row.where.rpartition(":")[2]), row.fields, row.expected)
        yield Row(row.where, row.sentences, row.label)


def _snli(data: Path) -> dict[str, Source]:
    places = (data, data / "snli_1.0", data / "snli_1.0" / "snli_1.0")
    sources = {}
    for split, name in (("train", "train"), ("valid", "dev"), ("test", "test")):
        file = f"snli_1.0_{name}.jsonl"
        path = next((path for place in places if (path := there(place / file))), None)
        if path is None:
            what = f"neither the folder nor its subfolder snli_1.0 holds {file} (plain or .gz)"
            raise CorpusError(f"--data {data}: {what}. Download SNLI with `fetch.py snli`.")
        sources[split] = Source(path, partial(_agreed, path))
    return sources


def _agreed(path: Path) -> Iterator[Row]:
    """Read SNLI's pairs, except pairs with the label `-`, on which the annotators did not agree."""
    columns = Columns("sentence1", "sentence2", "gold_label")
    return (row for row in read(path, columns) if row.label != "-")


#: Members of the archive have names like aclImdb/train/pos/0_9.txt.
REVIEW = re.compile(r"(?:^|/)(train|test)/(pos|neg)/(\d+)_\d+\.txt$")
BREAK = re.compile(r"<br\s*/?>")


def _imdb(data: Path) -> dict[str, Source]:
    """Find IMDB's reviews in the unpacked folder or in the archive; the archive is read without unpacking it."""
    folders = [place for place in (data, data / "aclImdb", data / "aclImdb_v1") if (place / "train" / "pos").is_dir()]
    archives = [path for path in (data, data / "aclImdb_v1.tar.gz") if path.is_file()]
    if not folders and not archives:
        what = "the folder holds neither train/pos/ nor aclImdb_v1.tar.gz"
        raise CorpusError(f"--data {data}: {what}. Download IMDB with `fetch.py imdb`.")
    source = [*folders, *archives][0]
    return {split: Source(source, partial(_reviews, source, split)) for split in ("train", "test")}


def _reviews(source: Path, split: str) -> Iterator[Row]:
    texts = _of_folder(source) if source.is_dir() else _of_archive(source)
    for (_, label, number), text in sorted((key, text) for key, text in texts if key[0] == split):
        yield Row(f"{split}/{label}/{number}", (BREAK.sub(" ", text),), label)


Reviews = Iterator[tuple[tuple[str, str, int], str]]


def _of_folder(folder: Path) -> Reviews:
    for path in folder.rglob("*.txt"):
        if (key := _key(path.relative_to(folder).as_posix())) is not None:
            yield key, _text(path, path.read_bytes())


def _of_archive(archive: Path) -> Reviews:
    try:
        with tarfile.open(archive, "r|*") as opened:
            for member in opened:
                if member.isfile() and (key := _key(member.name)) is not None:
                    file = opened.extractfile(member)
                    assert file is not None
                    yield key, _text(archive / member.name, file.read())
    except (tarfile.TarError, EOFError, OSError) as error:
        raise CorpusError(f"{archive}: the archive is damaged ({error}). Download the archive again.") from None


def _key(name: str) -> tuple[str, str, int] | None:
    match = REVIEW.search(name)
    return (match[1], match[2], int(match[3])) if match else None


def _text(path: Path, content: bytes) -> str:
    if is_utf16(content):
        raise CorpusError.at(path, 1, utf16_problem(path))
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise CorpusError(
            f"{path}: the file is not UTF-8. Convert the file with iconv -t UTF-8, or remove it."
        ) from None
