"""Score the questions of a run's models and of two baselines, and show examples; or score a file of questions.

python -m recipes.question_generation.score --data DIR --run results/question_generation
python -m recipes.question_generation.score --data DIR --hypotheses FILE   # one question per line
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fairseq_posenc.models  # noqa: F401  registers the types that checkpoints may contain
from fairseq_posenc import metrics
from fairseq_posenc.core.training_log import read_validations
from fairseq_posenc.core.writing import write_whole
from fairseq_posenc.data import question_pieces
from recipes.lib.checkpoints import updates
from recipes.lib.lines import read
from recipes.lib.runs import finished, training_log

RECORD = "questions.json"  # describes a folder that prepare_questions.py wrote
UNKNOWN = "<unk>"
#: Length of the beginning of a sentence that serves as a question, by the unit of comparison.
FIRST = {"words": 10, "spaces": 10, "characters": 20}
SHOWN = 20  # number of sources in the gallery
Item = dict[str, Any]


class Questions:
    """Read the questions of a split of a prepared folder.

    Raises:
        SystemExit: The folder has no such split.
    """

    def __init__(self, folder: Path, split: str) -> None:
        self.folder = folder
        self.items = self.of_split(split)
        self.unit = str(json.loads((folder / RECORD).read_text(encoding="utf-8"))["units"])

    def of_split(self, split: str) -> list[Item]:
        path = self.folder / f"{split}.surface.jsonl"
        if not path.is_file():
            raise SystemExit(f"error: {path}: this file does not exist. Prepare the folder with prepare_questions.py.")
        return [json.loads(line) for line in read(path)]

    def score(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the scores of questions, one for each item, in percent.

        Raises:
            SystemExit: The numbers of questions and items differ.
        """
        if len(texts) != len(self.items):
            problem = f"there are {len(texts)} questions, but the split has {len(self.items)} items"
            raise SystemExit(f"error: {problem}. Generate one question for each item.")
        references, sources = ([item[name] for item in self.items] for name in ("references", "source"))
        scores = metrics.score(texts, references, sources, self.unit)
        return {
            "ROUGE-L": 100 * scores.rouge_l,
            "beta 1.2": 100 * scores.rouge_l_coco,
            "BLEU-4": scores.bleu,
            "chrF": scores.chrf,
            "distinct": 100 * scores.distinct,
            "signature": f"BLEU: {scores.bleu_signature}; chrF: {scores.chrf_signature}",
        }

    def copied(self, outputs: Sequence[Sequence[str]]) -> dict[str, float]:
        """Return the percentage of generated pieces that the dictionary lacks: those copied, and those left unknown."""
        total = max(sum(map(len, outputs)), 1)
        pairs = zip(outputs, self.items, strict=True)
        copied = sum(piece in item["unknown"] for pieces, item in pairs for piece in pieces)
        left = sum(pieces.count(UNKNOWN) for pieces in outputs)
        return {"unknown words copied": 100 * copied / total, "unknown words left": 100 * left / total}

    def baselines(self) -> dict[str, dict[str, Any]]:
        """Return the scores of the sentences' first words, and of a constant question chosen on the training set."""
        count = FIRST[self.unit]
        constant = metrics.best_constant([item["question"] for item in self.of_split("train")], self.unit)
        first = [metrics.first_units(item["sentence"], count, self.unit) for item in self.items]
        kind = "characters" if self.unit == "characters" else "words"
        return {
            f"first {count} {kind} of the sentence": self.score(first),
            f"always '{constant}'": self.score([constant] * len(self.items)),
        }

    def gallery(self, questions: Mapping[str, Sequence[str]]) -> str:
        """Return Markdown with the answer, the references and each model's question for some sentences of the split."""
        first = sorted({item["source"]: n for n, item in reversed([*enumerate(self.items)])}.values())
        shown = min(SHOWN, len(first))
        parts = ["# Generated questions", "The sentences are evenly spaced in the split, whatever their scores."]
        for number in (first[k * len(first) // shown] for k in range(shown)):
            item = self.items[number]
            lines = [f"**{plain(item['sentence'])}**"]
            lines += [f"- answer: {plain(item['answer'])}"] if "answer" in item else []
            lines += [f"- reference: {plain(text)}" for text in item["references"]]
            lines += [f"- {name}: {plain(texts[number])}" for name, texts in questions.items()]
            parts.append("\n".join(lines))
        return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """Return a text on one line, in which Markdown finds no tags."""
    return " ".join(text.split()).replace("<", "&lt;")


def generated(path: Path) -> list[list[str]]:
    """Return the pieces of each generated question, in the order of the items.

    fairseq-generate writes the questions in lines like `H-7<tab>score<tab>pieces`, in the order of its batches.

    Raises:
        SystemExit: The question of an item is missing.
    """
    rows = (line.split("\t", 2) for line in read(path) if line.startswith("H-"))
    questions = {int(name[2:]): pieces.split(" ") for name, _, pieces in rows}
    missing = [str(number) for number in range(max(questions, default=-1) + 1) if number not in questions]
    if missing:
        problem = f"the questions of {len(missing)} items are missing (the first are {', '.join(missing[:5])})"
        raise SystemExit(f"error: {path}: {problem}. Run fairseq-generate again.")
    return [[piece for piece in questions[number] if piece] for number in range(len(questions))]


def validated(log: Path, update: int) -> dict[str, float]:
    """Return the ROUGE-L of greedy questions at the first and last validation, and the mean probability of copying."""
    rouge, copied = (read_validations(log, f"valid_{name}") for name in ("rouge_l", "copied"))
    facts = {"first greedy ROUGE-L": 100 * rouge[0][1], "last greedy ROUGE-L": 100 * rouge[-1][1]} if rouge else {}
    return facts | ({"copied": dict(copied)[update]} if update in dict(copied) else {})


def score_run(questions: Questions, run: Path, split: str) -> dict[str, list[str]]:
    """Write the scores and the questions of each model, and return the questions of each encoding's first model."""
    join = question_pieces.load(questions.folder).join
    shown: dict[str, list[str]] = {}
    for model in finished(run):
        outputs = generated(run / "generated" / model.name / f"generate-{split}.txt")
        texts = [" ".join(join(pieces).split()) for pieces in outputs]
        best = updates(run / "checkpoints" / model.name / "checkpoint_best.pt")
        scores = questions.score(texts) | questions.copied(outputs) | {"best update": best}
        scores |= validated(training_log(run, model.name), best)
        write_whole(run / "questions" / f"{model.name}.txt", "".join(f"{text}\n" for text in texts))
        write_whole(run / "scores" / f"{model.name}.json", json.dumps(scores, indent=1) + "\n")
        shown.setdefault(f"{model.encoding}, {model.item}" if model.item else model.encoding, texts)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="DIR", help="Output folder of prepare_questions.py.")
    add("--split", default="valid", metavar="NAME", help="Split to score (default: valid).")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", type=Path, metavar="DIR", help="Output folder of the recipe.")
    what.add_argument("--hypotheses", type=Path, metavar="FILE", help="File with questions, whose scores are printed.")
    args = parser.parse_args()
    questions = Questions(args.data, args.split)
    if args.hypotheses:
        print(json.dumps(questions.score([*read(args.hypotheses)]), indent=1))
        return
    write_whole(args.run / "gallery.md", questions.gallery(score_run(questions, args.run, args.split)))
    write_whole(args.run / "baselines.json", json.dumps(questions.baselines(), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
