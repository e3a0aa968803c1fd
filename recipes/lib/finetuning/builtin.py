"""Write small invented tasks in the file formats of GLUE and XNLI, or invented questions in the format of SQuAD.

The sentences come from the random grammar in recipes/lib/invented/sentences.py. The label of a single sentence says
whether its verb is in the first half of the grammar's list of verbs. In a pair, the second sentence equals the first,
has two words swapped, or is unrelated. The texts of the questions are also written for pretraining.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable
from pathlib import Path

from fairseq_posenc.core.writing import whole_folder
from recipes.lib.invented.questions import ARTICLES, article
from recipes.lib.invented.sentences import VERBS, Grammar, Lexicon

ROWS = {"train": 400, "dev": 60, "test": 20}
#: The columns of each task that prepare_glue.py reads. CoLA and XNLI have no header, so their order matters.
COLUMNS = {
    "CoLA": "source label mark sentence",
    "SST-2": "sentence label",
    "MRPC": "Quality #1_ID #2_ID #1_String #2_String",
    "STS-B": "index sentence1 sentence2 score",
    "QQP": "id qid1 qid2 question1 question2 is_duplicate",
    "MNLI": "index sentence1 sentence2 gold_label",
    "QNLI": "index question sentence label",
    "RTE": "index sentence1 sentence2 label",
    "XNLI": "sentence1 sentence2 gold_label",
}
LABELS = {"label", "Quality", "score", "is_duplicate", "gold_label"}
SECOND = {"#2 String", "sentence2", "question2", "sentence"}
#: Labels of pairs for: an unrelated sentence, two words swapped, the same sentence.
INFERENCE, ENTAILED = ("neutral", "contradiction", "entailment"), ("not_entailment", "not_entailment", "entailment")
GRADES = {
    "STS-B": ("0.000", "3.000", "5.000"),
    "MNLI": INFERENCE,
    "XNLI": INFERENCE,
    "QNLI": ENTAILED,
    "RTE": ENTAILED,
    **dict.fromkeys(("MRPC", "QQP"), ("0", "0", "1")),
}


def columns(task: str) -> list[str]:
    return [name.replace("_", " ") if "#" in name else name for name in COLUMNS[task].split()]


def row(rng: random.Random, grammar: Grammar, task: str, number: int) -> dict[str, str]:
    """Return the values of a random row, keyed by column."""
    first = grammar.pair().source
    facts = dict.fromkeys(columns(task), str(number))
    if task not in GRADES:
        known = next(VERBS.index(word) for word in first.rstrip(".").split() if word in VERBS)
        return facts | {"sentence": first, "label": str(int(known < len(VERBS) // 2)), "mark": ""}
    grade = rng.randrange(3)
    second = (grammar.pair().source, swapped(rng, first), first)[grade]
    texts = {column: second if column in SECOND else first for column in facts if is_text(column)}
    return facts | texts | {column: GRADES[task][grade] for column in facts if column in LABELS}


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
    shown = [column for column in columns(task) if not (kind == "test" and column in LABELS)]
    if kind == "test" and task != "XNLI" and not {"index", "id"} & set(shown):
        shown = ["index", *filter(is_text, shown)]
    rows = [row(rng, grammar, task, number) | {"index": str(number)} for number in range(ROWS[kind])]
    header = [] if task == "XNLI" or (task == "CoLA" and kind != "test") else ["\t".join(shown)]
    return header + ["\t".join(values[column] for column in shown) for values in rows]


def write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def questions(rng: random.Random, folder: Path) -> None:
    """Write train.json and dev.json, and their contexts into text/train.txt and text/valid.txt."""
    for split, count in ARTICLES.items():
        articles = [article(rng, split, number) for number in range(count)]
        content = json.dumps({"version": "builtin", "data": articles}, indent=1)
        write(folder / f"{'dev' if split == 'valid' else split}.json", [content])
        texts = (part["context"] for item in articles for part in item["paragraphs"])
        write(folder / "text" / f"{split}.txt", (line for text in texts for line in (text, "")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--output", type=Path, required=True, metavar="DIR", help="Folder for the files.")
    option("--tasks", required=True, metavar="TASK,...", help=f"Tasks to write: {', '.join(COLUMNS)} or SQuAD.")
    option("--seed", type=int, required=True, metavar="N", help="Random seed for generating the rows.")
    arguments = parser.parse_args()
    rng, tasks = random.Random(arguments.seed), arguments.tasks.split(",")
    with whole_folder(arguments.output) as partial:
        if "SQuAD" in tasks:
            questions(rng, partial)
            rng = random.Random(arguments.seed)
        grammar = Grammar(rng, Lexicon())
        for task in tasks:
            for file, kind in files(task).items() if task in COLUMNS else ():
                write(partial / task / file, lines(rng, grammar, task, kind))


if __name__ == "__main__":
    main()
