"""Provide what the tests of GLUE share: handwritten files in the published formats, and a model to fine-tune.

PYTEST_DONT_REWRITE: it is imported before it is named as a plugin.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import prepare_glue
from support_scripts import symbols

PARSES = ("(w1)", "(w2)", "(w3)", "(w4)")
MNLI = ("index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse")
MNLI += ("sentence1_parse", "sentence2_parse", "sentence1", "sentence2")
#: For each task: file, header (empty if there is none), rows.
FILES: dict[str, dict[str, list[tuple[str, ...]]]] = {
    "CoLA": {
        "train.tsv": [("gj04", "1", "", "w1 w2"), ("gj04", "0", "*", 'w2 " w1'), ("gj04", "1", "", "w3")],
        "dev.tsv": [("gj04", "1", "", "w4"), ("gj04", "0", "*", "w5 w1")],
        "test.tsv": [("index", "sentence"), ("0", "w1"), ("1", "w6")],
    },
    "SST-2": {
        "train.tsv": [("sentence", "label"), ("w1 w2 ", "0"), ("w3 ", "1")],
        "dev.tsv": [("sentence", "label"), ("w4", "1")],
        "test.tsv": [("index", "sentence"), ("0", "w1"), ("1", "w2")],
    },
    "MRPC": {
        "train.tsv": [
            ("\ufeffQuality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
            ("1", "7", "8", "w1 w2", "w1 w2 w3"),
            ("0", "9", "10", 'w1 "w2', "w4"),
        ],
        "dev.tsv": [("\ufeffQuality", "#1 ID", "#2 ID", "#1 String", "#2 String"), ("1", "1", "2", "w5", "w5")],
        "test.tsv": [("index", "#1 ID", "#2 ID", "#1 String", "#2 String"), ("0", "3", "4", "w6", "w7")],
    },
    "STS-B": {
        "train.tsv": [
            (
                "index",
                "genre",
                "filename",
                "year",
                "old_index",
                "source1",
                "source2",
                "sentence1",
                "sentence2",
                "score",
            ),
            ("0", "main", "MSRvid", "2012test", "0001", "none", "none", "w1", "w2", "5.000"),
            ("1", "main", "MSRvid", "2012test", "0002", "none", "none", "w1", "w3", "0.250"),
        ],
        "dev.tsv": [("index", "sentence1", "sentence2", "score"), ("0", "w1", "w1", "3.4")],
        "test.tsv": [("index", "sentence1", "sentence2"), ("0", "w1", "w4")],
    },
    "QQP": {
        "train.tsv": [
            ("id", "qid1", "qid2", "question1", "question2", "is_duplicate"),
            ("133273", "213221", "213222", "w1", "w2", "0"),
            ("402555", "536040", "536041", "w3", "w3", "1"),
        ],
        "dev.tsv": [("id", "qid1", "qid2", "question1", "question2", "is_duplicate"), ("5", "1", "2", "w4", "w4", "1")],
        "test.tsv": [("id", "question1", "question2"), ("0", "w1", "w1"), ("1", "w2", "w1")],
    },
    "MNLI": {
        "train.tsv": [
            (*MNLI, "label1", "gold_label"),
            ("0", "1", "1n", "fiction", *PARSES, "w1 w2", "w1", "neutral", "neutral"),
            ("1", "1", "1e", "fiction", *PARSES, "w1 w2", "w2", "entailment", "entailment"),
            ("2", "1", "1c", "fiction", *PARSES, "w1", "w3", "contradiction", "contradiction"),
        ],
        "dev_matched.tsv": [
            (*MNLI, "label1", "label2", "gold_label"),
            ("0", "1", "1n", "fiction", *PARSES, "w1", "w5", "entailment", "neutral", "neutral"),
        ],
        "dev_mismatched.tsv": [
            (*MNLI, "label1", "gold_label"),
            ("0", "1", "1n", "letters", *PARSES, "w1", "w6", "entailment", "entailment"),
        ],
        "test_matched.tsv": [MNLI, ("0", "1", "1n", "fiction", *PARSES, "w1", "w7")],
        "test_mismatched.tsv": [MNLI, ("9847", "1", "1n", "letters", *PARSES, "w1", "w8")],
        "AX.tsv": [("index", "sentence1", "sentence2"), ("0", "w1", "w9"), ("1", "w2", "w9")],
    },
    "QNLI": {
        "train.tsv": [
            ("index", "question", "sentence", "label"),
            ("0", "w1", "w2", "entailment"),
            ("1", "w3", "w4", "not_entailment"),
        ],
        "dev.tsv": [("index", "question", "sentence", "label"), ("0", "w5", "w6", "not_entailment")],
        "test.tsv": [("index", "question", "sentence"), ("0", "w1", "w2")],
    },
    "RTE": {
        "train.tsv": [
            ("index", "sentence1", "sentence2", "label"),
            ("0", "w1", "w2", "not_entailment"),
            ("1", "w3", "w3", "entailment"),
        ],
        "dev.tsv": [("index", "sentence1", "sentence2", "label"), ("0", "w5", "w6", "entailment")],
        "test.tsv": [("index", "sentence1", "sentence2"), ("0", "w1", "w2")],
    },
}


def write(folder: Path, name: str, rows: list[tuple[str, ...]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join("\t".join(row) + "\n" for row in rows).encode()
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return folder / name


def task_files(folder: Path, task: str, *, packed: bool = False, **changed: list[tuple[str, ...]]) -> Path:
    """Write GLUE's files for a task; `train=ROWS` and so on replace the handwritten rows."""
    for name, rows in FILES[task].items():
        content = changed.get(name.removesuffix(".tsv"), rows)
        write(folder, f"{name}.gz" if packed else name, content)
    return folder


def prepare(task: str, data: Path, model: Path, output: Path, *more: str) -> int:
    """Run prepare_glue.py and return the exit status."""
    words = ["--task", task, "--corpus", data, "--checkpoint", model, "--output", output, "--length", "16", *more]
    return prepare_glue.main([str(word) for word in words])


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "glue.json").read_text("utf-8"))


def items(folder: Path, name: str, split: str) -> list[list[str]]:
    """Return pieces and labels as fairseq reads them."""
    return symbols(folder / name / split, folder / name / "dict.txt")
