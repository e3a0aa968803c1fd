"""Know the tasks: classes, metrics, files for GLUE's server, and the published numbers of rows and questions.

python -m recipes.lib.finetuning.tasks --task MNLI RTE    # print each task, and its flags of fairseq-train
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """Describe a task of GLUE, or XNLI.

    Attributes:
        classes: Number of classes; 1 means regression.
        metrics: Names of the metrics. The first metric chooses checkpoints and learning rates.
        rows: Published numbers of training and development rows (XNLI: also of test rows, in each language).
        submissions: Name of the file that GLUE expects for each split.
    """

    classes: int
    metrics: tuple[str, ...]
    rows: Mapping[str, int]
    submissions: Mapping[str, str]


def _glue(name: str, classes: int, metrics: str, train: int, valid: int) -> Task:
    return Task(classes, tuple(metrics.split()), {"train": train, "valid": valid}, {"test": f"{name}.tsv"})


MNLI = {"test": "MNLI-m.tsv", "test-mismatched": "MNLI-mm.tsv", "test-ax": "AX.tsv"}
TASKS: dict[str, Task] = {
    "MNLI": Task(3, ("accuracy",), {"train": 392_702, "valid": 9_815, "valid-mismatched": 9_832}, MNLI),
    "QQP": _glue("QQP", 2, "f1 accuracy", 363_846, 40_430),
    "QNLI": _glue("QNLI", 2, "accuracy", 104_743, 5_463),
    "SST-2": _glue("SST-2", 2, "accuracy", 67_349, 872),
    "CoLA": _glue("CoLA", 2, "matthews accuracy", 8_551, 1_043),
    "STS-B": _glue("STS-B", 1, "spearman pearson", 5_749, 1_500),
    "MRPC": _glue("MRPC", 2, "f1 accuracy", 3_668, 408),
    "RTE": _glue("RTE", 2, "accuracy", 2_490, 277),
    "XNLI": Task(3, ("accuracy",), {"train": 392_702, "valid": 2_490, "test": 5_010}, {}),
}
#: The first metric in a paper's tables where it differs. The DIET paper does not name its metric for QQP, but 91.1
#: (Table 2) is too high for an F1, so it must be accuracy.
FIRST = {("DIET", "QQP"): "accuracy"}
#: Number of training and development questions of SQuAD, by version.
SQUAD = {"1.1": (87_599, 10_570), "2.0": (130_319, 11_873)}
#: Number of questions of each language in the question sets of XTREME.
QUESTIONS: dict[str, dict[str, int]] = {
    "XQuAD": dict.fromkeys("en ar de el es hi ru th tr vi zh".split(), 1190),
    "MLQA": {"en": 11_590, "ar": 5_335, "de": 4_517, "es": 5_253, "hi": 4_918, "vi": 5_495, "zh": 5_137},
    "TyDiQA": {"en": 440, "ar": 921, "bn": 113, "fi": 782, "id": 565, "ko": 276, "ru": 812, "sw": 499, "te": 669},
}
XNLI_LANGUAGES = 15


def metrics(task: str, papers: str) -> list[str]:
    """Return the metrics of a task. The first metric chooses checkpoints and is compared with the paper.

    Args:
        papers: Papers and models whose numbers stand beside ours, such as `DIET/BERT-base, English`.
    """
    known = TASKS[task].metrics
    first = FIRST.get((papers.partition("/")[0], task), known[0])
    return [first, *(name for name in known if name != first)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", required=True, nargs="+", choices=TASKS, help="Tasks of GLUE, or XNLI.")
    parser.add_argument("--papers", default="", metavar="PAPER/MODEL", help="Paper whose metrics come first.")
    parser.add_argument("--separators", choices=("1", "2"), default="2", help="Number of </s> between two sentences.")
    arguments = parser.parse_args()
    for name in arguments.task:
        task = TASKS[name]
        words = ["--task", "posenc_sentence_prediction", "--criterion", "posenc_sentence_prediction"]
        words += ["--num-classes", str(task.classes), *(["--regression-target"] if task.classes == 1 else [])]
        words += ["--metrics", ",".join(metrics(name, arguments.papers)), "--init-token", "0"]
        words += ["--separator-token", "2"] if arguments.separators == "2" else []
        print(name, *words, "--best-checkpoint-metric", "score", "--maximize-best-checkpoint-metric")


if __name__ == "__main__":
    main()
