"""Write small invented tasks in the file formats of GLUE.

The sentences come from the random grammar in recipes/lib/invented/sentences.py. The label of a single sentence says
whether its verb is in the first half of the grammar's list of verbs. In a pair, the second sentence equals the first,
has two words swapped, or is unrelated.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from recipes.lib.invented.sentences import VERBS, Grammar, Lexicon
from recipes.lib.lines import write
from recipes.lib.package import whole_folder

ROWS = {"train": 400, "dev": 60, "test": 20}
#: The columns of each task that data-bin-scripts/glue reads. CoLA and XNLI have no header, so their order matters.
COLUMNS = {
    "CoLA": ("source", "label", "mark", "sentence"),
    "SST-2": ("sentence", "label"),
    "MRPC": ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
    "STS-B": ("index", "sentence1", "sentence2", "score"),
    "QQP": ("id", "qid1", "qid2", "question1", "question2", "is_duplicate"),
    "MNLI": ("index", "sentence1", "sentence2", "gold_label"),
    "QNLI": ("index", "question", "sentence", "label"),
    "RTE": ("index", "sentence1", "sentence2", "label"),
    "XNLI": ("sentence1", "sentence2", "gold_label"),
}
LABELS = {"label", "Quality", "score", "is_duplicate", "gold_label"}
SECOND = {"#2 String", "sentence2", "question2", "sentence"}
#: Labels of pairs for: an unrelated sentence, two words swapped, the same sentence.
GRADES = {
    "STS-B": ("0.000", "3.000", "5.000"),
    "MNLI": ("neutral", "contradiction", "entailment"),
    "XNLI": ("neutral", "contradiction", "entailment"),
    "QNLI": ("not_entailment", "not_entailment", "entailment"),
    "RTE": ("not_entailment", "not_entailment", "entailment"),
}


def row(rng: random.Random, grammar: Grammar, task: str, number: int) -> dict[str, str]:
    """Return the values of a random row, keyed by column."""
    first = grammar.pair().source
    facts = dict.fromkeys(COLUMNS[task], str(number))
    if task in ("CoLA", "SST-2"):
        words = first.rstrip(".").split()
        known = next(VERBS.index(word) for word in words if word in VERBS)
        return facts | {"sentence": first, "label": str(int(known < len(VERBS) // 2)), "mark": ""}
    grade = rng.randrange(3)
    second = (grammar.pair().source, swapped(rng, first), first)[grade]
    texts = {column: second if column in SECOND else first for column in facts if is_text(column)}
    labels = GRADES.get(task, ("0", "0", "1"))
    return facts | texts | {column: labels[grade] for column in facts if column in LABELS}


def is_text(column: str) -> bool:
    return column.startswith(("sentence", "question")) or column.endswith("String")


def swapped(rng: random.Random, sentence: str) -> str:
    """Return the sentence with two random words swapped."""
    words = sentence.split()
    first, second = rng.sample(range(len(words)), 2)
    words[first], words[second] = words[second], words[first]
    return " ".join(words)


def files(task: str) -> dict[str, str]:
    """Return the kind of rows (train, dev or test) in each file of a task, keyed by file name."""
    if task == "XNLI":
        return {"train-en.tsv": "train", **{f"dev-{code}.tsv": "dev" for code in ("en", "de")}, "test-de.tsv": "test"}
    if task != "MNLI":
        return {f"{name}.tsv": name for name in ROWS}
    both = {f"{name}_{kind}.tsv": name for name in ("dev", "test") for kind in ("matched", "mismatched")}
    return {"train.tsv": "train", **both}


def lines(rng: random.Random, grammar: Grammar, task: str, kind: str) -> list[str]:
    """Return the lines of a file with rows for training, development or test (`kind`: train, dev or test)."""
    test = kind == "test"
    columns = [column for column in COLUMNS[task] if not (test and column in LABELS)]
    if test and task != "XNLI" and not {"index", "id"} & set(columns):
        columns = ["index", *(column for column in columns if is_text(column))]
    rows = [row(rng, grammar, task, number) | {"index": str(number)} for number in range(ROWS[kind])]
    header = [] if task == "XNLI" or (task == "CoLA" and not test) else ["\t".join(columns)]
    return header + ["\t".join(values[column] for column in columns) for values in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--output", type=Path, required=True, metavar="DIR", help="Folder for the files, such as TASK/train.tsv.")
    option(
        "--task",
        action="append",
        required=True,
        choices=list(COLUMNS),
        help="Task to write; the option may be repeated.",
    )
    option("--seed", type=int, required=True, metavar="N", help="Random seed for generating the rows.")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    grammar = Grammar(rng, Lexicon())
    with whole_folder(arguments.output) as partial:
        for task in arguments.task:
            (partial / task).mkdir()
            for file, name in files(task).items():
                write(partial / task / file, lines(rng, grammar, task, name))


if __name__ == "__main__":
    main()
