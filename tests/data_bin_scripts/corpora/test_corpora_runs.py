"""Test runs of the corpus pipeline: the same bytes with any workers, on clusters, and after a kill."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver, get_context
from pathlib import Path
from typing import ClassVar

import numpy as np
import prepare_corpus
import pytest
from corpora import cluster, counts, files, keys, partial, processes, sample, stages, tokenise
from corpora.errors import CorpusError
from filelock import FileLock
from support_corpora import Corpora, documents, gpt2, items, text, trained_on
from support_full_disk import no_larger_files
from support_readonly import read_only
from support_scripts import SCRIPTS, kill_often, timed

pytest_plugins = ["support_corpora"]
TASKS = 2


def words(folder: Path, files: int = 5) -> list[object]:
    """Write files of text, and return the options of a run that reads them."""
    (folder / "train").mkdir()
    for number in range(files):
        (folder / "train" / f"{number}.txt").write_text(text(documents(12, seed=number)))
    (folder / "valid.txt").write_text(text(documents(5, seed=99)))
    tokenizer = ["--tokenizer", "gpt2", "--tokenizer-path", gpt2(folder / "gpt2"), "--tasks", TASKS]
    return ["--train", folder / "train", "--valid", folder / "valid.txt", *tokenizer]


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> tuple[list[object], dict[str, str]]:
    """Return the options of a run, and the hashes of its output with one worker."""
    folder = tmp_path_factory.mktemp("plain")
    options = words(folder)
    assert prepare_corpus.main([*map(str, options), "--output", str(folder / "out")]) == 0
    record = json.loads((folder / "out" / "corpus.json").read_text())
    assert set(record) == {"counts", "languages", "options", "tokenizer", "identity"}
    return options, trained_on(folder / "out")


@pytest.fixture(scope="module")
def moments(plain, tmp_path_factory) -> tuple[float, float]:
    """Return when a run that is not killed begins its work and when it ends, in seconds after its start."""
    options, expected = plain
    output = tmp_path_factory.mktemp("timed") / "out"
    command = [sys.executable, SCRIPTS / "prepare_corpus.py", *options, "--workers", 2, "--output", output]
    seconds = timed(subprocess.Popen([*map(str, command)], text=True), output)
    assert trained_on(output) == expected
    return seconds


def test_neither_workers_nor_the_order_of_tasks_change_a_byte(corpora, plain, monkeypatch):
    options, expected = plain
    assert corpora.run(*options, "--workers", 3).status == 0
    assert trained_on(corpora.output) == expected
    ranks = stages.Local.get_incomplete_ranks
    monkeypatch.setattr(stages.Local, "get_incomplete_ranks", lambda self, **more: ranks(self, **more)[::-1])
    assert corpora.run(*options, output=corpora.folder / "backwards").status == 0
    assert trained_on(corpora.folder / "backwards") == expected


def test_the_seed_changes_the_order(corpora, plain):
    options, expected = plain
    assert corpora.run(*options, "--seed", 2).status == 0
    written = trained_on(corpora.output)
    assert written["shard00000/train.bin"] != expected["shard00000/train.bin"]
    assert written["shard00000/valid.bin"] == expected["shard00000/valid.bin"]


def test_a_file_for_each_task_or_one_for_all_are_the_same_documents(corpora):
    options = words(corpora.folder, files=1)  # fewer files than tasks: each task reads a part of the file
    assert corpora.run(*options).status == 0
    all_items = [tuple(item) for shard in range(TASKS) for item in items(corpora.output / f"shard{shard:05d}")]
    assert len(all_items) == 12 * 4
    assert corpora.record()["counts"]["train"]["documents"] == 12


def test_learning_gives_the_same_vocabulary_again(corpora):
    corpora.write("train.txt", text(documents(40)))
    for scheme, size in (("sentencepiece", 60), ("wordpiece", 90)):
        vocabularies = []
        for name in ("a", "b"):
            output = corpora.folder / f"{scheme}-{name}"
            options = ["--train", corpora.folder / "train.txt", "--valid-part", 0.2, "--tokenizer", scheme]
            assert corpora.run(*options, "--vocabulary", size, output=output).status == 0
            vocabularies.append(trained_on(output))
        assert vocabularies[0] == vocabularies[1]


class TestKilled:
    def start(self, corpora: Corpora, options: list[object]) -> subprocess.Popen[str]:
        command = [sys.executable, SCRIPTS / "prepare_corpus.py", *options, "--output", corpora.output]
        return subprocess.Popen(map(str, command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finished(self, corpora: Corpora) -> list[Path]:
        return sorted((corpora.folder / "out.partial" / "logs" / "tokenise" / "completions").glob("*"))

    def wait(self, ready, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < end
            time.sleep(0.02)

    def test_a_killed_run_goes_on_and_gives_the_same(self, corpora, plain):
        options, expected = plain
        process = self.start(corpora, options)
        self.wait(lambda: self.finished(corpora) or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = {path: path.stat().st_mtime_ns for path in self.finished(corpora)}
        tokens = corpora.folder / "out.partial" / "tokens"
        first = (tokens / "00000.ids").stat().st_mtime_ns if done else None
        assert not corpora.output.exists()
        corpora.write("out.partial/corpus/shard00000/train.bin.partial", "left by a task")
        seen = []
        original = stages.run

        def run(task, *more):
            if task.stage == "shard":
                seen.append({path: path.stat().st_mtime_ns for path in self.finished(corpora)})
                seen.append((tokens / "00000.ids").stat().st_mtime_ns)
            return original(task, *more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stages, "run", run)
            ended = corpora.run(*options)
        assert ended.status == 0, ended.error
        assert "continuing the interrupted run" in ended.out
        assert done.items() <= seen[0].items()  # not done again
        assert first in (None, seen[1])
        assert trained_on(corpora.output) == expected

    @pytest.mark.long
    @pytest.mark.parametrize("seed", range(4))
    def test_runs_killed_at_random_moments_give_the_same(self, corpora, plain, moments, seed):
        options, expected = plain

        def same() -> None:
            assert trained_on(corpora.output) == expected

        kill_often(lambda: self.start(corpora, [*options, "--workers", 2]), corpora.output, moments, seed, same)
        ended = corpora.run(*options)
        assert ended.status == 0, ended.error
        assert "continuing the interrupted run" in ended.out
        same()

    def test_a_run_killed_while_it_writes_its_identity_can_be_repeated(self, tmp_path):
        def killed() -> None:
            os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # only in the fork
            with partial.partial(tmp_path / "out", {}):
                pass

        process = get_context("fork").Process(target=killed)
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert (tmp_path / "out.partial" / "identity.json.partial").exists()
        with partial.partial(tmp_path / "out", {}) as folder:
            assert {path.name for path in folder.iterdir()} == {"lock", "identity.json"}

    def test_no_task_outlives_its_run(self, corpora):
        options = words(corpora.folder, files=3)
        os.unlink(corpora.folder / "train" / "0.txt")
        corpora.write("train/0.txt", text(documents(400) * 100))  # seconds of work
        process = self.start(corpora, [*options, "--workers", 3])
        self.wait(lambda: list((corpora.folder / "out.partial").glob("tokens/00000*")))
        process.send_signal(signal.SIGKILL)
        process.wait()
        tokens = corpora.folder / "out.partial" / "tokens"

        def stand_still() -> bool:
            sizes = [path.stat().st_size for path in tokens.iterdir()]
            time.sleep(1)
            return sizes == [path.stat().st_size for path in tokens.iterdir()]

        assert any(stand_still() for _ in range(10))
        assert not (tokens / "00000.json").exists()  # it was not done before

    def test_a_killed_task_is_told_and_gone_on_from(self, corpora, plain, monkeypatch):
        options, expected = plain
        start = stages.Local._start

        def killed(self, rank):
            process = start(self, rank)
            if rank == 1:
                process.kill()
            return process

        monkeypatch.setattr(stages.Local, "_start", killed)
        ended = corpora.run(*options)
        assert (ended.status, ended.error.count("\n")) == (1, 1)
        assert "task 1 was killed by SIGKILL. SIGKILL often means that memory ran out" in ended.error
        monkeypatch.undo()
        assert corpora.run(*options).status == 0
        assert trained_on(corpora.output) == expected

    def test_a_killed_process_is_told(self):
        with pytest.raises(CorpusError, match="--workers 2: a process was killed"):
            list(processes.mapped(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(3), 2))

    def test_other_options_begin_anew_and_say_so(self, corpora, plain, monkeypatch):
        options, _ = plain
        monkeypatch.setattr(stages.Local, "_start", lambda self, rank: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            corpora.run(*options)
        monkeypatch.undo()
        ended = corpora.run(*options, "--longest", 50)
        assert "out.partial: removed the partial output of an earlier run with --longest 126 (now 50)" in ended.out
        assert ended.status == 0

    def test_two_runs_do_not_mix(self, corpora):
        options = words(corpora.folder)
        held = corpora.write("out.partial/lock", "")
        with FileLock(held):
            assert "is in use by another run" in corpora.run(*options).error


def test_a_read_only_folder_is_named(corpora):
    options, folder = words(corpora.folder), corpora.folder / "disk"
    folder.mkdir()
    with read_only(folder):
        ended = corpora.run(*options, output=folder / "out")
    assert (ended.status, ended.error.count("\n")) == (1, 1)
    assert ended.error.startswith("error: ")
    assert str(folder / "out.partial") in ended.error
    assert list(folder.iterdir()) == []


SBATCH = """#!/usr/bin/env bash
# A queue of one machine: each task of the array at once, in the environment of the job script alone.
set -eu
for word; do case $word in --export=*) export "${word#--export=ALL,}" ;; esac; done
script=${!#}
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$script")
cp "$script" "$QUEUE/script"
for task in $(seq 0 "$last"); do
  SLURM_ARRAY_TASK_ID=$task SLURM_JOB_ID=7 SLURM_NODELIST=here bash "$script" >>"$QUEUE/log" 2>&1 || true
done
echo "Submitted batch job 7"
"""
SRUN = """#!/usr/bin/env bash
while [[ $1 != launch_pickled_pipeline ]]; do shift; done
exec "$@"
"""


class TestClusters:
    @pytest.fixture
    def queue(self, corpora, monkeypatch) -> Path:
        folder = corpora.folder / "bin"
        for name, content in {"sbatch": SBATCH, "srun": SRUN, "squeue": "#!/bin/sh\nexit 1\n"}.items():
            path = corpora.write(f"bin/{name}", content)
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.setenv("QUEUE", str(folder))
        monkeypatch.setattr(cluster, "POLL", 0.01)
        return folder

    def test_slurm_gives_the_same_bytes(self, corpora, plain, queue):
        options, expected = plain
        more = ["--executor", "slurm", "--slurm-partition", "cpu", "--slurm-arg", "account=me", "--workers", 2]
        ended = corpora.run(*options, *more)
        assert ended.status == 0, ended.error + (queue / "log").read_text()
        assert trained_on(corpora.output) == expected
        script = (queue / "script").read_text()
        for line in ("--partition=cpu", "--account=me", "--array=0-1%2", "--time=24:00:00"):
            assert f"#SBATCH {line}" in script

    def test_a_fault_on_the_cluster_reaches_the_user(self, corpora, queue):
        options = words(corpora.folder)
        corpora.write("train/2.txt", "good\n\nb\0d\n")
        ended = corpora.run(*options, "--executor", "slurm", "--slurm-partition", "cpu")
        assert (ended.status, ended.error.count("\n")) == (1, 1)
        assert "train/2.txt:3: the line contains a NUL character" in ended.error

    def test_tasks_that_do_not_end_are_told(self, corpora, queue):
        options = words(corpora.folder)
        (queue / "srun").write_text("#!/bin/sh\nexit 1\n")
        ended = corpora.run(*options, "--executor", "slurm", "--slurm-partition", "cpu")
        assert "2 of 2 tasks of the stage tokenise did not finish (the first is 0), and " in ended.error

    def test_what_is_missing_is_told(self, corpora, monkeypatch):
        options = words(corpora.folder)
        monkeypatch.setattr(cluster.shutil, "which", lambda name: None)
        assert "`sbatch` is not installed" in corpora.run(*options, "--executor", "slurm").error
        monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None)
        ended = corpora.run(*options, "--executor", "ray")
        assert (ended.status, ended.error.count("\n")) == (1, 1)
        assert "ray is not installed, and it is not part of the recipes' environment" in ended.error
        assert not (corpora.folder / "out.partial").exists()


class TestLanguages:
    SIZES: ClassVar = {"de": 40, "en": 160, "fi": 10}

    @pytest.fixture
    def languages(self, corpora) -> list[object]:
        for number, (language, size) in enumerate(self.SIZES.items()):
            corpora.write(f"wiki/{language}/AA/wiki_00", text(documents(size, seed=number)))
        return ["--train", corpora.folder / "wiki", "--valid-part", 0.05, "--languages", "--smoothing", 0.5]

    def test_they_are_drawn_by_smoothed_size(self, corpora, languages):
        assert corpora.learn(*languages, "--tasks", 2, vocabulary=330).status == 0
        record = {facts["language"]: facts for facts in corpora.record()["languages"] if facts["split"] == "train"}
        drawn = self.drawn(corpora, record)
        most = record["en"]["pieces"]
        for language, facts in record.items():
            assert facts["taken"] == pytest.approx((most / facts["pieces"]) ** 0.5)
            expected = facts["documents"] * facts["taken"]
            assert abs(drawn[language] - expected) < 3 * np.sqrt(facts["documents"] / 4) + 1, language
        assert drawn["en"] == record["en"]["documents"]
        # bytes replace characters that are not in the vocabulary
        lines = (corpora.output / "tokenizer" / "sentencepiece.vocab").read_text().splitlines()
        assert sum(line.startswith("<0x") for line in lines) == 256

    def drawn(self, corpora: Corpora, record: dict) -> dict[str, int]:
        """Return the number of documents of each language in the shards, which their text identifies."""
        names = {
            "".join(lines[0].split()): language
            for number, (language, size) in enumerate(self.SIZES.items())
            for lines in documents(size, seed=number)
        }
        numbers = dict.fromkeys(record, 0)
        for shard in range(2):
            for item in items(corpora.output / f"shard{shard:05d}"):
                line = "".join(item[:-1]).replace("\u2581", "")
                if line in names:
                    numbers[names[line]] += 1
        return numbers

    def test_the_factors_are_those_of_the_formula(self):
        sizes = {"a": 1000, "b": 10, "c": 1}
        for smoothing in (0.0, 0.3, 0.7, 1.0):
            factors = counts.factors(sizes, smoothing)
            drawn = {name: size * factors[name] for name, size in sizes.items()}
            for name, size in sizes.items():
                assert drawn[name] / drawn["a"] == pytest.approx((size / 1000) ** smoothing)

    def test_the_sample_of_the_vocabulary_is_smoothed_alike(self, corpora, languages):
        assert corpora.learn(*languages, vocabulary=330).status == 0
        sizes = {name: (corpora.folder / "wiki" / name / "AA/wiki_00").stat().st_size for name in self.SIZES}

        class Job:
            settings = type("Settings", (), {"smoothing": 0.5})

            def sources(self):
                return files.listed([str(corpora.folder / "wiki")], [], "en", "auto", languages=True)

        shares = sample.shares(Job())
        assert sum(shares.values()) == pytest.approx(1)
        for name, size in sizes.items():
            assert shares[name] / shares["en"] == pytest.approx((size / sizes["en"]) ** 0.5)


class TestDraws:
    def test_they_are_uniform_and_known(self):
        numbers = keys.keys(1, keys.SHARD, np.arange(100_000), 7)
        assert numbers[:2].tolist() == keys.keys(1, keys.SHARD, np.array([0, 1]), np.array([7, 7])).tolist()
        assert np.bincount((numbers % np.uint64(10)).astype(int)) == pytest.approx(10_000, rel=0.05)
        assert keys.fractions(numbers).mean() == pytest.approx(0.5, abs=0.01)
        # the published first numbers of splitmix64 for the seed 0
        assert [hex(keys._mixed(np.array([seed], np.uint64))[0]) for seed in (0, 0x9E3779B97F4A7C15)] == [
            "0xe220a8397b1dcdaf",
            "0x6e789e6aa1b965f4",
        ]

    def test_uses_and_seeds_are_apart(self):
        draws = {int(keys.keys(seed, use, 5)[0]) for seed in range(4) for use in range(1, 7)}
        assert len(draws) == 24

    def test_a_limit_is_shared_by_tasks(self):
        assert [tokenise.room(11, task, 3) for task in range(3)] == [4, 4, 3]
        assert tokenise.room(0, 0, 3) < 0


@pytest.mark.parametrize(("most", "file"), [(4000, "tokens/0000"), (7000, "corpus/shard00001/train.bin")])
def test_a_full_disk_is_named_and_the_run_continues_later(corpora, plain, most, file):
    options, expected = plain
    with no_larger_files(most, forkserver._forkserver._forkserver_pid):  # the tasks inherit the limit of the server
        ended = corpora.run(*options)
    assert (ended.status, ended.error.count("\n")) == (1, 1)
    assert f"error: {corpora.output}.partial/{file}" in ended.error
    assert re.search(r"File too large.* needs more than [\d,]+ bytes, and [\d,]+ bytes are free in", ended.error)
    assert not corpora.output.exists()
    assert not [*corpora.folder.rglob("*.partial/**/*.partial")]
    assert corpora.run(*options).status == 0
    assert trained_on(corpora.output) == expected


@pytest.mark.parametrize(
    ("text", "size", "advice"),
    [("abcdefghij klmno", 8, r"Give at least --vocabulary \d+"), ("a b c", 500, r"Give at most --vocabulary \d+")],
)
def test_a_wrong_size_of_the_vocabulary_is_explained(text: str, size: int, advice: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=rf"--vocabulary {size}: the .*{advice}\."):
        sample._sentencepiece([text] * 9, tmp_path, size, byte_fallback=False)
