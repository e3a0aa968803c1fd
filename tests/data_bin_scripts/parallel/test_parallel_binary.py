"""Test binarise_parallel.py: it converts a prepared folder to subwords in the format of fairseq-train."""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import prepare_parallel
import pytest
from support_full_disk import no_larger_files
from support_parallel import Lines, lines
from support_scripts import SCRIPTS, hashes, kill_often, symbols, timed
from support_subwords import KINDS, NEEDS_FASTBPE

pytest.importorskip("fairseq")

import binarise_parallel
from parallel import binarise

from recipes.lib.translation import subwords

SUBWORDS = "recipes.lib.translation.subwords"
WORDS = {"en": "the old dog ran behind a green tree".split(), "de": "der alte Hund lief hinter einem Baum".split()}


def text(number: int, seed: int) -> Lines:
    drawn = random.Random(seed)
    source, target = (
        [" ".join(drawn.choices(WORDS[code], k=6)) + f" {line}" for line in range(number)] for code in ("en", "de")
    )
    return source, target


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    for seed, (split, number) in enumerate({"train": 120, "valid": 9, "test": 9}.items()):
        for code, side in zip(("en", "de"), text(number, seed), strict=True):
            (folder / f"{split}.{code}").write_text("".join(f"{line}\n" for line in side))
    words = [
        "--pair",
        "en-de",
        *(word for split in ("train", "valid", "test") for word in (f"--{split}", folder / split)),
    ]
    assert prepare_parallel.main([*map(str, words), "--output", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the programs in this process, because importing torch and fairseq would take most of their time."""
    from fairseq_cli import preprocess

    def called(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        words = command[command.index(SUBWORDS) :] if SUBWORDS in command else command
        monkeypatch.setattr(sys, "argv", words)
        try:
            subwords.main() if SUBWORDS in command else preprocess.cli_main()
        except SystemExit as error:
            print(error.code, file=sys.stderr)
            return subprocess.CompletedProcess(command, 1, "")
        return subprocess.CompletedProcess(command, 0, "")

    monkeypatch.setattr(binarise.tied, "run", called)


def run(prepared: Path, output: Path, *words: object) -> int:
    options = ["--text", prepared, "--output", output, "--vocabulary", 50, *words]
    return binarise_parallel.main([*map(str, options)])


def decoded(folder: Path, split: str, code: str) -> list[str]:
    """Return the pieces of each line as fairseq reads them, without </s>."""
    return [" ".join(item[:-1]) for item in symbols(folder / f"{split}.en-de.{code}", folder / f"dict.{code}.txt")]


def test_one_vocabulary_for_both_and_an_interrupted_run_goes_on(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(binarise, "_preprocess", interrupted)
        assert run(prepared, tmp_path / "out") == 130
    assert not (tmp_path / "out").exists()
    with monkeypatch.context() as patched:
        patched.setattr(binarise, "_subwords", interrupted)  # is not called again
        assert run(prepared, tmp_path / "out", "--workers", 2) == 0
    out = tmp_path / "out"
    assert (out / "dict.en.txt").read_bytes() == (out / "dict.de.txt").read_bytes()
    for code in ("en", "de"):
        texts = [line.replace(" ", "").replace("\u2581", " ").strip() for line in decoded(out, "valid", code)]
        assert texts == lines(prepared / f"valid.{code}")
    record = json.loads((out / "corpus.json").read_text())
    assert record["counts"]["train"] == {"pairs": 120, "left out": 0}
    assert run(prepared, out) == 0
    assert "out is already complete" in capsys.readouterr().out


@pytest.mark.usefixtures("in_process")
def test_a_run_killed_between_two_files_ends_with_the_same_bytes(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

    assert run(prepared, tmp_path / "whole") == 0
    finalize, files = MMapIndexedDatasetBuilder.finalize, []

    def killed(builder: MMapIndexedDatasetBuilder, path: str) -> None:
        files.append(path)
        if len(files) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        finalize(builder, path)

    with monkeypatch.context() as patch:
        patch.setattr(MMapIndexedDatasetBuilder, "finalize", killed)
        process = get_context("fork").Process(target=run, args=(prepared, tmp_path / "out"))
        process.start()
        process.join()
    assert process.exitcode == -signal.SIGKILL
    written = {path.suffix for path in (tmp_path / "out.partial").glob("work.*/corpus/valid.en-de.en.*")}
    assert written == {".bin"}
    monkeypatch.setattr(binarise, "_subwords", None)  # is not called again
    assert run(prepared, tmp_path / "out") == 0
    assert hashes(tmp_path / "out") == hashes(tmp_path / "whole")


@pytest.mark.long
def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(prepared: Path, tmp_path: Path) -> None:
    def start(name: str) -> subprocess.Popen[str]:
        words = ["--text", prepared, "--output", tmp_path / name, "--vocabulary", 50, "--workers", 2]
        return subprocess.Popen([sys.executable, SCRIPTS / "binarise_parallel.py", *map(str, words)], text=True)

    def same() -> None:
        assert hashes(tmp_path / "out") == hashes(tmp_path / "whole")

    moments = timed(start("whole"), tmp_path / "whole")
    kill_often(lambda: start("out"), tmp_path / "out", moments, 1, same)
    assert start("out").wait() == 0
    same()


def slow(folder: Path) -> list[str]:
    """Return a command that replaces the subword program; one of its processes sleeps, and then writes a file."""
    work = f"sleep 60 && touch {folder}/late & echo $! > {folder}/pids.new; echo $$ >> {folder}/pids.new"
    return ["sh", "-c", f"{work}; mv {folder}/pids.new {folder}/pids; wait"]


def alive(pid: str) -> bool:
    """Return whether a process runs; a zombie does not count."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_leaves_no_process(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    monkeypatch.setattr(binarise, "_command", lambda *_: slow(tmp_path))

    def heard() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes ignore SIGINT
        run(prepared, tmp_path / "out")

    process = get_context("fork").Process(target=heard)
    process.start()
    wait_until((tmp_path / "pids").exists)
    os.kill(process.pid or 0, end)
    process.join()
    pids = lines(tmp_path / "pids")
    assert len(pids) == 2
    wait_until(lambda: not any(map(alive, pids)))


@pytest.mark.usefixtures("in_process")
@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_processes_changes_no_byte(prepared: Path, tmp_path: Path, kind: str) -> None:
    for workers in (1, 2):
        assert run(prepared, tmp_path / f"{workers}", "--subwords", kind, "--workers", workers) == 0
    assert hashes(tmp_path / "1") == hashes(tmp_path / "2")


@NEEDS_FASTBPE
@pytest.mark.usefixtures("in_process")
def test_a_vocabulary_a_language(prepared: Path, tmp_path: Path) -> None:
    assert run(prepared, tmp_path / "out", "--subwords", "fastbpe", "--separate", "--vocabulary", 90) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"codes.en", "codes.de", "dict.en.txt", "dict.de.txt", "train.en-de.en.bin"} <= names
    assert "codes" not in names
    symbols = [{line.split()[0] for line in lines(tmp_path / "out" / f"dict.{code}.txt")} for code in ("en", "de")]
    assert "dog" in symbols[0]
    assert "dog" not in symbols[1]
    texts = [line.replace("@@ ", "") for line in decoded(tmp_path / "out", "test", "de")]
    assert texts == lines(prepared / "test.de")


@pytest.mark.parametrize("kind", KINDS)
def test_subwords_of_each_language_are_learned_on_its_own_text(prepared: Path, tmp_path: Path, kind: str) -> None:
    options = argparse.Namespace(raw=prepared, languages=["en", "de"], kind=kind, model_type="bpe", vocabulary=60)
    options.character_coverage = 1.0
    encoder, counts = subwords.learn(argparse.Namespace(**vars(options), separate=True), tmp_path)
    assert {name: count["all"] for name, count in counts.items()} == {"en": 60, "de": 60}
    names = {path.name for path in tmp_path.iterdir()}
    assert {"codes.en", "codes.de"} <= names if kind == "fastbpe" else {"model.en.model", "model.de.model"} <= names
    line = "der alte Hund"
    assert len(encoder("de")(line).split()) < len(encoder("en")(line).split())
    together, _ = subwords.learn(argparse.Namespace(**vars(options), separate=False), tmp_path)
    assert together("de")(line) == together("en")(line)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model-type", "bpe", "--subwords", "fastbpe"], "--model-type and --character-coverage are only for"),
        (["--character-coverage", "0.99", "--subwords", "fastbpe"], "are only for SentencePiece"),
        (["--character-coverage", "0.5"], "--character-coverage: 0.5 is not allowed. Give a number from 0.98 to 1."),
        (["--longest", "0"], "--longest: 0 is not allowed. Give at least 1."),
    ],
)
def test_what_is_wrong_is_said(
    prepared: Path, tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as status:
        run(prepared, tmp_path / "out", *words)
    assert status.value.code == 2
    assert message in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_another_folder_is_refused(prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(prepared, tmp_path / "out", "--text", "nowhere") == 1
    assert "--text nowhere: corpus.json is missing" in capsys.readouterr().err


@pytest.mark.usefixtures("in_process")
def test_a_vocabulary_that_the_text_has_not_is_refused(
    prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(prepared, tmp_path / "out", "--vocabulary", 60000) == 1
    assert "--vocabulary 60000: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("program", ["subwords", "fairseq-preprocess"])
def test_a_full_disk_is_named_and_the_run_continues_later(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], program: str
) -> None:
    called = binarise.tied.run

    def full(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        if command[0] != "fairseq-preprocess":
            return called(command, **options)
        return subprocess.CompletedProcess(command, 1, "Traceback\nOSError: [Errno 27] File too large\n")

    with monkeypatch.context() as patched, no_larger_files(3000 if program == "subwords" else 1 << 20):
        patched.setattr(binarise.tied, "run", full)
        assert run(prepared, tmp_path / "out") == 1
    path = rf"{tmp_path}/out.partial" + (r"/work\..*/subwords" if program == "subwords" else "")
    needs = r"needs more than [\d,]+ bytes, and [\d,]+ bytes are free in"
    assert re.search(rf"(?m)^error: {path}: the disk is full \(File too large\).* {needs}", capfd.readouterr().err)
    assert not (tmp_path / "out").exists()
    assert not [*tmp_path.rglob("*.partial/**/*.partial")]
    assert run(prepared, tmp_path / "out") == 0
