"""The tasks of GLUE, and XNLI, as recipes plan them; data-bin-scripts/glue/formats.py has their columns and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import xnli


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        pair: it has two sentences.
        classes: 1 is regression.
        metrics: the first one chooses.
        rows: as published, by split; of XNLI those of each language. METHODS.md 6.B rounds those of training.
        submissions: GLUE's file names, by split.
        folders: what archives unpack to, beside a folder with the task's name.
    """

    pair: bool
    classes: int
    metrics: tuple[str, ...]
    rows: Mapping[str, int]
    submissions: Mapping[str, str]
    folders: tuple[str, ...] = ()


def _rows(train: int, valid: int) -> dict[str, int]:
    return {"train": train, "valid": valid}


MNLI_ROWS = {**_rows(392_702, 9_815), "valid-mismatched": 9_832}
XNLI_ROWS = {**_rows(392_702, 2_490), "test": 5_010}
MNLI = {"test": "MNLI-m.tsv", "test-mismatched": "MNLI-mm.tsv", "test-ax": "AX.tsv"}
TASKS: dict[str, Task] = {
    "MNLI": Task(True, 3, ("accuracy",), MNLI_ROWS, MNLI, ("diagnostic",)),
    "QQP": Task(True, 2, ("f1", "accuracy"), _rows(363_846, 40_430), {"test": "QQP.tsv"}, ("QQP-clean",)),
    "QNLI": Task(True, 2, ("accuracy",), _rows(104_743, 5_463), {"test": "QNLI.tsv"}, ("QNLIv2",)),
    "SST-2": Task(False, 2, ("accuracy",), _rows(67_349, 872), {"test": "SST-2.tsv"}),
    "CoLA": Task(False, 2, ("matthews", "accuracy"), _rows(8_551, 1_043), {"test": "CoLA.tsv"}),
    "STS-B": Task(True, 1, ("spearman", "pearson"), _rows(5_749, 1_500), {"test": "STS-B.tsv"}),
    "MRPC": Task(True, 2, ("f1", "accuracy"), _rows(3_668, 408), {"test": "MRPC.tsv"}),
    "RTE": Task(True, 2, ("accuracy",), _rows(2_490, 277), {"test": "RTE.tsv"}),
    xnli.XNLI: Task(True, 3, ("accuracy",), XNLI_ROWS, {}, ("xnli", "xnli/XNLI-1.0", "xnli/XNLI-MT-1.0/multinli")),
}
GLUE = tuple(name for name in TASKS if name != xnli.XNLI)
#: DIET's figures of QQP (91.1) can only be accuracies (METHODS.md 6.D does not say)
FIRST = {("diet", "QQP"): "accuracy"}
#: the split whose score stands for a task, where it is not the development set: of XNLI all languages, English
#: among them, as XTREME has it
HEADLINE = {xnli.XNLI: xnli.MEAN}


def metrics(task: str, protocol: str) -> list[str]:
    """Return the scores of a task; the first chooses checkpoints and learning rates, and stands beside the paper's."""
    known = list(TASKS[task].metrics)
    first = FIRST.get((protocol, task), known[0])
    return [first, *(name for name in known if name != first)]
