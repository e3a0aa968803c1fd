"""Test prepare_glue.sh and prepare_xtreme.sh: the commands that they run, and the options that they refuse."""

from __future__ import annotations

import pytest
from support_scripts import SCRIPTS, script


@pytest.mark.parametrize(
    ("task", "fetched"),
    [
        ("CoLA", "glue/CoLA.zip"),
        ("QQP", "glue/QQP-clean.zip"),
        ("QNLI", "glue/QNLIv2.zip"),
        ("MNLI", "glue/MNLI.zip glue/AX.tsv"),
        ("MRPC", "glue/msr_paraphrase_train.txt glue/msr_paraphrase_test.txt glue/mrpc_dev_ids.tsv"),
    ],
)
def test_a_tasks_archives_are_fetched(task: str, fetched: str) -> None:
    done = script("glue", "--task", task, "--checkpoint", "x.pt", "--dry-run")
    assert done.returncode == 0, done.stderr
    fetch, prepare = done.stdout.splitlines()
    assert f"fetch.py {fetched} --output data/raw" in fetch
    assert f"--data data/raw/glue --output data-bin/glue/{task} --task {task} --checkpoint x.pt" in prepare
    listed = (SCRIPTS / "sources.tsv").read_text()
    assert all("\t".join(name.split("/")) in listed for name in fetched.split())


def test_ones_own_files_are_not_fetched() -> None:
    words = ("--task=RTE", "--checkpoint", "x.pt", "--text", "mine", "--output", "out", "--dry-run")
    (prepare,) = script("glue", *words).stdout.splitlines()
    assert "prepare_glue.py --data mine --output out --task=RTE --checkpoint x.pt" in prepare


def test_xnli_is_fetched() -> None:
    done = script("xtreme", "--task", "XNLI", "--checkpoint", "x.pt", "--dry-run")
    fetch, prepare = done.stdout.splitlines()
    assert "fetch.py xnli/XNLI-1.0.zip xnli/XNLI-MT-1.0.zip --output data/raw" in fetch
    assert "--data data/raw --output data-bin/xnli --task XNLI" in prepare


@pytest.mark.parametrize(
    ("task", "words", "fetched"),
    [
        ("xquad", ("--languages", "de,zh"), "xquad/xquad.de.json xquad/xquad.zh.json"),
        ("mlqa", (), "mlqa/MLQA_V1.zip"),
        ("tydiqa", (), "tydiqa/tydiqa-goldp-v1.1-dev.tgz"),
    ],
)
def test_questions_in_other_languages_are_fetched(task: str, words: tuple[str, ...], fetched: str) -> None:
    done = script("xtreme", f"--task={task}", *words, "--checkpoint", "x.pt", "--dry-run")
    fetch, prepare = done.stdout.replace("\\", "").splitlines()
    assert f"fetch.py {fetched} --output data/raw" in fetch
    chosen = " ".join(["--set", task, *words, "--checkpoint x.pt"])
    assert f"prepare_spans.py --data data/raw --output data-bin/{task} {chosen}" in prepare
    listed = (SCRIPTS / "sources.tsv").read_text()
    assert all("\t".join(name.split("/")) in listed for name in fetched.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--task", "SST2"), "--task SST2: give CoLA, SST-2, MRPC"),
        ((), "--task is missing"),
        (("--task", "RTE", "--data", "x"), "--data: give your own folder with --text"),
        (("--task", "RTE", "--fetch-limit", "1"), "--fetch-limit: files are fetched whole"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], message: str) -> None:
    done = script("glue", *words, "--dry-run")
    assert done.returncode == 1
    assert message in done.stderr
