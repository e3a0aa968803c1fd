"""From which odds on a question has no answer: SQuAD 2.0's script (evaluate-v2.0.py), its threshold and its search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .squad import V20, Scores, means, rules, scores


class Best(NamedTuple):
    """A score in percent, and the threshold that has it: odds above it say that there is no answer."""

    score: float
    threshold: float


def applied(predictions: Mapping[str, str], odds: Mapping[str, float], threshold: float) -> dict[str, str]:
    """The predictions, empty where the odds of no answer are above the threshold.

    Raises:
        ValueError: a prediction without odds.
    """
    _check(predictions, odds)
    return {name: "" if odds[name] > threshold else text for name, text in predictions.items()}


def best(
    golds: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    odds: Mapping[str, float],
    found: Mapping[str, float],
) -> Best:
    """The threshold with the best sum of scores (find_best_thresh): all questions start as not answered, and are
    answered one by one, in the order of their odds.

    Args:
        golds: as in `squad.scores`. predictions: before any threshold. odds: of no answer, each question's.
        found: EM or F1 of the predictions, from 0 to 1.
    Raises:
        ValueError: a prediction without odds.
    """
    _check(predictions, odds)
    reached = sum(not answers for answers in golds.values())
    current, score, threshold = float(reached), float(reached), 0.0
    for name in sorted(odds, key=lambda one: odds[one]):
        if name not in found:
            continue
        # an answer to what has none loses what silence had; silence loses nothing
        current += found[name] if golds[name] else -float(bool(predictions[name]))
        if current > score:
            score, threshold = current, odds[name]
    return Best(100.0 * score / len(found), threshold)


def at(golds: Mapping[str, Sequence[str]], found: Scores, odds: Mapping[str, float], threshold: float) -> Scores:
    """Scores of predictions before any threshold, at one (apply_no_ans_threshold): silence is right where no answer is
    given. That is not quite the score of an empty text, which is also right where no answer has words."""

    def silenced(some: Mapping[str, float]) -> dict[str, float]:
        return {name: float(not golds[name]) if odds[name] > threshold else one for name, one in some.items()}

    return Scores(silenced(found.exact), silenced(found.f1), found.unanswered)


def evaluate(
    golds: Mapping[str, Sequence[str]], predictions: Mapping[str, str], odds: Mapping[str, float], threshold: float
) -> dict[str, float]:
    """EM and F1 at a threshold, and the best ones with theirs, under the script's names.

    Args:
        predictions: before any threshold.
    Raises:
        ValueError: see `squad.scores`; a prediction without odds.
    """
    _check(predictions, odds)
    found = scores(golds, predictions, rules(V20))
    exact, f1 = (best(golds, predictions, odds, one) for one in (found.exact, found.f1))
    return {
        **means(golds, at(golds, found, odds, threshold), V20),
        "best_exact": exact.score,
        "best_exact_thresh": exact.threshold,
        "best_f1": f1.score,
        "best_f1_thresh": f1.threshold,
    }


def _check(predictions: Mapping[str, str], odds: Mapping[str, float]) -> None:
    missing = [name for name in predictions if name not in odds]
    if missing:
        raise ValueError(f"{len(missing)} predictions have no odds of no answer: {', '.join(missing[:5])}")
