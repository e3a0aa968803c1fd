"""Test prepare_text_classification.py with published formats, the user's own files, word vectors and bad input."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import prepare_text_classification as program
import prepared as shared
import pytest
from prepare_glue import Row
from safetensors.numpy import load_file
from shared import CorpusError
from support_scripts import hashes, symbols

WORDS = "a good film with great songs|a bad film with poor songs|the cat sat here|stocks fell today".split("|")
LABELS = ("up", "down", "pets", "money")


def rows(number: int) -> list[tuple[str, str]]:
    return [(f"{WORDS[i % 4]} number {i % 7}", LABELS[i % 4]) for i in range(number)]


def own_files(folder: Path, ending: str = "tsv") -> Path:
    """Write a folder with four classes in one of the formats."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", 80), ("dev", 12), ("test", 16)):
        mark, quote = {"tsv": ("\t", ""), "csv": (",", '"'), "jsonl": ("", "")}[ending]
        lines = [f"{quote}{text}{quote}{mark}{label}" for text, label in rows(count)]
        objects = [json.dumps({"text": text, "label": label}) for text, label in rows(count)]
        content = objects if ending == "jsonl" else [f"text{mark}label", *lines]
        (folder / f"{split}.{ending}").write_text("".join(f"{line}\n" for line in content))
    return folder


def run(data: Path, output: Path, *words: Any) -> dict[str, Any]:
    """Run the program and return the record, or an empty dictionary if it failed."""
    status = program.main([*map(str, ("--corpus", data, "--output", output, *words))])
    return json.loads((output / "glue.json").read_text()) if status == 0 else {}


def counts(record: dict[str, Any], name: str = "items") -> dict[str, int]:
    return {split: facts[name] for split, facts in record["splits"].items()}


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_files_of_ones_own(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "CHUNK", 5)
    data, output = own_files(tmp_path / "data", ending), tmp_path / "out"
    record = run(data, output)
    items = symbols(output / "input0" / "test", output / "input0" / "dict.txt")
    assert [" ".join(item) for item in items] == [f"{text} </s>" for text, _ in rows(16)]
    assert [label for label, _ in symbols(output / "label" / "test", output / "label" / "dict.txt")] == [*LABELS * 4]
    assert counts(record) == {"train": 80, "valid": 12, "test": 16}
    assert run(data, tmp_path / "two", "--workers", 2)
    assert hashes(output) == hashes(tmp_path / "two")
    record = run(data, tmp_path / "cut", "--length", 8)
    assert counts(record, "cut")["test"] == sum(len(text.split()) > 7 for text, _ in rows(16))


def test_pairs_and_held_out_rows(tmp_path: Path) -> None:
    lines = [{"q": "who sat here", "s": f"the cat sat {i}", "y": i % 2} for i in range(80)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    words = ("--text", "q", "--pair", "s", "--label", "y", "--valid-part", 0.25)
    record = run(tmp_path, tmp_path / "out", *words)
    assert record["splits"]["test"]["longest"] == 3 + 4 + 3  # <s> question </s> sentence </s>
    assert sum(counts(record).values()) == 80
    assert all(8 < counts(record)[split] < 32 for split in ("valid", "test"))
    assert counts(run(tmp_path, tmp_path / "two", *words, "--seed", 2)) != counts(record)


def test_phrases_of_a_sentence_of_sst_2_are_on_one_side(tmp_path: Path) -> None:
    sentences = [f"film {number} is good and plot {number} is poor" for number in range(60)]
    phrases = [phrase for text in sentences for phrase in (text, text[:-8], text[text.index("plot") :], "is good")]
    folder = tmp_path / "SST-2"
    folder.mkdir()
    for name, texts in (("train", phrases), ("dev", sentences[:3])):
        lines = [f"{text}\t{number % 2}\n" for number, text in enumerate(texts)]
        (folder / f"{name}.tsv").write_text("sentence\tlabel\n" + "".join(lines))
    (folder / "test.tsv").write_text("index\tsentence\n7\tfilm 1 is what ?\n")
    record = run(tmp_path, tmp_path / "out", "--task", "sst2", "--tokenizer", "spaces", "--more-than", 0)
    assert record["problems"] == {"phrase of both sides": {"left out": 60}}
    dictionary = tmp_path / "out" / "input0" / "dict.txt"
    sides = [
        {item[1] for item in symbols(tmp_path / "out" / "input0" / split, dictionary)} for split in ("train", "valid")
    ]
    assert counts(record)["train"] + counts(record)["valid"] == 180
    assert counts(record)["valid"] % 3 == 0
    assert not sides[0] & sides[1]
    assert (tmp_path / "out" / "glue.ids").read_text() == "7\n"  # for GLUE's server
    assert not record["splits"]["glue"]["labelled"]
    numbers = [Row("", "", (text,), "") for text in ("a b", "a b c", "c", "c d")]
    assert program.sentences(numbers) == [{1}, {1}, {1, 3}, {3}]


def test_imdb_from_its_archive_or_its_folder(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "aclImdb_v1.tar.gz", "w:gz") as archive:
        for split, number in ((split, number) for split in ("train", "test") for number in range(40)):
            label = ("pos", "neg")[number % 2]
            text = f"A {'great' if label == 'pos' else 'poor'} film.<br /><br />It's number {number}.".encode()
            member = tarfile.TarInfo(f"aclImdb/{split}/{label}/{number}_7.txt")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    record = run(tmp_path, tmp_path / "out", "--task", "imdb", "--more-than", 0)
    assert record["labels"] == ["neg", "pos"]
    assert record["splits"]["test"]["labels"] == {"neg": 20, "pos": 20}
    texts = symbols(tmp_path / "out" / "input0" / "test", tmp_path / "out" / "input0" / "dict.txt")
    assert texts[-1][:6] == ["A", "great", "film", ".", "It", "'s"]
    with tarfile.open(tmp_path / "aclImdb_v1.tar.gz") as archive:
        archive.extractall(tmp_path / "folder", filter="data")
    assert run(tmp_path / "folder", tmp_path / "two", "--task", "imdb", "--more-than", 0)
    assert hashes(tmp_path / "out" / "input0") == hashes(tmp_path / "two" / "input0")


def test_snli_and_glues_development_sets(tmp_path: Path) -> None:
    names = ("entailment", "neutral", "contradiction", "-")  # `-`: the annotators did not agree
    for split in ("train", "dev", "test"):
        lines = [{"gold_label": names[i % 4], "sentence1": "A man.", "sentence2": f"He {i}."} for i in range(40)]
        content = "".join(json.dumps(row) + "\n" for row in lines)
        (tmp_path / f"snli_1.0_{split}.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    assert counts(run(tmp_path, tmp_path / "snli", "--task", "snli"))["test"] == 30
    for name, count in (("train", 60), ("dev_matched", 12), ("dev_mismatched", 9)):
        content = "".join(f"{i}\tA man plays.\tA man sleeps.\t{names[i % 3]}\n" for i in range(count))
        (tmp_path / f"{name}.tsv").write_text("index\tsentence1\tsentence2\tgold_label\n" + content)
    found = counts(run(tmp_path, tmp_path / "mnli", "--task", "mnli"))
    assert (found["test"], found["test-mismatched"], found["train"] + found["valid"]) == (12, 9, 60)


# --- words and their vectors


def test_frequent_words_with_a_vector_are_kept(tmp_path: Path) -> None:
    words = "I ca n't see the film 's end , ( really ) ."
    assert " ".join(program.splitter("nltk")("I can't see the film's end, (really).")) == words
    counts = Counter({"the": 9, "cat": 4, "rare": 3, "unknown": 8, "<unk>": 50, "<mask>": 50})
    file = tmp_path / "vectors.txt"
    file.write_text("the 1 2\ncat 3 4\nrare 5 6\nunused 7 8\n")
    assert program.vocabulary(counts, 3, None)[0].symbols == ["the", "unknown", "cat"]
    kept, vectors = program.vocabulary(counts, 3, file)
    assert (kept.symbols, kept.counts) == (["the", "cat"], [9, 4])
    np.testing.assert_array_equal(vectors, [[1, 2], [3, 4]])
    with pytest.raises(CorpusError, match="--more-than 0"):
        program.vocabulary(counts, 100, file)
    file.write_text("number 1 1\nfilm 2 2\ncat 3 3\nabsent 4 4\n")
    assert run(own_files(tmp_path / "data"), tmp_path / "out", "--glove", file)
    stored = load_file(tmp_path / "out" / "word_vectors.safetensors")["vectors"]
    np.testing.assert_array_equal(stored, [[1, 1], [2, 2], [3, 3]])  # in the order of dict.txt


def test_the_published_vectors_and_their_traps(tmp_path: Path) -> None:
    """Some words contain spaces, some occur twice, and some look like numbers."""
    words = [",", ". . .", "at name@domain.com", "the", "the", *(f"word{number}" for number in range(1000))]
    content = "".join(f"{word} {f'{n % 97 / 100:.4f} ' * 300}\n" for n, word in enumerate(words))
    with zipfile.ZipFile(tmp_path / "glove.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("glove.840B.300d.txt", content)
    vectors = program.read_vectors(tmp_path / "glove.zip", {"the", ". . .", "word998", "absent"})
    assert {word: vector.shape for word, vector in vectors.items()} == dict.fromkeys(
        (". . .", "the", "word998"), (300,)
    )
    np.testing.assert_allclose(vectors["the"], 0.03)  # the first of two
    (tmp_path / "glove.txt").write_text("a 1 2\nthe 1 nan\n")
    with pytest.raises(CorpusError, match=r"glove\.txt:2: a number is infinite or NaN"):
        program.read_vectors(tmp_path / "glove.txt", {"the"})
    (tmp_path / "glove.zip").write_bytes((tmp_path / "glove.zip").read_bytes()[:-200])
    with pytest.raises(CorpusError, match=r"glove\.zip: the archive is damaged"):
        program.read_vectors(tmp_path / "glove.zip", {"the"})


# --- bad input


def test_bad_rows_are_named_and_refused_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = own_files(tmp_path / "data")
    with (data / "train.tsv").open("a") as file:
        file.write("\tup\nsome text\t\nab cd\tup\textra\n")
    with (data / "test.tsv").open("a") as file:
        file.write("text\tunheard\n")
    assert not run(data, tmp_path / "out")
    error = capsys.readouterr().err
    assert "train.tsv:84: the row has 3 fields, but the header has 2" in error
    assert "test.tsv:18: the label 'unheard' does not occur in the training set" in error
    record = run(data, tmp_path / "out", "--bad", "skip")
    assert counts(record)["train"] == 80
    kinds = ("empty text", "fields", "no label", "unknown label")
    assert record["problems"] == {kind: {"left out": 1} for kind in kinds}
