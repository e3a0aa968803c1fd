"""Score a run's models and two baselines on the test sets; write predictions, files for GLUE's server, and figures.

The score is the accuracy in percent; for QQP it is the mean of accuracy and F1, and for MNLI the mean over the matched
and the mismatched set (Qu et al. 2021).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import data_utils
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.core.writing import whole_folder, write_whole
from fairseq_posenc.metrics import classification
from recipes.lib.checkpoints import Loaded, load, updates
from recipes.lib.curves import draw_groups
from recipes.lib.lines import read, write
from recipes.lib.runs import finished

FIRST = 4  # id of the first word or label; fairseq's special symbols have smaller ids
TOKENS = 16384  # number of tokens in a batch
#: Upper ends of the groups of text lengths, in words of both texts together.
LENGTHS = (5, 10, 15, 20, 30, 50, 100, 200)
LENGTH = "accuracy by length, "  # prefix of the scores of a group of text lengths
#: Files for GLUE's server, for each split without labels; other tasks have TASK.tsv.
SUBMISSIONS = {("MNLI", "glue"): "MNLI-m.tsv", ("MNLI", "glue-mismatched"): "MNLI-mm.tsv"}
#: Published number of rows for training (most tasks have no validation set of their own) and for the test; SNLI's rows
#: without an agreed label do not count.
PUBLISHED = {
    "IMDB": (25_000, 25_000),
    "SST-2": (67_349, 872),
    "SNLI": (549_367 + 9_842, 9_824),
    "QNLI": (104_743, 5_463),
    "QQP": (363_846, 40_430),
    "MNLI": (392_702, 9_815 + 9_832),
}
Classes = Mapping[str, Sequence[int]]  # the class of each row, by split


class Rows:
    """Read the prepared rows of a data set."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.record: dict[str, Any] = json.loads((folder / "glue.json").read_text(encoding="utf-8"))
        self.tests = [split for split in self.record["splits"] if split.startswith("test")]
        self.unlabelled = [split for split in self.record["splits"] if split.startswith("glue")]
        self.metrics = ["accuracy", "f1"] if self.name == "QQP" else ["accuracy"]

    def labels(self, split: str) -> list[int]:
        """Return the class of each row."""
        return [int(row[0]) - FIRST for row in self._items("label", split)]

    def words(self, split: str) -> list[list[list[int]]]:
        """Return the word ids of the one or two texts in each row, without </s>."""
        texts = [self._items(f"input{number}", split) for number in range(2 if self.record["pair"] else 1)]
        return [[text[:-1].tolist() for text in row] for row in zip(*texts, strict=True)]

    def _items(self, name: str, split: str) -> list[Any]:
        items = data_utils.load_indexed_dataset(str(self.folder / name / split), None, "mmap")
        return [items[number] for number in range(len(items))]

    @cached_property
    def gold(self) -> dict[str, list[int]]:
        return {split: self.labels(split) for split in self.tests}

    @cached_property
    def groups(self) -> list[str]:
        """Return the group of text lengths to which each test row belongs."""
        return [group(sum(map(len, row))) for split in self.tests for row in self.words(split)]

    def value(self, metric: str, answers: Classes, split: str) -> float:
        """Return a metric of a test set in percent."""
        return 100 * classification.METRICS[metric](answers[split], self.gold[split])

    def score(self, answers: Classes) -> float:
        """Return the mean over metrics and test sets in percent."""
        return mean(self.value(metric, answers, split) for split in self.tests for metric in self.metrics)

    def by_length(self, answers: Classes) -> dict[str, float]:
        """Return the accuracy in percent for each group of text lengths that has rows."""
        gold = [label for labels in self.gold.values() for label in labels]
        predicted = [answer for split in self.gold for answer in answers[split]]
        right = np.equal(gold, predicted)
        groups = np.array(self.groups)
        order = dict.fromkeys(map(group, range(1, LENGTHS[-1] + 2)))
        return {name: 100 * float(right[groups == name].mean()) for name in order if name in groups}


def group(length: int) -> str:
    """Return the name of the group to which a text length belongs, such as `6-10`."""
    ranges = (f"{low + 1}-{high}" for low, high in pairwise([0, *LENGTHS]) if length <= high)
    return next(ranges, f"{LENGTHS[-1] + 1}+")


# --- baselines


def bags(rows: list[list[list[int]]], words: int) -> csr_matrix:
    """Return a matrix [rows, texts x words] with 1 for each word that a text contains, otherwise 0."""
    entries = [(n, k * words + word) for n, row in enumerate(rows) for k, text in enumerate(row) for word in set(text)]
    where = np.array(entries, dtype=np.int64).reshape(-1, 2)
    shape = (len(rows), words * max(map(len, rows)))
    return csr_matrix((np.ones(len(where)), (where[:, 0], where[:, 1])), shape=shape)


def baselines(rows: Rows) -> dict[str, float]:
    """Return the scores of always answering the most frequent label, and of logistic regression on a bag of words."""
    words, train = rows.record["words"] + FIRST, rows.labels("train")
    majority = Counter(train).most_common(1)[0][0]
    model = LogisticRegression(max_iter=1000).fit(bags(rows.words("train"), words), train)
    answers = {split: model.predict(bags(rows.words(split), words)).tolist() for split in rows.tests}
    constant = {split: [majority] * len(labels) for split, labels in rows.gold.items()}
    return {"most frequent label": rows.score(constant), "bag of words": rows.score(answers)}


# --- models


@torch.no_grad()
def predict(trained: Loaded, split: str) -> list[int]:
    """Return the predicted class of each row of a split."""
    task = trained.task
    task.load_dataset(split)
    options = {"max_tokens": TOKENS, "required_batch_size_multiple": 1, "disable_iterator_cache": True}
    classes: dict[int, int] = {}
    for batch in task.get_batch_iterator(task.dataset(split), **options).next_epoch_itr(shuffle=False):
        moved = utils.move_to_cuda(batch) if trained.on_gpu else batch
        head = task.cfg.classification_head_name
        logits, _ = trained.model(**moved["net_input"], features_only=True, classification_head_name=head)
        classes.update(zip(batch["id"].tolist(), logits.argmax(1).tolist(), strict=True))
    return [classes[number] for number in range(len(classes))]


def evaluate(rows: Rows, trained: Loaded, predictions: Path, submission: Path) -> dict[str, float]:
    """Return the scores of a model, and write its predictions.

    Args:
        rows: Rows of the data set.
        trained: Trained model.
        predictions: Folder for a file with the id, the label and the predicted label of each test row.
        submission: Folder for the predictions on GLUE's unlabelled test sets, in the format of GLUE's server.
    """
    names = rows.record["labels"]
    answers = {split: predict(trained, split) for split in (*rows.tests, *rows.unlabelled)}
    ids = {split: read(rows.folder / f"{split}.ids") for split in answers}
    with whole_folder(predictions) as partial:
        for split, gold in rows.gold.items():
            table = zip(ids[split], gold, answers[split], strict=True)
            lines = (f"{row}\t{names[label]}\t{names[answer]}" for row, label, answer in table)
            write(partial / f"{split}.tsv", ["row\tlabel\tanswer", *lines])
    for split in rows.unlabelled:
        text = "".join(f"{row}\t{names[answer]}\n" for row, answer in zip(ids[split], answers[split], strict=True))
        write_whole(submission / SUBMISSIONS.get((rows.name, split), f"{rows.name}.tsv"), f"index\tprediction\n{text}")
    accuracy = {f"accuracy, {name}": rows.value("accuracy", answers, name) for name in rows.tests}
    by_length = {f"{LENGTH}{name}": value for name, value in rows.by_length(answers).items()}
    return {"score": rows.score(answers), **accuracy, **by_length}


def differs(rows: Rows) -> list[str]:
    """Return in which respects the rows are not the paper's."""
    texts, items = [], {split: facts["items"] for split, facts in rows.record["splits"].items()}
    if rows.name in ("SST-2", "QNLI", "QQP", "MNLI"):
        texts.append("GLUE's development set, while the paper does not name its set (probably the server's test set)")
    used = (items["train"] + items["valid"], sum(items[split] for split in rows.tests))
    if used != (expected := PUBLISHED.get(rows.name, used)):
        texts.append("{:,} rows for training and {:,} for the test, not {:,} and {:,}".format(*used, *expected))
    return texts


def draw(rows: Rows, scores: Mapping[str, Sequence[Mapping[str, float]]], path: Path) -> None:
    """Draw the accuracy by text length, with a line for each encoding: the mean over its models."""
    counts = Counter(rows.groups)
    names = [name.removeprefix(LENGTH) for name in next(iter(scores.values()))[0] if name.startswith(LENGTH)]
    means = {
        encoding: [mean(model[LENGTH + name] for model in models) for name in names]
        for encoding, models in scores.items()
    }
    labels = ("number of words in the text (number of rows)", "accuracy in percent")
    draw_groups([f"{name}\n({counts[name]})" for name in names], means, labels, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--run", type=Path, required=True, metavar="DIR", help="Output folder of the recipe.")
    add("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    args = parser.parse_args()
    run, sets = args.run, dict[str, Rows]()
    scores: dict[str, dict[str, list[dict[str, float]]]] = {}
    for model in finished(run):
        rows = sets.setdefault(model.item, Rows(run / "data-bin" / model.item))
        checkpoint = run / "checkpoints" / model.name / "checkpoint_best.pt"
        trained = load(checkpoint, {"data": str(rows.folder)}, cpu=args.cpu)
        submission = run / "submission" / model.name.removeprefix(f"{model.item}.")
        facts = evaluate(rows, trained, run / "predictions" / model.name, submission)
        facts["best update"] = updates(checkpoint)
        write_whole(run / "scores" / f"{model.name}.json", json.dumps(facts, indent=1) + "\n")
        scores.setdefault(model.item, {}).setdefault(model.encoding, []).append(facts)
    results: dict[str, dict[str, dict[str, float]]] = {}
    for item, rows in sets.items():
        draw(rows, scores[item], run / f"lengths.{item}.png")
        for name, score in baselines(rows).items():
            results.setdefault(name, {})[item] = {"score": score}
    departures = [f"{item}\t{text}\n" for item, rows in sets.items() for text in differs(rows)]
    write_whole(run / "differs.tsv", "".join(departures))
    write_whole(run / "baselines.json", json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
