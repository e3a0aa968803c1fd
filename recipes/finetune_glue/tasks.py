"""The tasks of GLUE, and XNLI, as recipes plan them; data-bin-scripts/glue/formats.py has their columns and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import xnli


@dataclass(frozen=True)
class Task:
    """pair: two sentences. classes: 1 is regression. metrics: the first chooses. train: rows as published, of which
    METHODS.md 6.B has the round numbers. submissions: GLUE's file names, by split. folders: that archives unpack to,
    beside one of the task's name."""

    pair: bool
    classes: int
    metrics: tuple[str, ...]
    train: int
    submissions: Mapping[str, str]
    folders: tuple[str, ...] = ()


MNLI = {"test": "MNLI-m.tsv", "test-mismatched": "MNLI-mm.tsv", "test-ax": "AX.tsv"}
TASKS: dict[str, Task] = {
    "MNLI": Task(True, 3, ("accuracy",), 392_702, MNLI, ("diagnostic",)),
    "QQP": Task(True, 2, ("f1", "accuracy"), 363_846, {"test": "QQP.tsv"}, ("QQP-clean",)),
    "QNLI": Task(True, 2, ("accuracy",), 104_743, {"test": "QNLI.tsv"}, ("QNLIv2",)),
    "SST-2": Task(False, 2, ("accuracy",), 67_349, {"test": "SST-2.tsv"}),
    "CoLA": Task(False, 2, ("matthews", "accuracy"), 8_551, {"test": "CoLA.tsv"}),
    "STS-B": Task(True, 1, ("spearman", "pearson"), 5_749, {"test": "STS-B.tsv"}),
    "MRPC": Task(True, 2, ("f1", "accuracy"), 3_668, {"test": "MRPC.tsv"}),
    "RTE": Task(True, 2, ("accuracy",), 2_490, {"test": "RTE.tsv"}),
    xnli.XNLI: Task(True, 3, ("accuracy",), 392_702, {}, ("xnli", "xnli/XNLI-1.0", "xnli/XNLI-MT-1.0/multinli")),
}
GLUE = tuple(name for name in TASKS if name != xnli.XNLI)
#: DIET's figures of QQP (91.1) can only be accuracies (METHODS.md 6.D does not say)
FIRST = {("diet", "QQP"): "accuracy"}
#: the split whose score stands for a task, where it is not the development set: of XNLI all languages, English
#: among them, as XTREME has it
HEADLINE = {xnli.XNLI: xnli.MEAN}


def metrics(task: str, protocol: str) -> list[str]:
    """The scores of a task; the first chooses checkpoints and learning rates, and stands beside the paper's."""
    known = list(TASKS[task].metrics)
    first = FIRST.get((protocol, task), known[0])
    return [first, *(name for name in known if name != first)]
