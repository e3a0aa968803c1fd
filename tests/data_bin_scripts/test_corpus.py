"""Test prepare_corpus.py: shards as fairseq reads them, the same bytes however it runs, and what it refuses."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from backports import zstd
from corpora import documents as reading
from corpora import sentences
from corpora.learn import factors
from support_corpora import Corpora, documents, gpt2, items, text
from support_scripts import hashes, kill_until_it_ends

pytest_plugins = ["support_corpora"]


def lines(shard: Path, split: str = "train") -> list[str]:
    """Return the sentences of a shard of SentencePiece pieces; documents end with an empty one."""
    return ["".join(item[:-1]).replace("\u2581", " ").strip() for item in items(shard, split)]


def test_every_document_is_whole_in_one_shard(corpora: Corpora) -> None:
    assert corpora.learn(*corpora.both(), "--tasks", 3).status == 0
    shards = [lines(corpora.output / f"shard{number:05d}") for number in range(3)]
    texts = [tuple("\n".join(shard).removesuffix("\n").split("\n\n")) for shard in shards]
    written = Counter(part.strip("\n") for shard in texts for part in shard)
    assert written == Counter("\n".join(document) for document in documents(60))
    assert all(shards)
    valid = lines(corpora.output / "shard00000", "valid")
    assert "\n".join(valid).rstrip("\n") == text(documents(5, seed=1)).rstrip("\n")  # in the order of the file
    record = corpora.record()
    assert record["counts"]["train"]["documents"] == 60
    assert record["counts"]["train"]["sentences"] == 180


def test_the_bytes_are_those_of_fairseq_and_of_earlier_versions(corpora: Corpora, tmp_path: Path) -> None:
    from fairseq.data import Dictionary, data_utils
    from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

    words = ["--tokenizer", "gpt2", "--tokenizer-path", gpt2(tmp_path / "gpt2"), "--tasks", 2, "--longest", 20]
    assert corpora.run(*corpora.both(), *words).status == 0
    shard = corpora.output / "shard00001"
    assert hashes(shard)["train.bin"] == "73e4c4a2343283d5630edaec620d65b71ea3fbae174b9614f5f2300c23debb12"
    dataset = data_utils.load_indexed_dataset(str(shard / "train"), Dictionary.load(str(shard / "dict.txt")), "mmap")
    builder = MMapIndexedDatasetBuilder(str(tmp_path / "own.bin"), dtype=np.uint16)
    for number in range(len(dataset)):
        builder.add_item(dataset[number])
    builder.finalize(str(tmp_path / "own.idx"))
    for end in ("bin", "idx"):
        assert (tmp_path / f"own.{end}").read_bytes() == (shard / f"train.{end}").read_bytes()


@pytest.mark.parametrize("tokenizer", ["sentencepiece", "wordpiece"])
def test_processes_and_kills_do_not_change_the_bytes(corpora: Corpora, tokenizer: str) -> None:
    files = [corpora.write(f"{seed}.txt.gz", gzip.compress(text(documents(100, seed)).encode())) for seed in (1, 2)]
    words = ["--train", *files, "--valid-part", 0.1, "--tasks", 3, "--tokenizer", tokenizer, "--vocabulary", 90]
    assert corpora.run(*words).status == 0
    expected = hashes(corpora.output)
    other = [*words, "--workers", 2, "--output", corpora.folder / "other"]
    if tokenizer == "wordpiece":
        assert kill_until_it_ends(corpora.main, other) > 4
    else:  # sentencepiece cannot learn again in a fork
        assert corpora.main([*map(str, other)]) == 0
    assert hashes(corpora.folder / "other") == expected
    assert "is already complete" in corpora.run(*words).out
    assert "was not made from this text with these options" in corpora.run(*words, "--seed", 2).error


WIKI = "<doc id=1>\nTitle\n\nText.\n</doc>\n\n<doc id=2>\nMore\n</doc>\n"
PAGE = "<page><title>T</title><ns>{}</ns><revision><text>{}</text></revision>{}</page>"
MARKUP = "'''Bold''' {{Info|a}}[[File:x.png|y]] [[link|text]] [[Kategorie:Z]]&lt;ref&gt;note&lt;/ref&gt;\n{|\n|cell\n|}"
DUMP = '<mediawiki><siteinfo><namespaces><namespace key="14">Kategorie</namespace></namespaces></siteinfo>'
DUMP += PAGE.format(1, "Talk", "") + PAGE.format(0, "Old", "<redirect/>") + PAGE.format(0, MARKUP, "") + "</mediawiki>"


def tar(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.txt.xz", lzma.compress(b"a\r\nb\n \n\nc"), ["a b", "c"]),
        ("a.zst", zstd.compress(b'{"text": "a\\nb"}\n\n{"text": "c"}\n'), ["a b", "c"]),
        ("a", WIKI.encode(), ["Title Text.", "More"]),
        ("a", b"\n = A = \n\nx\n = = S = = \ny\n = B = \nz\n", ["= A = x = = S = = y", "= B = z"]),
        ("a.md", b"# Title\n\nx\n\ny\n", ["# Title x y"]),
        ("a.xml.bz2", bz2.compress(DUMP.encode()), ["Bold text"]),
        ("a.tar", tar({"x": b"a\n\nb", "y": b"c\n"}), ["a b", "c"]),
    ],
)
def test_the_kind_of_documents_is_detected(tmp_path: Path, name: str, content: bytes, texts: list[str]) -> None:
    (tmp_path / name).write_bytes(content)
    found = reading.documents(tmp_path / name)
    assert [" ".join(" ".join(document.text).split()) for document in found] == texts


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.gz", gzip.compress(os.urandom(9999))[:-9], "a.gz:"),
        ("a.tar", tar({"x": b"a", "y": b"b\n\xff"}), "a.tar/y:2: the file holds bytes"),
        ("a.tar", tar({"x": b"a" * 99_000})[:-50_000], "a.tar:"),
        ("a.xml", DUMP[:-20].encode(), "a.xml:4: the dump is damaged"),
    ],
)
def test_bad_files_are_named_with_their_line(corpora: Corpora, name: str, content: bytes, message: str) -> None:
    corpora.write(f"train/{name}", content)
    valid = corpora.write("valid", "x\n")
    words = ["--tokenizer", "gpt2", "--tokenizer-path", gpt2(corpora.folder / "gpt2")]
    ended = corpora.run("--train", corpora.folder / "train", "--valid", valid, *words)
    assert ended.status == 1
    assert str(corpora.folder / "train") in ended.error
    assert message in ended.error
    assert not corpora.output.exists()


def test_long_sentences_are_cut_before_a_word() -> None:
    begins = np.array([False] * 4 + [True, False])  # 4 begins a word, 5 continues it
    ids, sizes = sentences.items(np.array([4, 5, 4, 5, 5, 4, 5, 5, 5, 5]), np.array([5, 5]), begins, 4)
    assert ids.tolist() == [4, 5, 2, 4, 5, 5, 2, 4, 5, 5, 5, 2, 5, 2, 2]
    assert sizes.tolist() == [3, 4, 5, 2, 1]


def test_smaller_languages_are_repeated(corpora: Corpora) -> None:
    assert factors({"en": 800, "de": 100}, 0.5) == {"en": 1.0, "de": 8**0.5}
    corpora.write("text/en/a", text(documents(160)))
    corpora.write("text/de/a", text(documents(20, seed=1)))
    words = ["--train", corpora.folder / "text", "--languages", "--smoothing", 0.5, "--valid-part", 0.01, "--seed", 3]
    assert corpora.learn(*words, vocabulary=330).status == 0
    count = Counter(lines(corpora.output / "shard00000"))
    repeated = [count[document[0]] for document in documents(20, seed=1) if document[0] in count]
    assert {2, 3} == {*repeated}
    assert "With --languages" in corpora.learn("--train", corpora.folder / "text" / "en", *words[2:]).error


def wordpiece(folder: Path, *more: str) -> Path:
    folder.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz."
    names = ["[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters), *more]
    (folder / "vocab.txt").write_text("\n".join(names) + "\n")
    return folder


def test_a_vocabulary_says_whether_it_is_cased(corpora: Corpora) -> None:
    unknown = {}
    for name, more in (("uncased", ()), ("cased", ("K",))):
        words = ["--tokenizer", "wordpiece", "--tokenizer-path", wordpiece(corpora.folder / name, *more)]
        corpora.run(*corpora.both(), *words, output=corpora.folder / f"{name}.out")
        unknown[name] = corpora.record(corpora.folder / f"{name}.out")["counts"]["train"]["unknown_pieces"]
    assert unknown["uncased"] == 0 < unknown["cased"]  # other capitals are unknown
    (corpora.folder / "cased" / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    corpora.run(*corpora.both(), *words)
    assert corpora.record()["counts"]["train"]["unknown_pieces"] == 0


def test_a_tokenizer_of_another_script_is_refused(corpora: Corpora) -> None:
    foreign = corpora.write("greek", text([["αβγ δεζ " * 60]]))
    words = ["--tokenizer", "wordpiece", "--tokenizer-path", wordpiece(corpora.folder / "latin")]
    assert "pieces are unknown" in corpora.run("--train", foreign, "--valid", corpora.two()[1], *words).error
