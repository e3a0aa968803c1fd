"""Compute EM and F1 of predictions and of baselines without a model, by the rules of each dataset's official script."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_posenc.data import spans
from fairseq_posenc.data.question_pieces import Words
from fairseq_posenc.metrics import null_threshold, squad

TEXTS = "texts.json"  # SQuAD 2.0: predictions before the threshold is applied
ODDS = "null_odds.json"  # the score of the empty answer minus the score of the best span
GOLD = "gold answers"  # the baseline that uses the gold answers as predictions
SPAN = "span that shares the most words with the question"
CHINESE = ("\u4e00", "\u9fff")
Scores = dict[str, float]


def golds(folder: Path, split: str) -> dict[str, list[str]]:
    """Return the gold answers to all questions of a split, including unusable ones (with a misplaced answer, say)."""
    return {question.id: question.answers for question in spans.questions(folder, split)}


def has_answers(folder: Path, split: str, rules: str) -> bool:
    """Return whether any gold answer has words. If XTREME withholds answers, the file has empty texts instead."""
    scoring = squad.rules(rules)
    return any(scoring.words(answer) for answers in golds(folder, split).values() for answer in answers)


def scored(folder: Path, split: str, predictions: Path, threshold: float, rules: str | None = None) -> Scores:
    """Return EM and F1; for SQuAD 2.0, also the best EM and F1 that a threshold can reach, and these thresholds.

    Args:
        folder: Folder that prepare_spans.py wrote.
        predictions: Folder with the files that recipes.lib.finetuning.questions writes.
        threshold: For SQuAD 2.0: largest odds of no answer with which a question still gets an answer.
        rules: One of `squad.RULES`; None means the rules of the prepared version of SQuAD.
    """
    rules, gold = rules or f"squad-v{spans.record(folder)['version']}", golds(folder, split)

    def read(name: str) -> Any:
        return json.loads((predictions / name).read_text("utf-8"))

    if rules == squad.V20:
        return named(null_threshold.evaluate(gold, read(TEXTS), read(ODDS), threshold))
    return named(squad.evaluate(gold, read("predictions.json"), rules))


def named(scores: Scores) -> Scores:
    """Return the scores with EM under the name `em`; SQuAD's scripts call EM `exact_match` or `exact`."""
    return {"em": scores.get("exact_match", scores.get("exact", 0.0)), **scores}


# --- baselines without a model


def baselines(folder: Path, split: str, rules: str | None = None) -> dict[str, Scores]:
    """Return the scores of each baseline, keyed by its name.

    The baselines are the empty answer (SQuAD 2.0 only), the gold answers, and a span of the text. The gold answers must
    score 100, which tests the scorer. The span of the text has the mean length of a gold answer, and no other
    span of this length shares more words with the question.

    Raises:
        SystemExit: The gold answers score less than 100.
    """
    rules, gold = rules or f"squad-v{spans.record(folder)['version']}", golds(folder, split)
    questions, texts = spans.questions(folder, split), spans.contexts(folder, split)
    cut = Words(units([item.question for item in questions]), cased=False)
    train = "train" if "train" in spans.splits(folder) else split
    length = mean_length([item.answers for item in spans.questions(folder, train)], cut)
    answers = {item.id: overlap(texts[item.context].text, item.question, length, cut) for item in questions}
    by_name = {SPAN: answers}
    by_name |= {"no answer": dict.fromkeys(gold, "")} if rules == squad.V20 else {}
    scores = {name: named(squad.evaluate(gold, predictions, rules)) for name, predictions in by_name.items()}
    return {**scores, GOLD: _score_gold(gold, rules)}


def _score_gold(gold: dict[str, list[str]], rules: str) -> Scores:
    """Return the scores of the gold answers; exit if a gold answer that contains words does not score 100."""
    scoring = squad.rules(rules)
    first = {name: next(filter(scoring.words, texts), texts[0] if texts else "") for name, texts in gold.items()}
    scores = named(squad.evaluate(gold, first, rules))
    if not (math.isclose(scores["em"], 100) and math.isclose(scores["f1"], 100)):
        empty = [name for name, answers in gold.items() if answers and not any(map(scoring.words, answers))]
        why = f" Answers without words have F1 0 by {rules}: {', '.join(empty[:5])}." if empty else ""
        print(f"The gold answers score EM {scores['em']:.4f} and F1 {scores['f1']:.4f}, not 100.{why}", flush=True)
        if len(empty) != round((100 - scores["f1"]) * len(gold) / 100) or not math.isclose(scores["em"], 100):
            raise SystemExit("error: the gold answers must score 100, so the scorer is wrong. Please report this bug.")
    return scores


def units(texts: list[str]) -> str:
    """Return the unit of the texts: `chars` if more than a quarter of their letters are Chinese, otherwise `words`."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    chinese = sum(CHINESE[0] <= letter <= CHINESE[1] for letter in letters)
    return "chars" if 4 * chinese > len(letters) else "words"


def mean_length(answers: list[list[str]], cut: Words) -> int:
    """Return the mean length, in words, of the first gold answer to each question."""
    lengths = [len(cut.cut(texts[0])) for texts in answers if texts]
    return max(1, round(sum(lengths) / max(len(lengths), 1)))


def overlap(context: str, question: str, length: int, cut: Words) -> str:
    """Return the first of the spans with `length` words that share the most words with the question."""
    in_question, words = {word.name for word in cut.cut(question)}, cut.cut(context)
    if len(words) <= length:
        return context.strip()
    shared = np.cumsum([0, *(word.name in in_question for word in words)])
    first = int((shared[length:] - shared[:-length]).argmax())
    return context[words[first].start : words[first + length - 1].end]
