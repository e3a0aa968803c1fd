"""Test prepare_text_classification.py with phrases of SST-2, IMDB's archive, and published word vectors."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import prepare_text_classification as program
import pytest
from prepare_glue import Row
from shared import CorpusError
from support_scripts import hashes, symbols


def run(data: Path, output: Path, *words: Any) -> dict[str, Any]:
    """Run the program and return the record, or an empty dictionary if it failed."""
    status = program.main([*map(str, ("--corpus", data, "--output", output, *words))])
    return json.loads((output / "glue.json").read_text()) if status == 0 else {}


def counts(record: dict[str, Any], name: str = "items") -> dict[str, int]:
    return {split: facts[name] for split, facts in record["splits"].items()}


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
    (tmp_path / "glove.zip").write_bytes((tmp_path / "glove.zip").read_bytes()[:-200])
    with pytest.raises(CorpusError, match=r"glove\.zip: the archive is damaged"):
        program.read_vectors(tmp_path / "glove.zip", {"the"})
