"""Choose the odds above which a model predicts that a question has no answer, as in SQuAD 2.0's evaluate-v2.0.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..core.refusal import InputError
from .squad import V20, Scores, means, rules, scores


class Best(NamedTuple):
    """Hold the best score in percent and its threshold; odds above the threshold mean that there is no answer."""

    score: float
    threshold: float


def applied(predictions: Mapping[str, str], odds: Mapping[str, float], threshold: float) -> dict[str, str]:
    """Return the predictions, with an empty text where the odds of no answer are above the threshold.

    Raises:
        ValueError: A prediction has no odds.
    """
    _check(predictions, odds)
    return {name: "" if odds[name] > threshold else text for name, text in predictions.items()}


def best(
    golds: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    odds: Mapping[str, float],
    values: Mapping[str, float],
) -> Best:
    """Return the highest mean score that any threshold reaches, and that threshold, like SQuAD 2.0's find_best_thresh.

    The search starts with empty answers to all questions, and then adds the predicted answers one by one, in increasing
    order of their odds.

    Args:
        golds: Correct answers, as in `squad.scores`.
        predictions: Predictions before any threshold.
        odds: Odds that a question has no answer, keyed by question.
        values: EM or F1 of each prediction, from 0 to 1.
    Raises:
        ValueError: A prediction has no odds.
    """
    _check(predictions, odds)
    reached = sum(not answers for answers in golds.values())
    current, score, threshold = float(reached), float(reached), 0.0
    for name in sorted(odds, key=lambda name: odds[name]):
        if name not in values:
            continue
        # answering a question without an answer costs a point; an empty prediction costs nothing
        current += values[name] if golds[name] else -float(bool(predictions[name]))
        if current > score:
            score, threshold = current, odds[name]
    return Best(100.0 * score / len(values), threshold)


def at(golds: Mapping[str, Sequence[str]], result: Scores, odds: Mapping[str, float], threshold: float) -> Scores:
    """Apply a threshold to scores of predictions, like the function apply_no_ans_threshold of SQuAD 2.0's script.

    A question whose odds are above the threshold scores 1 if it has no answer, otherwise 0. `squad.scores` may
    score an empty prediction differently: there, it is also correct if all answers consist of articles and punctuation.
    """

    def silenced(values: Mapping[str, float]) -> dict[str, float]:
        return {name: float(not golds[name]) if odds[name] > threshold else value for name, value in values.items()}

    return Scores(silenced(result.exact), silenced(result.f1), result.unanswered)


def evaluate(
    golds: Mapping[str, Sequence[str]], predictions: Mapping[str, str], odds: Mapping[str, float], threshold: float
) -> dict[str, float]:
    """Return EM and F1 at `threshold`, and each score at its best threshold, named as in SQuAD 2.0's script.

    Args:
        golds: Correct answers, as in `squad.scores`.
        predictions: Predictions before any threshold.
        odds: Odds that a question has no answer, keyed by question.
        threshold: Odds above which a prediction counts as empty.
    Raises:
        ValueError: A prediction has no odds, or `squad.scores` refuses the arguments.
    """
    _check(predictions, odds)
    result = scores(golds, predictions, rules(V20))
    exact, f1 = (best(golds, predictions, odds, values) for values in (result.exact, result.f1))
    return {
        **means(golds, at(golds, result, odds, threshold), V20),
        "best_exact": exact.score,
        "best_exact_thresh": exact.threshold,
        "best_f1": f1.score,
        "best_f1_thresh": f1.threshold,
    }


def _check(predictions: Mapping[str, str], odds: Mapping[str, float]) -> None:
    missing = [name for name in predictions if name not in odds]
    if missing:
        problem = f"{len(missing)} predictions have no odds for the case without an answer: {', '.join(missing[:5])}"
        raise InputError(f"{problem}. Give odds for every prediction.")
