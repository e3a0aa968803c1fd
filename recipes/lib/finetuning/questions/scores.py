"""Compute EM and F1 of predictions and of baselines without a model, by the rules of each dataset's official script."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_posenc.data import spans
from fairseq_posenc.data.question_pieces import Words
from fairseq_posenc.metrics import null_threshold, squad
from recipes.lib.stages import read_json

from .files import GOLD, TEXTS, THRESHOLD

CHINESE = ("\u4e00", "\u9fff")


def golds(folder: Path, split: str) -> dict[str, list[str]]:
    """Return the gold answers to all questions of a split, including unusable ones (with a misplaced answer, say)."""
    return {question.id: question.answers for question in spans.questions(folder, split)}


def rules_of(folder: Path) -> str:
    """Return the scoring rules, one of `squad.RULES`, for the prepared version of SQuAD."""
    return f"squad-v{spans.record(folder)['version']}"


def with_em(scores: dict[str, float]) -> dict[str, float]:
    """Return the scores with EM under the name `em`; SQuAD's scripts call EM `exact_match` or `exact`."""
    return {"em": scores.get("exact_match", scores.get("exact", 0.0)), **scores}


def scored(gold: dict[str, list[str]], predictions: Path, rules: str) -> dict[str, Any]:
    """Return EM and F1; for SQuAD 2.0, also the best EM and F1 that a threshold can reach, and these thresholds.

    Args:
        gold: Gold answers, keyed by question id.
        predictions: A folder with the files that answers.py writes, or a single predictions.json. A single file
            is scored without looking for the best thresholds.
        rules: One of `squad.RULES`.
    """
    alone = predictions.is_file()
    if rules == squad.V20 and not alone:
        texts, odds, threshold = (read_json(predictions / name) for name in (TEXTS, "null_odds.json", THRESHOLD))
        scores = null_threshold.evaluate(gold, texts, odds, threshold)
    else:
        scores = squad.evaluate(gold, read_json(predictions if alone else predictions / "predictions.json"), rules)
    return {**with_em(scores), "rules": rules}


# --- baselines without a model


def baselines(folder: Path, split: str, rules: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the scores of each baseline, keyed by its name.

    The baselines are the empty answer (SQuAD 2.0 only), the gold answers, and a span of the text. The gold answers must
    score 100, which tests the scorer. The span of the text has the mean length of a gold answer, and no other
    span of this length shares more words with the question.

    Args:
        folder: Folder that prepare_spans.py wrote.
        split: Name of the split to score.
        rules: Scoring rules from `squad.RULES`; None means the rules of the prepared version of SQuAD.
    Raises:
        SystemExit: The gold answers score less than 100.
    """
    rules, gold = rules or rules_of(folder), golds(folder, split)
    questions, texts = spans.questions(folder, split), spans.contexts(folder, split)
    cut = Words(units([item.question for item in questions]), cased=False)
    train = "train" if "train" in spans.splits(folder) else split
    length = mean_length([item.answers for item in spans.questions(folder, train)], cut)
    answers = {item.id: overlap(texts[item.context].text, item.question, length, cut) for item in questions}
    by_name = {f"span of {length} words that shares the most words with the question": answers}
    by_name |= {"no answer": dict.fromkeys(gold, "")} if rules == squad.V20 else {}
    scores = {name: with_em(squad.evaluate(gold, predictions, rules)) for name, predictions in by_name.items()}
    return {**scores, GOLD: _score_gold(gold, rules)}


def _score_gold(gold: dict[str, list[str]], rules: str) -> dict[str, float]:
    """Return the scores of the gold answers; exit if a gold answer that contains words does not score 100."""
    scores = with_em(squad.evaluate(gold, first_with_words(gold, rules), rules))
    if not (math.isclose(scores["em"], 100) and math.isclose(scores["f1"], 100)):
        scoring = squad.rules(rules)
        empty = [name for name, answers in gold.items() if answers and not any(map(scoring.words, answers))]
        why = f" Answers without words have F1 0 by {rules}: {', '.join(empty[:5])}." if empty else ""
        print(f"The gold answers score EM {scores['em']:.4f} and F1 {scores['f1']:.4f}, not 100.{why}", flush=True)
        if len(empty) != round((100 - scores["f1"]) * len(gold) / 100) or not math.isclose(scores["em"], 100):
            raise SystemExit("error: the gold answers must score 100, so the scorer is wrong. Please report this bug.")
    return scores


def first_with_words(gold: dict[str, list[str]], rules: str) -> dict[str, str]:
    """Return one gold answer to each question: the first answer that contains words, or else the first answer."""
    scoring = squad.rules(rules)
    return {name: next(filter(scoring.words, answers), answers[0] if answers else "") for name, answers in gold.items()}


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
