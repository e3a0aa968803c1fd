"""Define the facts about GLUE's tasks and XNLI that plans need: classes, metrics and numbers of rows.

The columns and labels of these tasks are in data-bin-scripts/glue/formats.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import xnli


@dataclass(frozen=True)
class Task:
    """Describe a task of GLUE, or XNLI.

    Attributes:
        pair: Whether an item has two sentences.
        classes: Number of classes; 1 means regression.
        metrics: Names of the metrics. The first metric chooses checkpoints and learning rates.
        rows: Published number of rows of each split; for XNLI, the number in each language.
        submissions: Name of the file that GLUE expects for each split.
        folders: Names of the task's folder in published archives, if they differ from the name of the task.
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
#: The first metric where a protocol differs. The DIET paper does not name its metric for QQP, but 91.1 (Table 2) is too
#: high for an F1, so it must be accuracy.
FIRST = {("diet", "QQP"): "accuracy"}
#: The split whose score represents a task, if it is not the development set. For XNLI it is the mean over all
#: languages, including English, as in XTREME.
HEADLINE = {xnli.XNLI: xnli.MEAN}


def metrics(task: str, protocol: str) -> list[str]:
    """Return the metrics of a task. The first metric chooses checkpoints and is compared with the paper."""
    known = list(TASKS[task].metrics)
    first = FIRST.get((protocol, task), known[0])
    return [first, *(name for name in known if name != first)]
