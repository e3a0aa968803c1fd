"""Test prepare_parallel.py: what the cleaning leaves out, the same bytes however it runs, and what it refuses."""

from __future__ import annotations

import hashlib
import os
import random
import stat
import subprocess
from pathlib import Path
from typing import Any

import prepare_parallel
import pytest
from parallel import parts
from support_scripts import DATA, SCRIPTS, Ended, Runs, hashes, kill_until_it_ends

GOOD = ("the dog ran .", "der Hund lief .")


def pairs(number: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return pairs of sentences, some of which are too long, unequal or repeated."""
    drawn = random.Random(seed)
    words = [(drawn.randint(0, 30), drawn.randint(1, 30)) for _ in range(number)]
    return [("a " * first + str(first), "ö\u200b" * second + str(drawn.randint(0, 9))) for first, second in words]


class Parallel(Runs):
    """Run prepare_parallel.py with valid and test sets of one pair."""

    def write(self, name: str, rows: list[tuple[Any, Any]], languages: tuple[str, str] = ("en", "de")) -> Path:
        for side, language in enumerate(languages):
            lines = [row[side] if isinstance(row[side], bytes) else row[side].encode() for row in rows]
            (self.folder / f"{name}.{language}").write_bytes(b"\n".join(lines) + b"\n")
        return self.folder / name

    def words(self, rows: list[tuple[Any, Any]]) -> list[object]:
        names = [self.write("train", rows), self.write("valid", [GOOD]), self.write("test", [GOOD])]
        flags = [word for split in names for word in (f"--{split.name}", split)]
        return ["--pair", "en-de", *flags]

    def clean(self, rows: list[tuple[Any, Any]], *words: object) -> Ended:
        return self.run(*self.words(rows), *words)

    def text(self, split: str) -> list[tuple[str, ...]]:
        sides = [(self.output / f"{split}.{code}").read_text().split("\n")[:-1] for code in ("en", "de")]
        return list(zip(*sides, strict=True))


@pytest.fixture
def parallel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Parallel:
    return Parallel(prepare_parallel.main, tmp_path, capsys)


@pytest.mark.parametrize(
    ("step", "pair", "words"),
    [
        ("encoding", (b"caf\xe9 .", "Kaffee ."), ()),
        ("encoding", ("a \ufffd", "b c"), ()),
        ("empty", ("a", " \u200b\ufeff"), ()),
        ("long", ("a " * 6, "b " * 6), ("--longest-words", 5)),
        ("ratio", ("a b c", "d"), ()),
        ("identical", ("a", "a\t"), ("--identical", "drop")),
        ("duplicate", (" the  dog ran\u200b.", GOOD[1]), ()),
    ],
)
def test_the_first_broken_rule_counts_and_names_the_line(
    parallel: Parallel, step: str, pair: tuple[Any, Any], words: tuple[object, ...]
) -> None:
    assert parallel.clean([GOOD, pair], *words).status == 0
    assert parallel.text("train") == [GOOD]
    assert f"| train | {step} | 1 | 2 |" in (parallel.output / "report.md").read_text()


def test_processes_and_kills_do_not_change_the_bytes(parallel: Parallel, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*map(str, parallel.words(pairs(7_000)))]
    assert parallel.run(*words).status == 0
    expected = hashes(parallel.output)
    monkeypatch.setattr(parts, "CHUNK", 1_000)
    assert parallel.run(*words, "--workers", 3, output=parallel.folder / "three").status == 0
    assert hashes(parallel.folder / "three") == expected
    killed = parallel.folder / "killed"
    assert kill_until_it_ends(parallel.main, [*words, "--workers", 2, "--output", killed]) > 4
    assert hashes(killed) == expected
    assert "is already complete" in parallel.run(*words).out
    assert "was not made from this text with these options" in parallel.run(*words, "--limit", 1).error


def test_newstest_comes_from_a_folder_or_from_sacrebleu(parallel: Parallel, monkeypatch: pytest.MonkeyPatch) -> None:
    from sacrebleu.dataset import DATASETS

    (parallel.folder / "eng-deu").mkdir()
    parallel.write("eng-deu/newstest2017", [GOOD], ("eng", "deu"))
    own = parallel.write("sacre", [("a &amp; b", "c &lt; d")])
    monkeypatch.setattr(DATASETS["wmt18"], "get_files", lambda pair: [f"{own}.en", f"{own}.de", "docids"])
    words = ["--pair", "en-de", "--train", parallel.write("train", [GOOD])]
    folder = ["--valid", "newstest2017", "--test", parallel.write("test", [GOOD]), "--newstest", parallel.folder]
    assert parallel.run(*words, *folder).status == 0
    assert parallel.text("valid") == [GOOD]
    published = ["--valid", parallel.write("valid", [GOOD]), "--test", "newstest2018"]
    parallel.output = parallel.folder / "published"
    assert parallel.run(*words, *published).status == 0
    assert parallel.text("test") == [("a & b", "c < d")]
    assert "sacreBLEU has no newstest2099" in parallel.run(*words, *published[:3], "newstest2099", "--check").error


@pytest.mark.skipif(not (DATA / "multi30k").is_dir(), reason="POSENC_DATA names no folder with Multi30k")
def test_multi30k_is_cleaned_to_the_same_bytes_as_ever(parallel: Parallel) -> None:
    names = [f"--train {DATA}/multi30k/train --valid {DATA}/multi30k/val --test {DATA}/multi30k/test_2016_flickr"]
    assert parallel.run("--pair", "en-cs", *names[0].split(), "--workers", 2).status == 0
    text = b"".join(
        (parallel.output / f"{split}.{code}").read_bytes() for split in ("train", "valid") for code in ("en", "cs")
    )
    assert hashlib.sha256(text).hexdigest() == "28e9a0c6efea9d4511b2419b7a52287d7cb407de9c99b7e9008ad4033648510d"


def test_wmt18_checks_fetches_and_cleans(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    command = [SCRIPTS / "prepare_wmt18.sh", "--pair", "en-cs", "--raw", "R", "--output", "O", "--workers", "2"]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    check, fetch, clean = subprocess.run(
        command, env=path, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert check == f"{clean} --check"
    assert fetch.endswith("wmt18/training-parallel-nc-v13.tgz --output R")
    assert "R/wmt18/training-parallel-europarl-v7/europarl-v7.cs-en " in clean
    assert clean.endswith("--test newstest2018 --workers 2 --output O")
    wrong = subprocess.run([*command[:2], "en-fr"], env=path, capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (1, "")
