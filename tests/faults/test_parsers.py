"""Every reader of a file meets damaged, invented or malicious content: it reads it or names the file, and no code runs.

tests/integration/test_no_code.py holds the same law for every command that loads a checkpoint.
"""

from __future__ import annotations

import io
import json
import pickle
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("fairseq")

import fetch
import prepare_glue as glue
import prepare_text_classification as classification
import question_files
from corpora import documents
from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset
from fairseq.data.indexed_dataset import make_builder
from shared import CorpusError, read_json
from support_payload import malicious, written

from fairseq_posenc.analysis.report import page, runs, tables
from fairseq_posenc.analysis.results import ResultsError
from fairseq_posenc.compat import CheckpointError, safe_load
from fairseq_posenc.core.reading import NotTextError, read_utf8
from fairseq_posenc.core.refusal import InputError
from fairseq_posenc.data import answers, question_pieces, words
from fairseq_posenc.data import questions as question_data
from fairseq_posenc.data import spans as span_data
from fairseq_posenc.hub import folder as hub
from fairseq_posenc.hub import tokenizer
from fairseq_posenc.papers import reading as papers
from fairseq_posenc.tasks.sentence_prediction import PosEncSentencePredictionTask
from recipes.lib.runs import read_mark


@dataclass(frozen=True)
class Reader:
    """Describe a reader of a file.

    Args:
        read: Function that reads a file to its end.
        errors: Errors whose message names the file.
        whole: Pattern of the messages about the whole file. All other messages must name a line. None if the messages
            of this reader need not name lines, because lines mean nothing in the file.
        hostile: Contents that were made for this reader.
        file: Name of the file.
        content: Valid content.
        others: Valid contents of other files that the reader needs, by name.
    """

    read: Callable[[Path], Any]
    errors: tuple[type[Exception], ...]
    whole: str | None
    hostile: tuple[bytes, ...]
    file: str
    content: bytes
    others: Mapping[str, bytes]

    def place(self, folder: Path) -> Path:
        """Write the files that the reader needs, and return the path of the file that it reads."""
        path = folder / "run" / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, content in self.others.items():
            (path.parent / name).write_bytes(content)
        return path


def all_of(reader: Callable[..., Iterable[Any]], *arguments: Any) -> Callable[[Path], Any]:
    return lambda path: list(reader(path, *arguments))


def report_of(path: Path) -> Any:
    """Read a result and write everything that the command `report` writes."""
    found = runs.read_runs([path.parent])
    entries = [entry for run in found for entry in run.entries]
    return page.page(found), tables.to_csv(entries), tables.to_latex(entries)


def log_of(path: Path) -> Any:
    """Read a log as the report does, which names the file of any error."""
    (path.parents[1] / "results.json").write_text(json.dumps({"recipe": "demo", "results": []}), encoding="utf-8")
    return runs.read_runs([path.parents[1]])


def documents_of(kind: str) -> Callable[[Path], Any]:
    """Return a function that reads the lines of all documents of a file."""
    return lambda path: [list(document.text) for document in documents.documents(path, kind)]


def record_of_items(path: Path) -> int:
    """Read the record of the data for sentence prediction as its task does."""
    task = SimpleNamespace(cfg=SimpleNamespace(data=str(path.parent)))
    return PosEncSentencePredictionTask.longest_item(task)  # type: ignore[arg-type]


def binarised(path: Path) -> Any:
    """Read all items of the binarised data to which a file belongs."""
    dataset = load_indexed_dataset(str(path.with_suffix("")), None, "mmap")
    return [dataset[number].tolist() for number in range(len(dataset))]


def of_items(ending: str) -> bytes:
    """Return one of the two files of binarised data."""
    with tempfile.TemporaryDirectory() as folder:
        builder = make_builder(f"{folder}/train.bin", "mmap", 10)
        builder.add_item(torch.tensor([4, 5, 2]))
        builder.finalize(f"{folder}/train.idx")
        return Path(folder, f"train.{ending}").read_bytes()


def array(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(values, np.int32))
    return file.getvalue()


def header(rows: int) -> bytes:
    """Return the beginning of an array, which claims to have this number of rows of six integers."""
    text = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({rows}, 6), }}\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


#: JSON that is nested too deeply for Python, and numbers that are too long for it.
DEEP, LONG = b"[" * 100_000, b"1" * 5_000

COLUMNS = ("text", "", "label")
SYMBOLS = Dictionary()
for number in range(2):
    SYMBOLS.add_symbol(f"w{number}")

#: Valid files by the name of their reader: text in readers.toml, and binary files here.
FILES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("readers.toml").read_text(encoding="utf-8"))
FILES["windows"] = {
    "file": "train.windows.npy",
    "content": array([[0, 0, 4, 3, 0, 1]] * 2),
    "others": {"spans.json": FILES["record of windows"]["content"]},
}
FILES["checkpoints"] = {"file": "model.pt", "content": written({"model": {"w": torch.ones(2)}})}
FILES["checkpoints, old format"] = {
    "file": "model.pt",
    "content": written({"w": torch.ones(2)}, _use_new_zipfile_serialization=False),
}
for ending, other in (("idx", "bin"), ("bin", "idx")):
    FILES[f"binarised data, {ending}"] = {
        "file": f"train.{ending}",
        "content": of_items(ending),
        "others": {f"train.{other}": of_items(other)},
    }


def reader(name: str, read: Callable[[Path], Any], errors: Any, whole: str | None = None, *hostile: bytes) -> Reader:
    """Return a reader with its valid files; `errors` is one class or several."""
    facts = FILES[name]
    others = {other: encoded(content) for other, content in facts.get("others", {}).items()}
    kinds = errors if isinstance(errors, tuple) else (errors,)
    return Reader(read, kinds, whole, hostile, facts["file"], encoded(facts["content"]), others)


def encoded(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def in_folder(read: Callable[..., Any], *arguments: Any) -> Callable[[Path], Any]:
    """Return a function that reads the folder of a file."""
    return lambda path: read(path.parent, *arguments)


def beside(read: Callable[[Path], Any], name: str) -> Callable[[Path], Any]:
    """Return a function that reads another file, which needs the file."""
    return lambda path: read(path.parent / name)


#: Matches no message.
NEVER = r"(?!)"
SOURCES = FILES["lists of sources"]["content"].encode()
READERS = {
    name: reader(name, *facts)
    for name, facts in {
        "plain text": (read_utf8, NotTextError, NEVER),
        "lists of sources": (
            *(all_of(fetch.read), (CorpusError, NotTextError), NEVER),
            *(SOURCES.replace(b"5", b"5" * 5_000), SOURCES.replace(b"a.zip", b"{0..999999999}.zip")),
        ),
        "SQuAD and CMRC": (lambda path: question_files.read(path, []), CorpusError),
        "GLUE": (all_of(glue.read, glue.TASKS["SST-2"], "train"), CorpusError, "is empty"),
        "classification, tsv": (all_of(classification.read, *COLUMNS), CorpusError, NEVER),
        "classification, csv": (all_of(classification.read, *COLUMNS), CorpusError, NEVER),
        "classification, jsonl": (all_of(classification.read, *COLUMNS), CorpusError, NEVER),
        "word vectors": (lambda path: classification.read_vectors(path, ["a"]), CorpusError, "is empty"),
        "results": (report_of, ResultsError),
        "logs of training": (log_of, ResultsError),
        "dictionaries": (lambda path: Dictionary.load(str(path)), ValueError, "Duplicate"),
        "words of questions": (question_data.read_surface, ValueError, NEVER),
        "settings of the Hub": (in_folder(hub.read_config), CheckpointError),
        "vocabularies, txt": (in_folder(hub.read_vocabulary), (CheckpointError, NotTextError)),
        "vocabularies, json": (in_folder(hub.read_vocabulary), CheckpointError),
        "vocabularies of tokenizers": (in_folder(hub.read_vocabulary), CheckpointError),
        "marks of steps": (read_mark, ()),
        "examples": (
            *(lambda path: answers.read(path, SYMBOLS, "encoder"), CheckpointError, NEVER),
            *(LONG + b"\tw0\tw0\n", b"2\tw0\tw0\n2\tw0 w1\tw0\n"),
        ),
        "record of examples": (
            *(in_folder(answers.record), CheckpointError, None),
            b'{"kind": "encoder", "longest_input": 1e999, "longest_output": 9}',
        ),
        "windows": (
            *(in_folder(span_data.rows, "train"), CheckpointError, None),
            *(array(7), array([[0, 1]]), array(np.zeros((0, 6))), *map(header, (10**9, 10**12, 10**30))),
        ),
        "record of windows": (
            *(lambda path: [span_data.splits(path.parent), span_data.record(path.parent)], CheckpointError, None),
            *(b'{"longest": 1e999, "splits": {}}', b'{"longest": 8, "splits": 8}'),
        ),
        "questions of windows": (in_folder(span_data.questions, "train"), CheckpointError, NEVER),
        "contexts of windows": (in_folder(span_data.contexts, "train"), CheckpointError, NEVER),
        "record of questions": (in_folder(question_pieces.load), CheckpointError),
        "tokenizer of questions": (lambda path: question_pieces.load(path.parent).cut("a a"), CheckpointError),
        "ids of GPT-2": (lambda path: words.gpt2_pieces(["<s>", "1"], path), ValueError),
        "record of items": (record_of_items, ValueError),
        "tokenizers, json": (tokenizer.read, CheckpointError),
        "tokenizers, WordPiece": (tokenizer.read, CheckpointError),
        "tokenizers, settings of WordPiece": (beside(tokenizer.read, "vocab.txt"), CheckpointError),
        "tokenizers, encoder.json": (tokenizer.read, CheckpointError),
        "tokenizers, vocab.bpe": (beside(tokenizer.read, "encoder.json"), CheckpointError, NEVER),
        "records of downloads and preparations": (read_json, CorpusError),
        "documents, dump": (documents_of("dump"), CorpusError, NEVER),
        "documents, WikiExtractor": (documents_of("wiki"), CorpusError, NEVER),
        "documents, jsonl": (documents_of("jsonl"), CorpusError, NEVER),
        "documents, any": (documents_of("auto"), CorpusError, NEVER),
        "XNLI of XTREME": (all_of(glue.read, glue.TASKS["XNLI"], "train"), CorpusError, "is empty"),
        "XNLI, all languages": (all_of(glue.read, glue.TASKS["XNLI"], "valid-de"), CorpusError, "is empty"),
        "checkpoints": (safe_load, CheckpointError),
        "checkpoints, old format": (safe_load, CheckpointError),
        "binarised data, idx": (binarised, InputError),
        "binarised data, bin": (binarised, InputError),
        "tables of papers": (all_of(papers.read), ValueError),
    }.items()
}


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """Draw content that is cut, flipped, repeated or replaced in some places, or anything."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.binary(max_size=60))
    content = valid
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 40)))
        tokens = [b"", b"\x00", b"\xff", b'"', b"{", b"}", b"[", b"]", b"null", b"-1", b"1e999", b"NaN", b"\t", b"\n"]
        pieces = st.sampled_from([*tokens, b"true", b'"x"', b"{}", b"[]", LONG, content[start:end] * 2])
        content = content[:start] + draw(pieces | st.binary(max_size=4)) + content[end:]
    return content


def check(reader: Reader, folder: Path, content: bytes) -> None:
    """Read a file with this content; let only errors pass that name it, and the line, in their message."""
    path = reader.place(folder)
    path.write_bytes(content)
    error = raised(lambda: reader.read(path), reader.errors)
    name = path.name.rpartition(".")[0] or path.name
    assert error is None or name in str(error), f"the message does not name the file: {error!r}"
    assert not isinstance(error, UnicodeError), f"the message is Python's: {error!r}"
    if error is not None and reader.whole is not None and not re.search(reader.whole, str(error)):
        assert re.search(rf"{re.escape(path.name)}:\d", str(error)), f"the message does not name the line: {error!r}"


def raised(call: Callable[[], Any], errors: tuple[type[Exception], ...]) -> Exception | None:
    """Return the error of a call if it is one of these; others are not caught."""
    try:
        call()
    except errors as error:
        return error
    return None


SAME = settings(
    max_examples=20, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


def fuzz(reader: Reader, judge: Callable[[bytes], None], examples: int) -> None:
    """Judge content that is hostile or damaged, and this number of drawn contents."""

    @settings(SAME, max_examples=examples)
    @given(damaged(reader.content))
    def reads(content: bytes) -> None:
        judge(content)

    beginning = reader.content[: len(reader.content) // 2]
    common = (b"", DEEP, b'{"a": ' * 50_000, LONG, b"\n", b"\xff\xfe" + reader.content, beginning)
    for content in (*common, *reader.hostile):
        judge(content)
    reads()


@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_read_and_damaged_files_are_named(name: str, tmp_path: Path) -> None:
    path = READERS[name].place(tmp_path)
    path.write_bytes(READERS[name].content)
    assert READERS[name].read(path) is not None
    fuzz(READERS[name], lambda content: check(READERS[name], tmp_path, content), 20)


@pytest.mark.parametrize("name", READERS)
def test_no_reader_runs_code(name: str, tmp_path: Path) -> None:
    for content in malicious(tmp_path / "mark").values():
        check(READERS[name], tmp_path, content)
        assert not (tmp_path / "mark").exists()


# -- the laws can fail


def careless(read: Callable[[Path], Any], file: str, *errors: type[Exception]) -> Reader:
    return Reader(read, errors, None, (), file, b"", {})


def test_a_reader_that_runs_code_is_noticed(tmp_path: Path) -> None:
    trusting = careless(lambda path: pickle.loads(path.read_bytes()), "a.pkl", ValueError)
    check(trusting, tmp_path, malicious(tmp_path / "mark")["pickle"])
    assert (tmp_path / "mark").exists()


def test_a_reader_with_another_error_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        check(careless(lambda path: json.loads(path.read_text())["data"], "a.json", CorpusError), tmp_path, b"{}")
    with pytest.raises(AssertionError, match="does not name the file"):
        check(careless(lambda path: json.loads(path.read_text()), "a-file.json", ValueError), tmp_path, b"{")
