"""What answers score that no model gave: the span of mean length in which most words of the question are, in SQuAD 2.0
also no answer at all. And the right answers themselves, which have to have 100."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_posenc.data import spans
from fairseq_posenc.data.question_pieces import Words
from fairseq_posenc.metrics import squad
from recipes.lib.stages import write_atomically

from .score import golds, named, rules_of
from .settings import GOLD

CHINESE = ("\u4e00", "\u9fff")


def units(texts: list[str]) -> str:
    """chars where a fourth of the letters is Chinese, else words (`question_pieces.JOINED`)."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    chinese = sum(CHINESE[0] <= letter <= CHINESE[1] for letter in letters)
    return "chars" if 4 * chinese > len(letters) else "words"


def overlap(context: str, question: str, length: int, cut: Words) -> str:
    """The first span of so many words that has most words of the question."""
    asked, words = {word.name for word in cut.cut(question)}, cut.cut(context)
    if len(words) <= length:
        return context.strip()
    shared = np.cumsum([0, *(word.name in asked for word in words)])
    first = int((shared[length:] - shared[:-length]).argmax())
    return context[words[first].start : words[first + length - 1].end]


def right(answers: dict[str, list[str]], rules: str) -> dict[str, str]:
    """An answer of each question, one with words where there is one."""
    how = squad.rules(rules)
    return {name: next(filter(how.words, some), some[0] if some else "") for name, some in answers.items()}


def mean_length(answers: list[list[str]], cut: Words) -> int:
    """Of first answers, in words."""
    lengths = [len(cut.cut(some[0])) for some in answers if some]
    return max(1, round(sum(lengths) / max(len(lengths), 1)))


def baselines(folder: Path, split: str, rules: str | None = None) -> dict[str, dict[str, Any]]:
    """By name, the scores.

    Args:
        rules: of `squad.RULES`; unset: of the version that was prepared.
    Raises:
        SystemExit: the right answers have less than 100.
    """
    rules, wanted = rules or rules_of(folder), golds(folder, split)
    asked, texts = spans.questions(folder, split), spans.contexts(folder, split)
    cut = Words(units([one.question for one in asked]), cased=False)
    learned = "train" if "train" in spans.splits(folder) else split
    length = mean_length([one.answers for one in spans.questions(folder, learned)], cut)
    found = {one.id: overlap(texts[one.context].text, one.question, length, cut) for one in asked}
    made = {f"{length} words that are most in the question": found}
    made |= {"no answer": dict.fromkeys(wanted, "")} if rules == squad.V20 else {}
    scores = {name: named(squad.evaluate(wanted, one, rules)) for name, one in made.items()}
    gold = named(squad.evaluate(wanted, right(wanted, rules), rules))
    if not (math.isclose(gold["em"], 100) and math.isclose(gold["f1"], 100)):
        how = squad.rules(rules)
        empty = [name for name, some in wanted.items() if some and not any(map(how.words, some))]
        told = f"; answers without words, whose F1 is 0 by {rules}: {', '.join(empty[:5])}" if empty else ""
        print(f"right answers have EM {gold['em']:.4f} and F1 {gold['f1']:.4f}, not 100{told}", flush=True)
        if len(empty) != round((100 - gold["f1"]) * len(wanted) / 100) or not math.isclose(gold["em"], 100):
            raise SystemExit("error: right answers have to have 100: this is a fault of the scores")
    return {**scores, GOLD: gold}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="what prepare_spans.py made")
    parser.add_argument("--split", default="valid")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    found = baselines(asked.data, asked.split)
    for name, facts in found.items():
        print(f"{name}: EM {facts['em']:.2f}, F1 {facts['f1']:.2f}", flush=True)
    write_atomically(asked.output, json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
