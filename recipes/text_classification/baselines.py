"""Score two baselines on the test sets: the most frequent label, and logistic regression on a bag of words."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from recipes.lib.package import write_whole
from recipes.lib.stages import read_json

from . import scores


def bags(rows: list[list[list[int]]], words: int) -> csr_matrix:
    """Return a matrix [rows, texts x words] with 1 for each word that a text contains, otherwise 0."""
    entries = [
        (number, place * words + word)
        for number, row in enumerate(rows)
        for place, text in enumerate(row)
        for word in set(text)
    ]
    columns = words * max(map(len, rows))
    where = np.array(entries, dtype=np.int64).reshape(-1, 2)
    return csr_matrix((np.ones(len(where)), (where[:, 0], where[:, 1])), shape=(len(rows), columns))


def baselines(folder: Path, metrics: list[str], splits: list[str]) -> dict[str, float]:
    """Return the score of each baseline in percent."""
    record = read_json(folder / "glue.json")
    words = record["words"] + scores.FIRST
    train, gold = scores.labels(folder, "train"), {split: scores.labels(folder, split) for split in splits}
    majority = Counter(train).most_common(1)[0][0]
    model = LogisticRegression(max_iter=1000).fit(bags(scores.words(folder, "train"), words), train)
    answers = {split: model.predict(bags(scores.words(folder, split), words)).tolist() for split in splits}
    constant = {split: [majority] * len(gold[split]) for split in splits}
    return {
        "majority": round(scores.score(constant, gold, metrics), 2),
        "bag of words": round(scores.score(answers, gold, metrics), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="Folder of binary data.")
    parser.add_argument("--metrics", required=True, metavar="A,B", help="Metrics to average, such as accuracy,f1.")
    parser.add_argument("--splits", required=True, metavar="A,B", help="Test sets to score.")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    arguments = parser.parse_args()
    results = baselines(arguments.data, arguments.metrics.split(","), arguments.splits.split(","))
    write_whole(arguments.output, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
