"""Every reader of a file meets damaged, invented or malicious content: it reads it or names the file, and no code runs.

tests/integration/test_no_code.py holds the same law for every command that loads a checkpoint.
"""

from __future__ import annotations

import io
import json
import pickle
import re
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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

from fairseq_posenc import compat
from fairseq_posenc.analysis.report import page, runs, tables
from fairseq_posenc.analysis.results import ResultsError
from fairseq_posenc.compat import CheckpointError, safe_load
from fairseq_posenc.core.reading import NotTextError, read_utf8
from fairseq_posenc.core.refusal import InputError
from fairseq_posenc.core.training_log import read_losses
from fairseq_posenc.data import answers, question_pieces, words
from fairseq_posenc.data import questions as question_data
from fairseq_posenc.data import spans as span_data
from fairseq_posenc.encodings import StackShape
from fairseq_posenc.encodings.building import build
from fairseq_posenc.hub import folder as hub
from fairseq_posenc.hub import tokenizer
from fairseq_posenc.papers import reading as papers
from fairseq_posenc.tasks.sentence_prediction import PosEncSentencePredictionTask
from recipes.lib import encodings
from recipes.lib.runs import read_mark

compat.apply()


@dataclass(frozen=True)
class Reader:
    """Describe a reader of a file.

    Args:
        read: Function that reads a file to its end.
        name: Name of the file.
        valid: Valid content.
        errors: Errors whose message names the file.
        whole: Pattern of the messages about the whole file. All other messages must name a line. None if the messages
            of this reader need not name lines, because lines mean nothing in the file.
        others: Valid contents of other files that the reader needs, by name.
        hostile: Contents that were made for this reader.
    """

    read: Callable[[Path], Any]
    name: str
    valid: str | bytes
    errors: tuple[type[Exception], ...]
    whole: str | None = None
    others: Mapping[str, str | bytes] = field(default_factory=dict)
    hostile: tuple[bytes, ...] = ()

    @property
    def content(self) -> bytes:
        return self.valid.encode() if isinstance(self.valid, str) else self.valid

    def place(self, folder: Path) -> Path:
        """Write the files that the reader needs, and return the path of the file that it reads."""
        path = folder / "run" / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, content in self.others.items():
            (path.parent / name).write_bytes(content.encode() if isinstance(content, str) else content)
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
LOG = '2026 | INFO | train_inner | {"loss": "5.1", "wps": "40", "num_updates": "10"}\n'
LOG += '2026 | INFO | valid | {"valid_loss": "5.2", "valid_num_updates": "10"}\n'
SOURCES = "\t".join(fetch.COLUMNS) + "\nglue\ta.zip\thttps://example.org/a.zip\t\t5\tfree\tno remark\n"
COLUMNS = ("text", "", "label")
ROWS = "text\tlabel\ngood film\t1\nbad film\t0\n"
ANSWERS = "2\tw0 w1\tw0 _\n3\tw1 w1 w0\tw1 _ w0\n"
SYMBOLS = Dictionary()
for number in range(2):
    SYMBOLS.add_symbol(f"w{number}")
SPANS = {"spans.json": json.dumps({"longest": 8, "dictionary": 6, "splits": {"train": {}}})}
XNLI = "Yes.\tNo.\tcontradiction\nA.\tB.\tneutral\n"
LANGUAGES = "language\tgold_label\tsentence1\tsentence2\nde\tneutral\tEins.\tZwei.\nen\tentailment\tOne.\tTwo.\n"
WIKI = '<doc id="1" url="u" title="A">\nA\n\nText of A.\n</doc>\n<doc id="2">\nB\n</doc>\n'
DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">
 <siteinfo><namespaces><namespace key="6">Datei</namespace></namespaces></siteinfo>
 <page><title>X</title><ns>0</ns><revision><text>{{Box|a={{b}}}} [[Datei:B.jpg|x]] ''A'' &lt;ref&gt;Q&lt;/ref&gt;
{| class="x"
| Zelle
|}</text></revision></page>
</mediawiki>
"""
PAPER = """paper = "diet"
table = "1"
unit = "BLEU"
keys = ["row", "encoding"]
columns = ["dev"]
rows = [["Ours", "t5", 84.10]]
conditions = { model = "base" }
"""
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
PIECES = {
    "version": "1.0", "added_tokens": [{"id": 0, "content": "<unk>", "special": True}], "normalizer": None,
    "pre_tokenizer": LEVEL, "decoder": LEVEL, "model": {"type": "BPE", "vocab": {"<unk>": 0, "a": 1}, "merges": []},
}  # fmt: skip
PIECES["added_tokens"][0] |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)  # type: ignore
PAIRS = "#version: 0.2\na b\nab c\n"
ENCODER = {name: number for number, name in enumerate(["a", "b", "c", "ab", "abc"])}
BERT = {"model": {"vocab": {"[PAD]": 0, "a": 1}}, "added_tokens": [{"content": "b", "id": 2}]}

#: Matches no message.
NEVER = r"(?!)"

READERS: dict[str, Reader] = {
    "plain text": Reader(read_utf8, "a.txt", "a\nb\n", (NotTextError,), NEVER),
    "lists of sources": Reader(all_of(fetch.read), "sources.tsv", SOURCES, (CorpusError, NotTextError), NEVER,
        hostile=(SOURCES.replace("5", "5" * 5000).encode(), SOURCES.replace("a.zip", "{0..999999999}.zip").encode()),
),
    "SQuAD and CMRC": Reader(
        lambda path: question_files.read(path, []), "train.json", json.dumps(SQUAD), (CorpusError,)
    ),
    "GLUE": Reader(
        all_of(glue.read, glue.TASKS["SST-2"], "train"),
        "train.tsv", "sentence\tlabel\ngood\t1\nbad\t0\n", (CorpusError,), "is empty",
    ),
    "classification, tsv": Reader(
        all_of(classification.read, *COLUMNS), "train.tsv", ROWS, (CorpusError,), NEVER
    ),
    "classification, csv": Reader(
        all_of(classification.read, *COLUMNS), "train.csv", ROWS.replace("\t", ","), (CorpusError,), NEVER
    ),
    "classification, jsonl": Reader(
        all_of(classification.read, *COLUMNS),
        "train.jsonl", '{"text": "a b", "label": 1}\n' * 2, (CorpusError,), NEVER,
    ),
    "word vectors": Reader(
        lambda path: classification.read_vectors(path, ["a"]), "glove.txt", "a 1.0 2.0\nb 3 4\n", (CorpusError,),
        "is empty",
    ),
    "results": Reader(report_of, "results.json", json.dumps(RESULT), (ResultsError,)),
    "logs of training": Reader(log_of, "logs/a.train.log", LOG, (ResultsError,)),
    "dictionaries": Reader(
        lambda path: Dictionary.load(str(path)), "dict.txt", "a 5\nb 3\n", (ValueError,), "Duplicate"
    ),
    "words of questions": Reader(
        question_data.read_surface, "surface.jsonl", '{"unknown": ["x"], "references": ["a?"]}\n', (ValueError,), NEVER
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
    "marks of steps": Reader(read_mark, "train:a", "hash\n3\nabc\nfairseq-train\n\n", ()),
    "examples": Reader(
        lambda path: answers.read(path, SYMBOLS, "encoder"), "test.tsv", ANSWERS, (CheckpointError,), NEVER,
        hostile=(LONG + b"\tw0\tw0\n", b"2\tw0\tw0\n2\tw0 w1\tw0\n"),
    ),
    "record of examples": Reader(
        lambda path: answers.record(path.parent),
        "answers.json", '{"kind": "encoder", "longest_input": 8, "longest_output": 9}', (CheckpointError,),
        hostile=(b'{"kind": "encoder", "longest_input": 1e999, "longest_output": 9}',),
    ),
    "windows": Reader(
        lambda path: span_data.rows(path.parent, "train"),
        "train.windows.npy", array([[0, 0, 4, 3, 0, 1]] * 2), (CheckpointError,), others=SPANS,
        hostile=(array(7), array([[0, 1]]), array(np.zeros((0, 6))), *map(header, (10**9, 10**12, 10**30))),
    ),
    "record of windows": Reader(
        lambda path: [span_data.splits(path.parent), span_data.record(path.parent)],
        "spans.json", SPANS["spans.json"], (CheckpointError,),
        hostile=(b'{"longest": 1e999, "splits": {}}', b'{"longest": 8, "splits": 8}'),
    ),
    "questions of windows": Reader(
        lambda path: span_data.questions(path.parent, "train"),
        "train.questions.jsonl", '{"id": "a", "question": "Who?", "context": 0, "answers": ["cat"]}\n' * 2,
        (CheckpointError,), NEVER,
    ),
    "contexts of windows": Reader(
        lambda path: span_data.contexts(path.parent, "train"),
        "train.contexts.jsonl", '{"text": "A cat.", "offsets": [[0, 1], [2, 6]]}\n' * 2, (CheckpointError,), NEVER,
    ),
    "record of questions": Reader(
        lambda path: question_pieces.load(path.parent),
        "questions.json", '{"pieces": "words", "cased": true}', (CheckpointError,),
    ),
    "tokenizer of questions": Reader(
        lambda path: question_pieces.load(path.parent).cut("a a"),
        "tokenizer.json", json.dumps(PIECES), (CheckpointError,),
        others={"questions.json": '{"pieces": "tokenizer", "units": "spaces"}'},
    ),
    "ids of GPT-2": Reader(
        lambda path: words.gpt2_pieces(["<s>", "1"], path), "encoder.json", json.dumps(ENCODER), (ValueError,)
    ),
    "record of items": Reader(record_of_items, "glue.json", '{"splits": {"train": {"longest": 7}}}', (ValueError,)),
    "tokenizers, json": Reader(tokenizer.read, "tokenizer.json", json.dumps(PIECES), (CheckpointError,)),
    "tokenizers, WordPiece": Reader(tokenizer.read, "vocab.txt", "[UNK]\na\n##b\n", (CheckpointError,)),
    "tokenizers, settings of WordPiece": Reader(
        lambda path: tokenizer.read(path.parent / "vocab.txt"),
        "tokenizer_config.json", '{"do_lower_case": true}', (CheckpointError,), others={"vocab.txt": "[UNK]\na\n##b\n"},
    ),
    "tokenizers, encoder.json": Reader(
        tokenizer.read, "encoder.json", json.dumps(ENCODER), (CheckpointError,), others={"vocab.bpe": PAIRS}
    ),
    "tokenizers, vocab.bpe": Reader(
        lambda path: tokenizer.read(path.parent / "encoder.json"),
        "vocab.bpe", PAIRS, (CheckpointError,), NEVER, {"encoder.json": json.dumps(ENCODER)},
    ),
    "records of downloads and preparations": Reader(
        read_json, "fetched.json", '{"wmt18/a.tgz": {"bytes": 5}}', (CorpusError,)
    ),
    "documents, dump": Reader(documents_of("dump"), "a.xml", DUMP, (CorpusError,), NEVER),
    "documents, WikiExtractor": Reader(documents_of("wiki"), "wiki_00", WIKI, (CorpusError,), NEVER),
    "documents, jsonl": Reader(
        documents_of("jsonl"), "a.jsonl", '{"text": "One.\\nTwo."}\n\n{"text": "Three."}\n', (CorpusError,), NEVER
    ),
    "documents, any": Reader(documents_of("auto"), "a.txt", "One.\nTwo.\n\nThree.\n", (CorpusError,), NEVER),
    "XNLI of XTREME": Reader(
        all_of(glue.read, glue.TASKS["XNLI"], "train"), "train-en.tsv", XNLI, (CorpusError,), "is empty"
    ),
    "XNLI, all languages": Reader(
        all_of(glue.read, glue.TASKS["XNLI"], "valid-de"),
        "xnli.dev.tsv", LANGUAGES, (CorpusError,), "is empty",
    ),
    "checkpoints": Reader(safe_load, "model.pt", written({"model": {"w": torch.ones(2)}}), (CheckpointError,)),
    "checkpoints, old format": Reader(
        safe_load, "model.pt", written({"w": torch.ones(2)}, _use_new_zipfile_serialization=False), (CheckpointError,)
    ),
    "binarised data, sizes": Reader(
        binarised, "train.idx", of_items("idx"), (InputError,), others={"train.bin": of_items("bin")}
    ),
    "binarised data, tokens": Reader(
        binarised, "train.bin", of_items("bin"), (InputError,), others={"train.idx": of_items("idx")}
    ),
    "tables of papers": Reader(all_of(papers.read), "diet_table1.toml", PAPER, (ValueError,)),
}  # fmt: skip


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


@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_read(name: str, tmp_path: Path) -> None:
    path = READERS[name].place(tmp_path)
    path.write_bytes(READERS[name].content)
    assert READERS[name].read(path) is not None


def fuzz(reader: Reader, judge: Callable[[bytes], None], examples: int) -> None:
    """Judge content that is hostile or damaged, and this number of drawn contents."""

    @settings(SAME, max_examples=examples)
    @given(damaged(reader.content))
    def reads(content: bytes) -> None:
        judge(content)

    beginning = reader.content[: len(reader.content) // 2]
    for content in (
        b"",
        DEEP,
        b'{"a": ' * 50_000,
        LONG,
        b"\n",
        b"\xff\xfe" + reader.content,
        beginning,
        *reader.hostile,
    ):
        judge(content)
    reads()


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_named(name: str, tmp_path: Path) -> None:
    fuzz(READERS[name], lambda content: check(READERS[name], tmp_path, content), 20)


@pytest.mark.parametrize("name", READERS)
def test_no_reader_runs_code(name: str, tmp_path: Path) -> None:
    for content in malicious(tmp_path / "mark").values():
        check(READERS[name], tmp_path, content)
        assert not (tmp_path / "mark").exists()


def test_a_reader_that_runs_code_is_noticed(tmp_path: Path) -> None:
    trusting = Reader(lambda path: pickle.loads(path.read_bytes()), "a.pkl", b"", (ValueError,))
    check(trusting, tmp_path, malicious(tmp_path / "mark")["pickle"])
    assert (tmp_path / "mark").exists()


#: Bytes of memory that a reader may need for a file, besides a multiple of the size of the file.
MEMORY = 16 << 20


def check_memory(reader: Reader, folder: Path, content: bytes) -> None:
    """Read a file with this content as `check` does; raise if this needs far more memory than the file has bytes."""
    tracemalloc.start()
    try:
        check(reader, folder, content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    limit = MEMORY + 200 * len(content)
    assert peak < limit, f"{reader.name}: a file of {len(content):,} bytes needed {peak:,} bytes of memory"


@pytest.mark.long
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_need_little_memory(name: str, tmp_path: Path) -> None:
    check(READERS[name], tmp_path, READERS[name].content)  # imports what the reader needs
    fuzz(READERS[name], lambda content: check_memory(READERS[name], tmp_path, content), 100)


def test_a_reader_that_needs_much_memory_is_noticed(tmp_path: Path) -> None:
    trusting = Reader(lambda path: np.load(path), "a.npy", array([[1]]), (ValueError,))
    with pytest.raises(AssertionError, match=r"needed 2,4\d\d,\d{3},\d{3} bytes"):
        check_memory(trusting, tmp_path, header(100_000_000) + b"1234")


def test_a_reader_with_another_error_is_noticed(tmp_path: Path) -> None:
    careless = Reader(lambda path: json.loads(path.read_text())["data"], "a.json", '{"data": 1}', (CorpusError,))
    with pytest.raises(KeyError):
        check(careless, tmp_path, b"{}")
    anonymous = Reader(lambda path: json.loads(path.read_text()), "a-file.json", "", (ValueError,))
    with pytest.raises(AssertionError, match="does not name the file"):
        check(anonymous, tmp_path, b"{")


@settings(SAME, max_examples=300)
@given(st.text(max_size=30) | st.from_regex(r"(clip|share|layers|init_std|x)=[-0-9a-z.:]{0,8}(,\w+=\w*)?"))
def test_options_of_encodings_are_used_or_refused(text: str) -> None:
    shape = StackShape(layers=2, heads=2, dim=8, max_length=8)
    error = raised(lambda: build("shaw", text, shape), (ValueError,))
    assert error is None or (str(error) and not isinstance(error, UnicodeError))


@settings(SAME, max_examples=200)
@given(st.text(max_size=30) | st.from_regex(r"(shaw|t5|\w{0,4})(\[\w{0,5}=?\w{0,4}\]?)?"))
def test_labels_of_encodings_are_read_or_refused(text: str) -> None:
    error = raised(lambda: encodings.parse(text), (InputError,))
    assert error is None or "--pos-enc" in str(error)


def test_curves_of_a_log_need_all_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG, encoding="utf-8")
    assert read_losses(tmp_path / "a.log").train == [(10, 5.1)]
