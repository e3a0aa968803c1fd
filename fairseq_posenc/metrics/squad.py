"""Extracted answers as the sets' own scripts compare them: SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018; their
evaluate-v1.1.py and evaluate-v2.0.py), MLQA (Lewis et al. 2020; mlqa_evaluation_v1.py).

XQuAD and TyDiQA-GoldP are scored by SQuAD 1.1's rules, in every language with English articles.

No maintained library has all three. transformers' squad_metrics has SQuAD 2.0's rules only (a test compares this file
with it): by 1.1's an answer without words has F1 0, where 2.0's gives 1 if both have none, and MLQA's rules have
articles and punctuation of each language, and Chinese characters as words.
"""

from __future__ import annotations

import math
import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

V11, V20, MLQA = "squad-v1.1", "squad-v2.0", "mlqa"

_ENGLISH = r"\b(a|an|the)\b"
#: of MLQA, by language; Arabic's pattern is as its script has it
_ARTICLES = {
    "en": _ENGLISH,
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "hi": "",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
    "zh": "",
}
#: what MLQA's script takes for Chinese
_CHINESE = re.compile(r"([\u4e00-\u9fa5])")


@dataclass(frozen=True)
class Rules:
    """How two texts are compared.

    Args:
        name: of `RULES`. articles: a pattern of what is left out; empty: nothing. punctuation: characters that are left
            out. mixed: each Chinese character is a word.
    """

    name: str
    articles: str
    punctuation: frozenset[str]
    mixed: bool = False

    def words(self, text: str) -> list[str]:
        """In lower case, without punctuation, then without articles."""
        text = "".join(letter for letter in text.lower() if letter not in self.punctuation)
        text = re.sub(self.articles, " ", text) if self.articles else text
        return (_CHINESE.sub(r" \1 ", text) if self.mixed else text).split()

    def exact(self, gold: str, predicted: str) -> float:
        """1 where they have the same words, else 0."""
        return float(self.words(gold) == self.words(predicted))

    def f1(self, gold: str, predicted: str) -> float:
        """Of the words, whatever their order; where one has none, in SQuAD 2.0 1 if neither has, otherwise 0."""
        theirs, ours = self.words(gold), self.words(predicted)
        if self.name == V20 and not (theirs and ours):
            return float(theirs == ours)
        same = sum((Counter(theirs) & Counter(ours)).values())
        if not same:
            return 0.0
        precision, recall = same / len(ours), same / len(theirs)
        return 2 * precision * recall / (precision + recall)

    def references(self, name: str, answers: Sequence[str]) -> list[str]:
        """The answers that a prediction may have; in SQuAD 2.0 those that have words, and where none has, no answer.

        Raises:
            ValueError: no answers, where there have to be some.
        """
        if self.name != V20:
            if not answers:
                raise ValueError(f"question {name} has no answer: {self.name} has none such, {V20} has")
            return list(answers)
        return [answer for answer in answers if self.words(answer)] or [""]


@cache
def _marks() -> frozenset[str]:
    """Unicode's punctuation, and ASCII's."""
    found = (letter for letter in map(chr, range(sys.maxunicode)) if unicodedata.category(letter).startswith("P"))
    return frozenset(found) | frozenset(string.punctuation)


#: SQuAD's two, and MLQA's, a language each
RULES = (V11, V20, *(f"{MLQA}-{language}" for language in _ARTICLES))


def rules(name: str) -> Rules:
    """Args:
        name: of `RULES`.
    Raises:
        ValueError: another name.
    """
    if name not in RULES:
        raise ValueError(f"no rules {name!r}; there are: {', '.join(RULES)}")
    if name in (V11, V20):
        return Rules(name, _ENGLISH, frozenset(string.punctuation))
    language = name.removeprefix(f"{MLQA}-")
    return Rules(name, _ARTICLES[language], _marks(), mixed=language == "zh")


class Scores(NamedTuple):
    """By question, from 0 to 1, of the answer that fits best. unanswered: questions without a prediction."""

    exact: dict[str, float]
    f1: dict[str, float]
    unanswered: list[str]


def margin(score: float, baseline: float, questions: float) -> float:
    """How far above a baseline's score a model's has to be: two standard errors of their difference, at most; all in
    percent. A mean of numbers from 0 to 1 spreads most where all are one or the other.
    """
    spread = sum(part * (1 - part) for part in (score / 100, baseline / 100))
    return 200 * math.sqrt(spread / max(questions, 1))


def scores(golds: Mapping[str, Sequence[str]], predictions: Mapping[str, str], how: Rules) -> Scores:
    """Of each question.

    A question without a prediction has 0; SQuAD 2.0's script ends there, as this does.

    Args:
        golds: the answers by question, none of one that has no answer. predictions: a text each, empty for no answer.
    Raises:
        ValueError: no questions, one without answers (see `Rules.references`) or without a prediction (SQuAD 2.0).
    """
    if not golds:
        raise ValueError("no questions to score")
    missing = [name for name in golds if name not in predictions]
    if missing and how.name == V20:
        raise ValueError(f"{len(missing)} of {len(golds)} questions have no prediction: {', '.join(missing[:5])}")
    exact, f1 = dict.fromkeys(golds, 0.0), dict.fromkeys(golds, 0.0)
    for name, answers in golds.items():
        references = how.references(name, answers)
        if name in predictions:
            exact[name] = max(how.exact(gold, predictions[name]) for gold in references)
            f1[name] = max(how.f1(gold, predictions[name]) for gold in references)
    return Scores(exact, f1, missing)


def mean(found: Mapping[str, float], names: Sequence[str] | None = None) -> float:
    """In percent, of all questions or some."""
    chosen = list(found) if names is None else names
    return 100.0 * sum(found[name] for name in chosen) / len(chosen)


def evaluate(golds: Mapping[str, Sequence[str]], predictions: Mapping[str, str], name: str) -> dict[str, float]:
    """EM and F1 in percent under the script's own names.

    They are `exact_match` and `f1`; in SQuAD 2.0 `exact`, `f1`, and both of those with (HasAns) and without (NoAns).

    Args:
        name: of `RULES`.
    Raises:
        ValueError: see `scores`.
    """
    return means(golds, scores(golds, predictions, rules(name)), name)


def means(golds: Mapping[str, Sequence[str]], found: Scores, name: str) -> dict[str, float]:
    """Of `scores` by these rules, what `evaluate` returns."""
    if name != V20:
        return {"exact_match": mean(found.exact), "f1": mean(found.f1), "total": len(golds)}
    made = {"exact": mean(found.exact), "f1": mean(found.f1), "total": float(len(golds))}
    for part, has in (("HasAns", True), ("NoAns", False)):
        names = [one for one, answers in golds.items() if bool(answers) == has]
        if names:
            made |= {f"{part}_exact": mean(found.exact, names), f"{part}_f1": mean(found.f1, names)}
            made[f"{part}_total"] = len(names)
    return made
