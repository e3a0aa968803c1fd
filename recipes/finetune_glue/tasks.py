"""The tasks of GLUE, and XNLI, as recipes plan them; data-bin-scripts/glue/formats.py has their columns and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """pair: two sentences. classes: 1 is regression. metrics: the first chooses. train: rows as published, of which
    METHODS.md 6.B has the round numbers. submissions: GLUE's file names, by split."""

    pair: bool
    classes: int
    metrics: tuple[str, ...]
    train: int
    submissions: Mapping[str, str]


MNLI = {"test": "MNLI-m.tsv", "test-mismatched": "MNLI-mm.tsv", "test-ax": "AX.tsv"}
TASKS: dict[str, Task] = {
    "MNLI": Task(True, 3, ("accuracy",), 392_702, MNLI),
    "QQP": Task(True, 2, ("f1", "accuracy"), 363_846, {"test": "QQP.tsv"}),
    "QNLI": Task(True, 2, ("accuracy",), 104_743, {"test": "QNLI.tsv"}),
    "SST-2": Task(False, 2, ("accuracy",), 67_349, {"test": "SST-2.tsv"}),
    "CoLA": Task(False, 2, ("matthews", "accuracy"), 8_551, {"test": "CoLA.tsv"}),
    "STS-B": Task(True, 1, ("spearman", "pearson"), 5_749, {"test": "STS-B.tsv"}),
    "MRPC": Task(True, 2, ("f1", "accuracy"), 3_668, {"test": "MRPC.tsv"}),
    "RTE": Task(True, 2, ("accuracy",), 2_490, {"test": "RTE.tsv"}),
    "XNLI": Task(True, 3, ("accuracy",), 392_702, {}),
}
GLUE = tuple(name for name in TASKS if name != "XNLI")
#: DIET's figures of QQP (91.1) can only be accuracies (METHODS.md 6.D does not say)
FIRST = {("diet", "QQP"): "accuracy"}


def headline(task: str, scores: Mapping[str, Mapping[str, float]], metric: str) -> float:
    """The number of a model on a task: of the development set; of XNLI the mean over the languages but English, of the
    test sets, or of the development sets where the test sets have no labels."""
    if task == "XNLI":
        for kind in ("test-", "valid-"):
            found = [some[metric] for split, some in scores.items() if split.startswith(kind) and split != "test-en"]
            if found:
                return sum(found) / len(found)
    return scores["valid"][metric]


def metrics(task: str, protocol: str) -> list[str]:
    """The scores of a task; the first chooses checkpoints and learning rates, and stands beside the paper's."""
    known = list(TASKS[task].metrics)
    first = FIRST.get((protocol, task), known[0])
    return [first, *(name for name in known if name != first)]
