"""Reimplement the scoring scripts of SQuAD 1.1, SQuAD 2.0 and MLQA from their definitions.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections import Counter

Golds = dict[str, list[str]]
Scores = dict[str, float]


def script_words(text: str, articles: str, marks: set[str]) -> str:
    """Normalise like normalize_answer: lower case, then punctuation marks, then articles, then spaces."""
    text = "".join(ch for ch in text.lower() if ch not in marks)
    return " ".join(re.sub(articles, " ", text).split())


ENGLISH = r"\b(a|an|the)\b"
ASCII = set(string.punctuation)
MARKS = {chr(i) for i in range(sys.maxunicode) if unicodedata.category(chr(i)).startswith("P")} | ASCII
MLQA = {
    "en": ENGLISH,
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "hi": None,
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
    "zh": None,
}


def script_mlqa(text: str, language: str) -> str:
    """Normalise like normalize_answer of mlqa_evaluation_v1.py."""
    text = "".join(ch for ch in text.lower() if ch not in MARKS)
    if MLQA[language]:
        text = re.sub(str(MLQA[language]), " ", text)
    if language != "zh":
        return " ".join(part for part in text.split() if part.strip() != "")
    tokens, run = [], ""
    for ch in text:
        if re.search(r"[\u4e00-\u9fa5]", ch) or ch in MARKS:
            tokens += run.split()
            run = ""
            tokens.append(ch)
        else:
            run += ch
    return " ".join(part for part in [*tokens, *run.split()] if part.strip() != "")


def script_f1(gold: list[str], predicted: list[str]) -> float:
    same = sum((Counter(predicted) & Counter(gold)).values())
    if same == 0:
        return 0
    precision, recall = 1.0 * same / len(predicted), 1.0 * same / len(gold)
    return (2 * precision * recall) / (precision + recall)


def script_f1_v2(gold: str, predicted: str) -> float:
    """Return the F1 of compute_f1."""
    theirs, ours = (script_words(text, ENGLISH, ASCII).split() if text else [] for text in (gold, predicted))
    if len(theirs) == 0 or len(ours) == 0:
        return int(theirs == ours)
    return script_f1(theirs, ours)


def script_v11(golds: Golds, predictions: dict[str, str], language: str | None = None) -> Scores:
    """Score like evaluate-v1.1.py, or like MLQA's script for a language."""
    exact = f1 = total = 0.0

    def words(text: str) -> str:
        return script_mlqa(text, language) if language else script_words(text, ENGLISH, ASCII)

    for name, answers in golds.items():
        total += 1
        if name not in predictions:
            continue
        ours = words(predictions[name])
        exact += max(ours == words(answer) for answer in answers)
        f1 += max(script_f1(words(answer).split(), ours.split()) for answer in answers)
    return {"exact_match": 100.0 * exact / total, "f1": 100.0 * f1 / total}


def script_raw_v2(golds: Golds, predictions: dict[str, str]) -> tuple[Scores, Scores]:
    """Score like get_raw_scores of evaluate-v2.0.py."""
    exact, f1 = {}, {}
    for name, answers in golds.items():
        texts = [answer for answer in answers if script_words(answer, ENGLISH, ASCII)] or [""]
        ours = predictions[name]
        exact[name] = max(
            int(script_words(answer, ENGLISH, ASCII) == script_words(ours, ENGLISH, ASCII)) for answer in texts
        )
        f1[name] = max(script_f1_v2(answer, ours) for answer in texts)
    return exact, f1


def script_thresholded(golds: Golds, scores: Scores, odds: Scores, threshold: float) -> Scores:
    """Apply the threshold like apply_no_ans_threshold."""
    thresholded = {}
    for name, score in scores.items():
        thresholded[name] = float(not bool(golds[name])) if odds[name] > threshold else score
    return thresholded


def script_best(golds: Golds, predictions: dict[str, str], scores: Scores, odds: Scores) -> tuple[float, float]:
    """Return the best threshold like find_best_thresh."""
    has = {name: bool(answers) for name, answers in golds.items()}
    current = best = sum(1 for one in has if not has[one])
    threshold = 0.0
    for name in sorted(odds, key=lambda one: odds[one]):
        if name not in scores:
            continue
        change = scores[name] if has[name] else -1 if predictions[name] else 0
        current += change
        if current > best:
            best, threshold = current, odds[name]
    return 100.0 * best / len(scores), threshold
