"""Reimplement the scoring scripts of SQuAD 1.1 and MLQA from their definitions.

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
