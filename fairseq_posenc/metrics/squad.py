"""Score extracted answers by the rules of SQuAD 1.1, SQuAD 2.0 and MLQA.

Sources: Rajpurkar et al. 2016 and 2018 (evaluate-v1.1.py, evaluate-v2.0.py), and Lewis et al. 2020
(mlqa_evaluation_v1.py). XQuAD and TyDiQA-GoldP use SQuAD 1.1's rules, which remove only English articles, in every
language.

No maintained library implements all three sets of rules. transformers' squad_metrics has only the rules of SQuAD 2.0,
and a test compares its results with those of this file. The rules differ: if neither text has words, F1 is 0 in SQuAD
1.1 and 1 in SQuAD 2.0. MLQA's rules remove the articles and punctuation of each language, and count each Chinese
character as a word.
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

from ..core.refusal import InputError

V11, V20, MLQA = "squad-v1.1", "squad-v2.0", "mlqa"

_ENGLISH = r"\b(a|an|the)\b"
#: articles that MLQA removes, by language; the pattern of Arabic is copied from its script
_ARTICLES = {
    "en": _ENGLISH,
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "hi": "",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
    "zh": "",
}
#: characters that MLQA's script treats as Chinese
_CHINESE = re.compile(r"([\u4e00-\u9fa5])")


@dataclass(frozen=True)
class Rules:
    """Compare two texts by the rules of a data set.

    Args:
        name: Name of the rules, one of `RULES`.
        articles: Pattern of the articles to remove; empty for none.
        punctuation: Characters to remove.
        mixed: Whether each Chinese character counts as a word.
    """

    name: str
    articles: str
    punctuation: frozenset[str]
    mixed: bool = False

    def words(self, text: str) -> list[str]:
        """Return the words of a text in lower case, without punctuation and articles."""
        text = "".join(letter for letter in text.lower() if letter not in self.punctuation)
        text = re.sub(self.articles, " ", text) if self.articles else text
        return (_CHINESE.sub(r" \1 ", text) if self.mixed else text).split()

    def exact(self, gold: str, predicted: str) -> float:
        """Return 1 if both texts have the same words, otherwise 0."""
        return float(self.words(gold) == self.words(predicted))

    def f1(self, gold: str, predicted: str) -> float:
        """Return the F1 score of the words, ignoring their order.

        If either text has no words, SQuAD 2.0 scores 1 when both have none and 0 otherwise; the other rules always
        score 0.
        """
        theirs, ours = self.words(gold), self.words(predicted)
        if self.name == V20 and not (theirs and ours):
            return float(theirs == ours)
        same = sum((Counter(theirs) & Counter(ours)).values())
        if not same:
            return 0.0
        precision, recall = same / len(ours), same / len(theirs)
        return 2 * precision * recall / (precision + recall)

    def references(self, name: str, answers: Sequence[str]) -> list[str]:
        """Return the answers with which a prediction is compared.

        SQuAD 2.0 leaves out answers without words; if no answer is left, the empty text is correct.

        Raises:
            ValueError: `answers` is empty, but only the rules of SQuAD 2.0 allow a question without an answer.
        """
        if self.name != V20:
            if not answers:
                problem = f"question {name} has no answer, but the rules of {self.name} need at least one"
                raise InputError(f"{problem}. Leave the question out, or use the rules of {V20}.")
            return list(answers)
        return [answer for answer in answers if self.words(answer)] or [""]


@cache
def _marks() -> frozenset[str]:
    """Return the punctuation characters of Unicode and of ASCII."""
    marks = (letter for letter in map(chr, range(sys.maxunicode)) if unicodedata.category(letter).startswith("P"))
    return frozenset(marks) | frozenset(string.punctuation)


#: names of the rules; MLQA has one set per language
RULES = (V11, V20, *(f"{MLQA}-{language}" for language in _ARTICLES))


def rules(name: str) -> Rules:
    """Return the rules called `name` for comparing texts.

    Args:
        name: Name of the rules, one of `RULES`.
    Raises:
        ValueError: The name is unknown.
    """
    if name not in RULES:
        raise InputError(f"rules {name!r} are unknown. Choose from {', '.join(RULES)}.")
    if name in (V11, V20):
        return Rules(name, _ENGLISH, frozenset(string.punctuation))
    language = name.removeprefix(f"{MLQA}-")
    return Rules(name, _ARTICLES[language], _marks(), mixed=language == "zh")


class Scores(NamedTuple):
    """Hold each question's EM and F1 (0 to 1), the highest over its answers, and the questions without a prediction."""

    exact: dict[str, float]
    f1: dict[str, float]
    unanswered: list[str]


def margin(score: float, baseline: float, questions: float) -> float:
    """Return by how many percentage points a model's score must exceed a baseline's score to count as better.

    This margin is an upper bound of two standard errors of the difference between the scores. The bound holds because a
    mean of numbers from 0 to 1 varies most if every number is either 0 or 1.
    """
    spread = sum(part * (1 - part) for part in (score / 100, baseline / 100))
    return 200 * math.sqrt(spread / max(questions, 1))


def scores(golds: Mapping[str, Sequence[str]], predictions: Mapping[str, str], comparison: Rules) -> Scores:
    """Compute the scores of each question.

    A question without a prediction scores 0; under the rules of SQuAD 2.0 it is an error, as in SQuAD's script.

    Args:
        golds: Lists of answers, keyed by question; an empty list if the question has no answer.
        predictions: Predicted texts, keyed by question; an empty text predicts that there is no answer.
        comparison: Rules for comparing texts.
    Raises:
        ValueError: There are no questions, a question has no answers (see `Rules.references`), or a question of SQuAD
            2.0 has no prediction.
    """
    if not golds:
        raise InputError("there are no questions to score. Check that the split is not empty.")
    missing = [name for name in golds if name not in predictions]
    if missing and comparison.name == V20:
        problem = f"{len(missing)} of {len(golds)} questions have no prediction: {', '.join(missing[:5])}"
        raise InputError(f"{problem}. Add a prediction for each question; an empty text stands for no answer.")
    exact, f1 = dict.fromkeys(golds, 0.0), dict.fromkeys(golds, 0.0)
    for name, answers in golds.items():
        references = comparison.references(name, answers)
        if name in predictions:
            exact[name] = max(comparison.exact(gold, predictions[name]) for gold in references)
            f1[name] = max(comparison.f1(gold, predictions[name]) for gold in references)
    return Scores(exact, f1, missing)


def mean(values: Mapping[str, float], names: Sequence[str] | None = None) -> float:
    """Return the mean in percent, over all questions or over the questions in `names`."""
    chosen = list(values) if names is None else names
    return 100.0 * sum(values[name] for name in chosen) / len(chosen)


def evaluate(golds: Mapping[str, Sequence[str]], predictions: Mapping[str, str], name: str) -> dict[str, float]:
    """Return EM and F1 in percent, named as in the data set's own script.

    The names are `exact_match` and `f1`. For SQuAD 2.0, the names are `exact` and `f1`, and there are separate scores
    of the questions with an answer (such as HasAns_exact) and of those without an answer (such as NoAns_exact).

    Args:
        golds: Correct answers, as in `scores`.
        predictions: Predicted texts, as in `scores`.
        name: Name of the rules, one of `RULES`.
    Raises:
        ValueError: The name is unknown, or `scores` refuses the other arguments.
    """
    return means(golds, scores(golds, predictions, rules(name)), name)


def means(golds: Mapping[str, Sequence[str]], result: Scores, name: str) -> dict[str, float]:
    """Return the result of `evaluate` for scores that `scores` has already computed with the rules `name`."""
    if name != V20:
        return {"exact_match": mean(result.exact), "f1": mean(result.f1), "total": len(golds)}
    scores_by_name = {"exact": mean(result.exact), "f1": mean(result.f1), "total": float(len(golds))}
    for part, has in (("HasAns", True), ("NoAns", False)):
        names = [question for question, answers in golds.items() if bool(answers) == has]
        if names:
            scores_by_name |= {f"{part}_exact": mean(result.exact, names), f"{part}_f1": mean(result.f1, names)}
            scores_by_name[f"{part}_total"] = len(names)
    return scores_by_name
