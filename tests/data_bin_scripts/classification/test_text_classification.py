"""Test prepare_text_classification.py with published formats, the user's own files, word vectors and bad input."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tracemalloc
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import prepare_text_classification
import pytest
from classification import glove
from classification.words import splitter, vocabulary
from corpora.errors import CorpusError
from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset
from safetensors.numpy import load_file
from support_scripts import SCRIPTS, script

WORDS = "a good film with great songs|a bad film with poor songs|the cat sat here|stocks fell today".split("|")
LABELS = ("up", "down", "pets", "money")


def rows(number: int) -> list[tuple[str, str]]:
    return [(f"{WORDS[i % 4]} number {i % 7}", LABELS[i % 4]) for i in range(number)]


def own_files(folder: Path, ending: str = "tsv", number: int = 80) -> Path:
    """Write a folder with four classes in one of the formats."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", number), ("dev", 12), ("test", 16)):
        path = folder / f"{split}.{ending}"
        if ending == "jsonl":
            text = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows(count))
        else:
            mark, quote = {"tsv": ("\t", ""), "csv": (",", '"')}[ending]
            text = f"text{mark}label\n" + "".join(f"{quote}{t}{quote}{mark}{label}\n" for t, label in rows(count))
        path.write_text(text, encoding="utf-8")
    return folder


def run(*arguments: Any) -> int:
    return prepare_text_classification.main([str(argument) for argument in arguments])


def prepared(output: Path) -> tuple[dict[str, Any], list[list[str]], list[str]]:
    """Return the record, the words of the test set and its labels, as fairseq reads them."""
    words, labels = (
        Dictionary.load(str(output / "input0" / "dict.txt")),
        Dictionary.load(str(output / "label/dict.txt")),
    )
    items = load_indexed_dataset(str(output / "input0" / "test"), words)
    classes = load_indexed_dataset(str(output / "label" / "test"), labels)
    record = json.loads((output / "glue.json").read_text(encoding="utf-8"))
    return record, [words.string(item).split() for item in items], [labels.string(label) for label in classes]


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_files_of_ones_own(tmp_path: Path, ending: str) -> None:
    data, output = own_files(tmp_path / "data", ending), tmp_path / "out"
    assert run("--data", data, "--output", output) == 0
    record, texts, labels = prepared(output)
    assert [" ".join(text) for text in texts] == [text for text, _ in rows(16)]
    assert labels == [label for _, label in rows(16)]
    assert record["labels"] == sorted(LABELS)
    assert {split: facts["items"] for split, facts in record["splits"].items()} == {
        "train": 80,
        "valid": 12,
        "test": 16,
    }
    assert record["splits"]["test"]["longest"] == max(len(text.split()) for text, _ in rows(16)) + 1


def test_pairs_and_named_columns(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        lines = [{"q": "who sat here", "s": f"the cat sat {i}", "y": i % 2} for i in range(20)]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    output = tmp_path / "out"
    assert run("--data", tmp_path, "--output", output, "--text", "q", "--pair", "s", "--label", "y") == 0
    record, texts, _ = prepared(output)
    assert record["pair"]
    assert texts[0] == "who sat here".split()
    second = load_indexed_dataset(str(output / "input1" / "test"), None)
    assert len(second[0]) == 5
    assert record["splits"]["test"]["longest"] == 3 + 4 + 3  # <s> question </s> sentence </s>


def test_long_texts_are_cut(tmp_path: Path) -> None:
    data, output = own_files(tmp_path / "data"), tmp_path / "out"
    assert run("--data", data, "--output", output, "--longest", 8) == 0
    record, texts, _ = prepared(output)
    assert max(map(len, texts)) == 7
    assert record["splits"]["test"]["cut"] == sum(len(text.split()) > 7 for text, _ in rows(16))


def test_a_missing_validation_set_is_held_out_from_training(tmp_path: Path) -> None:
    data, output = own_files(tmp_path / "data"), tmp_path / "out"
    (data / "dev.tsv").unlink()
    assert run("--data", data, "--output", output, "--valid-part", 0.25) == 0
    record, texts, _ = prepared(output)
    counts = {split: facts["items"] for split, facts in record["splits"].items()}
    assert counts["train"] + counts["valid"] == 80
    assert 8 < counts["valid"] < 32
    assert len(texts) == 16


# --- published formats


def imdb(folder: Path) -> Path:
    """Write an archive like IMDB's."""
    path = folder / "aclImdb_v1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for split in ("train", "test"):
            for number in range(40):
                label = ("pos", "neg")[number % 2]
                text = f"A {'great' if label == 'pos' else 'poor'} film.<br /><br />It's number {number}.".encode()
                member = tarfile.TarInfo(f"aclImdb/{split}/{label}/{number}_7.txt")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
    return folder


def test_imdb_from_its_archive(tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert run("--task", "imdb", "--data", imdb(tmp_path), "--output", output, "--more-than", 0) == 0
    record, texts, labels = prepared(output)
    assert record["labels"] == ["neg", "pos"]
    assert labels.count("pos") == labels.count("neg") == 20
    assert texts[-1][:6] == ["A", "great", "film", ".", "It", "'s"]


def test_imdb_from_its_folder_is_the_same(tmp_path: Path) -> None:
    imdb(tmp_path)
    with tarfile.open(tmp_path / "aclImdb_v1.tar.gz") as archive:
        archive.extractall(tmp_path / "folder")  # the test wrote this archive itself
    for name, data in (("archive", tmp_path), ("unpacked", tmp_path / "folder")):
        assert run("--task", "imdb", "--data", data, "--output", tmp_path / name, "--more-than", 0) == 0
    assert prepared(tmp_path / "archive")[1:] == prepared(tmp_path / "unpacked")[1:]


def test_snli_leaves_out_pairs_without_agreement(tmp_path: Path) -> None:
    names = ("entailment", "neutral", "contradiction", "-")
    for split in ("train", "dev", "test"):
        lines = [
            {"gold_label": names[i % 4], "sentence1": "A man plays.", "sentence2": f"He sleeps {i}."} for i in range(40)
        ]
        with gzip.open(tmp_path / f"snli_1.0_{split}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in lines)
    output = tmp_path / "out"
    assert run("--task", "snli", "--data", tmp_path, "--output", output) == 0
    record = prepared(output)[0]
    assert record["labels"] == ["contradiction", "entailment", "neutral"]
    assert record["splits"]["test"]["items"] == 30


def test_glues_development_sets_are_scored(tmp_path: Path) -> None:
    folder = tmp_path / "MNLI"
    folder.mkdir()
    for name, count in (("train", 60), ("dev_matched", 12), ("dev_mismatched", 9)):
        labels = ("contradiction", "entailment", "neutral")
        lines = [f"{i}\tA man plays.\tA man sleeps.\t{labels[i % 3]}\n" for i in range(count)]
        (folder / f"{name}.tsv").write_text("index\tsentence1\tsentence2\tgold_label\n" + "".join(lines))
    output = tmp_path / "out"
    assert run("--task", "mnli", "--data", tmp_path, "--output", output) == 0
    counts = {split: facts["items"] for split, facts in prepared(output)[0]["splits"].items()}
    assert counts["test"] == 12
    assert counts["test-mismatched"] == 9
    assert counts["train"] + counts["valid"] == 60


# --- words and their vectors


def test_words_follow_the_penn_treebank() -> None:
    assert splitter("nltk")("I can't see the film's end, (really).") == (
        "I ca n't see the film 's end , ( really ) .".split()
    )
    assert splitter("spaces")("can't  see") == ["can't", "see"]


def test_frequent_words_with_a_vector_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("the 1 2\ncat 3 4\nrare 5 6\nunused 7 8\n", encoding="utf-8")
    counts = Counter({"the": 9, "cat": 4, "rare": 3, "unknown": 8, "<unk>": 50, "<mask>": 50})
    words, vectors = vocabulary(counts, 3, file)
    assert (words.symbols, words.counts) == (["the", "cat"], [9, 4])
    np.testing.assert_array_equal(vectors, [[1, 2], [3, 4]])
    assert words.ids() == {"the": 4, "cat": 5}
    assert vocabulary(counts, 3, None)[0].symbols == ["the", "unknown", "cat"]
    with pytest.raises(CorpusError, match="--more-than 0"):
        vocabulary(counts, 100, file)


def published(path: Path, lines: int, width: int = 300) -> Path:
    """Write a zip in the format of glove.840B.300d.zip with its traps: words with spaces, and a word twice."""
    traps = [", ", ". . .", "at name@domain.com", "the", "the"]
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("glove.840B.300d.txt", "w") as file,
    ):
        for number in range(lines):
            word = traps[number].strip() if number < len(traps) else f"word{number}"
            file.write(f"{word} {' '.join([f'{number % 97 / 100:.4f}'] * width)}\n".encode())
    return path


def test_the_published_format_and_its_traps(tmp_path: Path) -> None:
    vectors = glove.read(published(tmp_path / "glove.zip", 1000), {"the", ". . .", "word998", "absent"})
    assert set(vectors) == {"the", ". . .", "word998"}
    assert vectors["the"].shape == (300,)
    np.testing.assert_allclose(vectors["the"], 0.03)  # the first of two
    np.testing.assert_allclose(vectors["word998"], 998 % 97 / 100, rtol=1e-6)


def test_memory_depends_on_the_kept_words_alone(tmp_path: Path) -> None:
    file = published(tmp_path / "glove.zip", 20_000, width=50)
    tracemalloc.start()
    try:
        glove.read(file, {"the"})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_the_vectors_lie_beside_the_data_in_the_order_of_the_dictionary(tmp_path: Path) -> None:
    file, data = tmp_path / "vectors.txt", own_files(tmp_path / "data")
    file.write_text("number 1 1\nfilm 2 2\ncat 3 3\nabsent 4 4\n", encoding="utf-8")
    assert run("--data", data, "--output", tmp_path / "out", "--glove", file) == 0
    words = [line.split()[0] for line in (tmp_path / "out" / "input0" / "dict.txt").read_text().splitlines()]
    vectors = load_file(tmp_path / "out" / "word_vectors.safetensors")["vectors"]
    assert words == ["number", "film", "cat"]
    np.testing.assert_array_equal(vectors, [[1, 1], [2, 2], [3, 3]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "glove.txt: the file is empty"),
        (b"word\n", "glove.txt:1: the line is not a word followed by numbers"),
        (b"a 1 2 3\nb 1 2\n", "glove.txt:2: the line has 2 numbers"),
        (b"a 1 2\nthe 1 nan\n", "glove.txt:2: a number is infinite or NaN"),
        (b"a 1 2\nthe x 2\n", "glove.txt:2: the fields after the word must be numbers"),
    ],
)
def test_bad_vectors_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "glove.txt").write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        glove.read(tmp_path / "glove.txt", {"the"})


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    file = published(tmp_path / "glove.zip", 1000)
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(CorpusError, match=r"glove\.zip: the archive is damaged"):
        glove.read(file, {"the"})


# --- bad input


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "train.tsv",
            b"texts\tlabel\na\tb\n",
            "train.tsv:1: --text text: the file lacks this column; did you mean texts",
        ),
        ("train.tsv", b"text\tlabel\nab cd\tx\textra\n", "train.tsv:2: the line has 3 fields, but the header has 2"),
        ("train.csv", b'text,label\n"ab ""cd",x\n"ab" cd,x\n', "train.csv:3: the quotes are broken"),
        ("train.csv", b'text,label\nab,x\n"ab,x\n', "train.csv:3: the quotes are broken"),
        ("train.jsonl", b'{"text": "a", "label": 1}\n{"text": \n', "train.jsonl:2: the line is not JSON"),
        ("train.jsonl", b'{"text": "a", "label": 1}\n[1]\n', "train.jsonl:2: the line is not a JSON object"),
        ("train.jsonl", b'{"text": "a", "label": 1}\n{"label": 1}\n', "train.jsonl:2: --text text: "),
        ("train.tsv", b"text\tlabel\nab\tx\n\xff\xfe\tx\n", "train.tsv:3: this is not UTF-8 text"),
        ("train.tsv", b"text\tlabel\nab\tx\n  \ty\n", "train.tsv:3: the text has no visible characters"),
        ("train.tsv", b"text\tlabel\nab\tx\ncd\ty\nab\t\n", "train.tsv:4: the row has no label"),
        ("test.tsv", b"text\tlabel\nab\tunheard\n", "test.tsv:2: the label 'unheard' does not occur in"),
        ("train.tsv", b"text\tlabel\nab\tx\ncd\tx\n", "1 different labels"),
        ("train.tsv", b"", "no different"),
    ],
)
def test_bad_files_are_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, message: str
) -> None:
    data, output = own_files(tmp_path / "data"), tmp_path / "out"
    if name.startswith("train"):
        (data / "train.tsv").unlink()
    (data / name).write_bytes(content)
    assert run("--data", data, "--output", output) == 1
    error = capsys.readouterr().err
    assert message in error or (not content and "0 different labels" in error), error
    assert not output.exists()
    assert not output.with_name("out.partial").exists()


def test_bad_rows_can_be_left_out(tmp_path: Path) -> None:
    data, output = own_files(tmp_path / "data"), tmp_path / "out"
    with (data / "train.tsv").open("a", encoding="utf-8") as file:
        file.write("\tup\nsome text\t\n")
    assert run("--data", data, "--output", output, "--bad", "skip") == 0
    record = prepared(output)[0]
    assert record["splits"]["train"]["items"] == 80
    assert record["problems"] == {"empty text": {"left out": 1}, "no label": {"left out": 1}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "sst2", "--text", "title"), "Leave out these options if you give --task"),
        (("--task", "sst3"), "invalid choice"),
        (("--valid-part", "1.5"), "between 0 and 1"),
    ],
)
def test_options_without_effect_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit):
        run("--data", tmp_path, "--output", tmp_path / "out", *arguments)
    assert message in capsys.readouterr().err


def test_an_empty_folder_says_what_is_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--data", tmp_path, "--output", tmp_path / "out") == 1
    assert "no train.tsv, train.csv or train.jsonl" in capsys.readouterr().err
    assert run("--task", "imdb", "--data", tmp_path, "--output", tmp_path / "out") == 1
    assert "fetch.py imdb" in capsys.readouterr().err
    assert run("--task", "snli", "--data", tmp_path, "--output", tmp_path / "out") == 1
    assert "fetch.py snli" in capsys.readouterr().err


# --- the shell script


@pytest.mark.parametrize(
    ("task", "fetched", "data"),
    [
        ("imdb", "imdb --no-unpack", "imdb"),
        ("snli", "snli", "snli"),
        ("sst2", "glue/SST-2.zip", "glue"),
        ("mnli", "glue/MNLI.zip", "glue"),
    ],
)
def test_the_script_downloads_a_task_and_prepares_it(task: str, fetched: str, data: str) -> None:
    fetch, prepare = dry_run("--task", task, "--more-than", "2")
    assert f"fetch.py {fetched} --output data/raw" in fetch
    assert f"--task {task} --data data/raw/{data} --output data-bin/text-classification/{task} --more-than 2" in prepare
    listed = (SCRIPTS / "sources.tsv").read_text(encoding="utf-8")
    assert "\t".join(fetched.split()[0].split("/")) in listed


def test_the_script_downloads_word_vectors() -> None:
    glove, prepare = dry_run("--data", "mine", "--text", "title", "--glove", "published")
    assert "fetch.py glove --no-unpack --output data/raw" in glove
    assert (
        "--data mine --glove data/raw/glove/glove.840B.300d.zip --output data-bin/text-classification/mine" in prepare
    )


def dry_run(*words: str) -> list[str]:
    return script("text_classification", *words, "--dry-run").stdout.splitlines()
