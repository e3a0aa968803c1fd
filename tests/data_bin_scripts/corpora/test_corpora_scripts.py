"""Test the scripts that fetch a corpus and prepare it."""

from __future__ import annotations

import bz2
import gzip
import json
import subprocess
import sys

import pytest
from support_corpora import documents, gpt2, text
from support_scripts import SCRIPTS, script

pytest_plugins = ["support_corpora"]
NAMES = ("wikipedia", "openwebtext", "c4", "bookscorpus")


def page(number: int, lines: list[str]) -> str:
    return (
        f"<page><title>{number}</title><ns>0</ns><id>{number}</id><revision><id>1</id>"
        f"<text>{' '.join(lines)}</text></revision></page>"
    )


def wikipedia() -> dict[str, bytes]:
    pages = "".join(page(number, lines) for number, lines in enumerate(documents(40)))
    dump = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">{pages}</mediawiki>'
    return {"enwiki-latest-pages-articles.xml.bz2": bz2.compress(dump.encode())}


def c4() -> dict[str, bytes]:
    rows = "\n".join(json.dumps({"text": "\n".join(lines), "url": "u"}) for lines in documents(40)).encode()
    names = ["c4-train.00000-of-01024", "c4-train.00001-of-01024", "c4-validation.00000-of-00008"]
    return {f"{name}.json.gz": gzip.compress(rows) for name in names}


@pytest.mark.parametrize("name", NAMES)
def test_help_and_dry_runs_need_nothing(tmp_path, name):
    result = script(name, "--help", folder=tmp_path)
    assert result.returncode == 0
    assert "prepare_" in result.stdout
    assert "--text-only" in result.stdout
    words = ["--text", "mine"] if name == "bookscorpus" else ["--fetch-limit", 2, "--fetch-from", "own"]
    result = script(name, "--dry-run", "--tokenizer", "gpt2", "--tasks", 4, *words, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    *fetched, prepared = result.stdout.splitlines()
    assert len(fetched) == {"bookscorpus": 0, "c4": 2}.get(name, 1)
    assert all("--from own" in line and "--limit" in line for line in fetched)
    assert "prepare_corpus.py --train" in prepared
    assert "--tokenizer gpt2 --tasks 4" in prepared
    assert ("--valid " if name == "c4" else "--valid-part 0.005") in prepared
    assert not list(tmp_path.iterdir())


def test_books_are_not_fetched_and_the_script_says_what_there_is(tmp_path):
    result = script("bookscorpus", "--tokenizer", "gpt2", folder=tmp_path)
    assert result.returncode == 1
    assert "BooksCorpus is no longer distributed. Give a folder of books with --text DIR" in result.stderr
    result = script("bookscorpus", "--help", folder=tmp_path)
    assert all(name in result.stdout for name in ("BookCorpusOpen", "Project Gutenberg", "PG-19"))


def test_a_tokenizer_is_wanted_before_anything_is_fetched(tmp_path):
    for name in NAMES:
        result = script(name, "--text", "x", folder=tmp_path)
        assert result.returncode == 1
        assert "error: --tokenizer is required: give gpt2, wordpiece or sentencepiece." in result.stderr


@pytest.mark.parametrize(("name", "published", "counts"), [("wikipedia", wikipedia, None), ("c4", c4, (80, 40))])
def test_a_run_from_published_files(tmp_path, name, published, counts):
    for file, content in published().items():
        path = tmp_path / "own" / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    words = ["--fetch-from", tmp_path / "own", "--tokenizer", "gpt2", "--tokenizer-path", gpt2(tmp_path / "gpt2")]
    words += ["--output", tmp_path / "out", *(["--fetch-limit", 2] if name == "c4" else ["--valid-part", 0.2])]
    result = script(name, *words, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    recorded = json.loads((tmp_path / "out" / "corpus.json").read_text())["counts"]
    documents_in = recorded["train"]["documents"], recorded["valid"]["documents"]
    assert documents_in == counts if counts else sum(documents_in) == 40


def test_peak_memory_counts_all_processes():
    inner = "import time; x = bytearray(150_000_000); time.sleep(0.8)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}]); sys.exit(3)"
    command = [sys.executable, SCRIPTS / "peak_memory.py", sys.executable, "-c", outer]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert 0.15 < float(result.stderr.split()[2]) < 0.4


def test_books_and_wikipedia_go_into_one_run(corpora):
    for number, lines in enumerate(documents(12)):
        corpora.write(f"books/{number}.txt", text([[line] for line in lines]))  # with blank lines
    dump = corpora.write("wiki.xml", bz2.decompress(next(iter(wikipedia().values()))))
    texts = [
        script(name, "--text", place, "--text-only", folder=corpora.folder).stdout.strip()
        for name, place in (("bookscorpus", corpora.folder / "books"), ("wikipedia", dump))
    ]
    assert texts == [f"file:{corpora.folder}/books", str(dump)]
    tokenizer = ["--tokenizer", "gpt2", "--tokenizer-path", gpt2(corpora.folder / "gpt2")]
    ended = corpora.run("--train", *texts, "--valid-part", 0.1, *tokenizer)
    assert ended.status == 0, ended.error
    counts = corpora.record()["counts"]
    assert counts["train"]["documents"] + counts["valid"]["documents"] == 12 + 40
