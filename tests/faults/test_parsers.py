"""Every reader of a file meets damaged and invented content: it reads it or names the file, and never anything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("fairseq")

import classification.glove
import classification.reading
import fetching.record
import fetching.sources
import glue.formats
import glue.reading
import parallel.sgm
import questions.reading
from corpora.errors import CorpusError
from fairseq.data import Dictionary
from fetching.errors import FetchError

from fairseq_posenc import compat
from fairseq_posenc.analysis.report import page, runs, tables
from fairseq_posenc.analysis.results import ResultsError
from fairseq_posenc.compat import CheckpointError
from fairseq_posenc.core import options
from fairseq_posenc.core.reading import NotTextError, read_utf8
from fairseq_posenc.core.training_log import read_losses
from fairseq_posenc.data import questions as question_data
from fairseq_posenc.encodings import StackShape
from fairseq_posenc.encodings.building import build
from fairseq_posenc.hub import folder as hub
from recipes.lib import encodings, stages
from recipes.lib.settings import read_preset
from recipes.lib.values import Refused

compat.apply()


@dataclass(frozen=True)
class Reader:
    """Describe a reader of a file.

    Args:
        read: Function that reads a file to its end.
        name: Name of the file.
        valid: Valid content.
        errors: Errors whose message names the file.
    """

    read: Callable[[Path], Any]
    name: str
    valid: str
    errors: tuple[type[Exception], ...]


def all_of(reader: Callable[..., Iterable[Any]], *arguments: Any) -> Callable[[Path], Any]:
    return lambda path: list(reader(path, *arguments))


def report_of(path: Path) -> Any:
    """Read a result and write everything that the command `report` writes."""
    found = runs.read_runs([path.parent])
    entries = [entry for run in found for entry in run.entries]
    return page.page(found), tables.to_csv(entries), tables.to_latex(entries)


def log_of(path: Path) -> Any:
    """Read a log as the report does, which names the file of any error."""
    (path.parents[1] / "result.json").write_text(json.dumps({"recipe": "demo", "results": []}), encoding="utf-8")
    return runs.read_runs([path.parents[1]])


SQUAD = {
    "data": [
        {
            "title": "t",
            "paragraphs": [
                {
                    "context": "A cat sat.",
                    "qas": [{"id": "1", "question": "Who?", "answers": [{"text": "cat", "answer_start": 2}]}],
                }
            ],
        }
    ]
}
RESULT = {
    "recipe": "translation_wmt18", "command": "run.sh", "commit": "abc", "seed": 1, "versions": {"python": "3.11"},
    "machine": {"cores": 2, "gpus": []}, "settings": {"target": "de"},
    "results": [{"encoding": "t5[share=none]", "BLEU": 27.5, "±": 0.5, "parameters": 65, "minutes": 1.5, "seeds": [1]}],
}  # fmt: skip
SGM = (
    '<srcset setid="x" srclang="any">\n<doc docid="a" genre="news">\n<p>\n<seg id="1">One &amp; two.</seg>\n'
    '<seg id="2">Three.</seg>\n</p>\n</doc>\n</srcset>\n'
)
LOG = '2026 | INFO | train_inner | {"loss": "5.1", "wps": "40", "num_updates": "10"}\n'
LOG += '2026 | INFO | valid | {"valid_loss": "5.2", "valid_num_updates": "10"}\n'
SOURCES = "\t".join(fetching.sources.COLUMNS) + "\nglue\ta.zip\thttps://example.org/a.zip\t\t5\tfree\tno remark\n"
COLUMNS = classification.reading.Columns("text", "", "label")
ROWS = "text\tlabel\ngood film\t1\nbad film\t0\n"
BERT = {"model": {"vocab": {"[PAD]": 0, "a": 1}}, "added_tokens": [{"content": "b", "id": 2}]}

READERS: dict[str, Reader] = {
    "plain text": Reader(read_utf8, "a.txt", "a\nb\n", (NotTextError,)),
    "lists of sources": Reader(fetching.sources.read, "sources.tsv", SOURCES, (FetchError,)),
    "SGM files": Reader(parallel.sgm.read, "newstest-src.en.sgm", SGM, (CorpusError,)),
    "SQuAD and CMRC": Reader(questions.reading.read, "train.json", json.dumps(SQUAD), (CorpusError,)),
    "GLUE": Reader(
        all_of(glue.reading.read, glue.formats.TASKS["SST-2"], "train"),
        "train.tsv", "sentence\tlabel\ngood\t1\nbad\t0\n", (CorpusError,),
    ),
    "classification, tsv": Reader(all_of(classification.reading.read, COLUMNS), "train.tsv", ROWS, (CorpusError,)),
    "classification, csv": Reader(
        all_of(classification.reading.read, COLUMNS), "train.csv", ROWS.replace("\t", ","), (CorpusError,)
    ),
    "classification, jsonl": Reader(
        all_of(classification.reading.read, COLUMNS), "train.jsonl", '{"text": "a b", "label": 1}\n' * 2, (CorpusError,)
    ),
    "word vectors": Reader(
        lambda path: classification.glove.read(path, ["a"]), "glove.txt", "a 1.0 2.0\nb 3 4\n", (CorpusError,)
    ),
    "results": Reader(report_of, "result.json", json.dumps(RESULT), (ResultsError,)),
    "logs of training": Reader(log_of, "logs/a.train.log", LOG, (ResultsError,)),
    "presets": Reader(read_preset, "a.toml", "seed = 1\n[train]\nlr = 0.5\n", (Refused,)),
    "dictionaries": Reader(lambda path: Dictionary.load(str(path)), "dict.txt", "a 5\nb 3\n", (ValueError,)),
    "words of questions": Reader(
        question_data.read_surface, "surface.jsonl", '{"unknown": ["x"], "references": ["a?"]}\n', (ValueError,)
    ),
    "settings of the Hub": Reader(
        lambda path: hub.read_config(path.parent), "config.json", '{"a": 1}', (CheckpointError,)
    ),
    "vocabularies, txt": Reader(
        lambda path: hub.read_vocabulary(path.parent), "vocab.txt", "[PAD]\na\n", (CheckpointError, NotTextError)
    ),
    "vocabularies, json": Reader(
        lambda path: hub.read_vocabulary(path.parent), "vocab.json", '{"<pad>": 0, "a": 1}', (CheckpointError,)
    ),
    "vocabularies of tokenizers": Reader(
        lambda path: hub.read_vocabulary(path.parent), "tokenizer.json", json.dumps(BERT), (CheckpointError,)
    ),
    "markers of stages": Reader(stages.read_marker, "train.done", '{"seconds": 3}', ()),
}  # fmt: skip

#: JSON that is nested too deeply for Python, and numbers that are too long for it.
DEEP, LONG = b"[" * 100_000, b"1" * 5_000


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
    """Read a file with this content; let only errors pass that name it in their message."""
    path = folder / "run" / reader.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    error = raised(lambda: reader.read(path), reader.errors)
    name = path.name.rpartition(".")[0] or path.name
    assert error is None or name in str(error), f"the message does not name the file: {error!r}"
    assert not isinstance(error, UnicodeError), f"the message is Python's: {error!r}"


def raised(call: Callable[[], Any], errors: tuple[type[Exception], ...]) -> Exception | None:
    """Return the error of a call if it is one of these; others are not caught."""
    try:
        call()
    except errors as error:
        return error
    return None


SAME = settings(
    max_examples=60, deadline=2000, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run" / READERS[name].name
    path.parent.mkdir(parents=True)
    path.write_text(READERS[name].valid, encoding="utf-8")
    assert READERS[name].read(path) is not None


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_named(name: str, tmp_path: Path) -> None:
    reader = READERS[name]

    @SAME
    @example(b"")
    @example(DEEP)
    @example(b'{"a": ' * 50_000)
    @example(LONG)
    @example(b"\xff\xfe" + reader.valid.encode())
    @example(reader.valid.encode()[: len(reader.valid) // 2])
    @given(damaged(reader.valid.encode()))
    def reads(content: bytes) -> None:
        check(reader, tmp_path, content)

    reads()


def test_a_reader_with_another_error_is_noticed(tmp_path: Path) -> None:
    careless = Reader(lambda path: json.loads(path.read_text())["data"], "a.json", '{"data": 1}', (CorpusError,))
    with pytest.raises(KeyError):
        check(careless, tmp_path, b"{}")
    anonymous = Reader(lambda path: json.loads(path.read_text()), "a-file.json", "", (ValueError,))
    with pytest.raises(AssertionError, match="does not name the file"):
        check(anonymous, tmp_path, b"{")


def test_a_record_of_downloads_is_read_or_named(tmp_path: Path) -> None:
    record = fetching.record.Record(tmp_path)
    valid = b"file\tsha256\tbytes\turl\tdate\na.zip\t" + b"0" * 64 + b"\t5\thttps://example.org/a.zip\t2026-01-01\n"

    @SAME
    @given(damaged(valid))
    def reads(content: bytes) -> None:
        (tmp_path / "fetched.tsv").write_bytes(content)
        error = raised(lambda: record.get(tmp_path / "a.zip"), (FetchError,))
        assert error is None or "fetched.tsv" in str(error)

    reads()


@settings(SAME, max_examples=300)
@given(st.text(max_size=30) | st.from_regex(r"(clip|share|layers|init_std|x)=[-0-9a-z.:]{0,8}(,\w+=\w*)?"))
def test_options_of_encodings_are_used_or_refused(text: str) -> None:
    shape = StackShape(layers=2, heads=2, dim=8, max_length=8)
    error = raised(lambda: build("shaw", options.parse(text), shape), (ValueError,))
    assert error is None or (str(error) and not isinstance(error, UnicodeError))


@settings(SAME, max_examples=200)
@given(st.text(max_size=30) | st.from_regex(r"(shaw|t5|\w{0,4})(\[\w{0,5}=?\w{0,4}\]?)?"))
def test_labels_of_encodings_are_read_or_refused(text: str) -> None:
    error = raised(lambda: encodings.parse(text), (Refused,))
    assert error is None or "--pos-enc" in str(error)


def test_curves_of_a_log_need_all_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG, encoding="utf-8")
    assert read_losses(tmp_path / "a.log").train == [(10, 5.1)]
