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


ASCII = set(string.punctuation)
MARKS = {chr(i) for i in range(sys.maxunicode) if unicodedata.category(chr(i)).startswith("P")} | ASCII
MLQA = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "hi": None,
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
    "zh": None,
}


def words(text: str, language: str | None) -> list[str]:
    """Normalise like normalize_answer of evaluate-v1.1.py or, for a language, of mlqa_evaluation_v1.py."""
    text = "".join(ch for ch in text.lower() if ch not in (MARKS if language else ASCII))
    if articles := MLQA[language or "en"]:
        text = re.sub(articles, " ", text)
    return (re.sub(r"([\u4e00-\u9fa5])", r" \1 ", text) if language == "zh" else text).split()


def script_f1(gold: list[str], predicted: list[str]) -> float:
    same = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * same / (len(predicted) + len(gold)) if same else 0.0


def script_v11(golds: Golds, predictions: dict[str, str], language: str | None = None) -> Scores:
    """Score like evaluate-v1.1.py, or like MLQA's script for a language."""
    exact = f1 = 0.0
    for name in golds.keys() & predictions.keys():
        ours, answers = words(predictions[name], language), [words(answer, language) for answer in golds[name]]
        exact += max(ours == answer for answer in answers)
        f1 += max(script_f1(answer, ours) for answer in answers)
    return {"exact_match": 100.0 * exact / len(golds), "f1": 100.0 * f1 / len(golds)}
