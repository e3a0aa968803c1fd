"""Test recipes/translation_wmt18 with preset smoke on a folder of text, with Moses and fastBPE."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support_subwords import NEEDS_FASTBPE

from recipes.lib.command import main
from recipes.lib.invented import sentences
from recipes.lib.lines import read
from recipes.lib.report import RESULT
from recipes.translation_wmt18.__main__ import TRANSLATION

from .support import ROOT, printed

RUN = ROOT / "recipes" / "translation_wmt18" / "run.sh"
ENCODINGS = ["none", "shaw[clip=4]"]
ENVIRONMENT = {**os.environ, "VIRTUAL_ENV": sys.prefix, "PATH": f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"}


pytestmark = [NEEDS_FASTBPE, pytest.mark.usefixtures("forked_stages")]


def recipe(*words: str) -> tuple[int, str]:
    """Run the recipe in this process, and return its exit status and what it printed."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        output, status = printed(lambda arguments: main(TRANSLATION, arguments), list(words))
    return status, output + errors.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write text in English and in the invented language; one side is compressed with gzip."""
    corpus = tmp_path_factory.mktemp("text") / "my corpus"
    sentences.write(sentences.generate({"train": 300, "val": 11, "test": 13}, seed=1), corpus, ("en", "xx"))
    for path in list(corpus.glob("*.xx")):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    return corpus


@pytest.fixture(scope="module")
def finished(folder: Path, forked_stages: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of the recipe, and what it printed."""
    output = tmp_path_factory.mktemp("run") / "an output"
    words = ["--preset", "smoke", "--corpus", str(folder), "--target-lang", "xx", "--subwords", "fastbpe"]
    status, text = recipe(*words, "--pos-enc", ",".join(ENCODINGS), "--output", str(output))
    assert status == 0, text
    return output, text


def test_the_encodings_are_compared_on_the_raw_references(finished: tuple[Path, str], folder: Path) -> None:
    output, _ = finished
    rows = json.loads((output / RESULT).read_text(encoding="utf-8"))["results"]
    assert [row["encoding"] for row in rows] == ENCODINGS
    for row in rows:
        assert "tok:13a" in row["signature of BLEU"]
        assert row["words/s, training"] > 0
        assert row["words/s, translation"] > 0
        assert "fairseq-train" in row["command"]
    assert rows[0]["p"] is None
    assert 0 <= rows[1]["p"] <= 1
    assert rows[1]["parameters"] - rows[0]["parameters"] == 2 * 9 * 16  # two layers, 2 * 4 + 1 distances, 16 a head
    references = gzip.decompress((folder / "test.xx.gz").read_bytes())
    assert (output / "raw" / "test.xx").read_bytes() == references
    assert (output / "bleu.png").read_bytes().startswith(b"\x89PNG")
    report = (output / "report.md").read_text(encoding="utf-8")
    assert "| shaw[clip=4] |" in report
    assert "(bleu.png)" in report
    assert "Tokens per update: " in report
    assert "paired bootstrap test between the BLEU of a row" in " ".join(report.split())
    assert "pairs: train 300, valid 11, test 13" in report


def test_every_test_sentence_is_translated(finished: tuple[Path, str]) -> None:
    output, _ = finished
    for slug in ("none", "shaw.clip=4"):
        assert len(list(read(output / "translations" / f"{slug}.xx"))) == 13


def test_the_printed_command_translates_raw_text_as_the_recipe_did(finished: tuple[Path, str], tmp_path: Path) -> None:
    """The command works from any folder, and translates an empty line by an empty line."""
    output, text = finished
    command = next(line.strip() for line in text.splitlines() if line.strip().endswith("< FILE"))
    source = tmp_path / "test.en"
    source.write_bytes(b"\n" + (output / "raw" / "test.en").read_bytes())
    line = command.replace("< FILE", f"< {source.name}")
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    best = "none" if "--pos-enc none" in command else "shaw.clip=4"
    assert done.stdout == b"\n" + (output / "translations" / f"{best}.xx").read_bytes()


def test_a_finished_run_does_nothing_and_a_bad_corpus_fails(
    finished: tuple[Path, str], folder: Path, tmp_path: Path
) -> None:
    output, _ = finished
    words = ["--preset", "smoke", "--corpus", str(folder), "--target-lang", "xx", "--subwords", "fastbpe"]
    _, text = recipe(*words, "--pos-enc", ",".join(ENCODINGS), "--output", str(output))
    assert "All stages are already done" in text
    status, text = recipe(
        "--preset", "smoke", "--corpus", str(folder), "--stop-stage", "corpus", "--output", str(tmp_path / "new")
    )
    assert status == 2
    assert "train.de nor train.de.gz exists. The folder has the set train in these languages: en, xx" in text
    assert not list((tmp_path / "new").glob("raw*"))


def test_a_wrong_option_is_refused_before_the_text_is_read(tmp_path: Path) -> None:
    words = ["--preset", "smoke", "--pos-enc", "none,shaw[clp=4]", "--output", str(tmp_path / "new")]
    status, text = recipe(*words)
    assert status == 2
    assert "--pos-enc: there is no option clp; did you mean clip?" in text
    assert "] 1/" not in text
