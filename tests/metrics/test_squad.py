"""Test scores of answers against values computed by hand, and against the data sets' own scripts."""

from __future__ import annotations

import random
import tomllib
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from oracles.oracle_ways import oracle
from support_squad_scripts import MLQA, script_v11

from fairseq_posenc.metrics import null_threshold, squad
from fairseq_posenc.metrics.squad import RULES, V11, V20, evaluate, rules

# --- by hand


BY_HAND = tomllib.loads(Path(__file__).with_name("by_hand.toml").read_text("utf-8"))


@pytest.mark.parametrize(("gold", "predicted", "exact", "f1"), BY_HAND["squad"])
def test_squad_by_hand(gold: str, predicted: str, exact: str, f1: str) -> None:
    how, score = rules(V11), Fraction(f1)
    assert how.exact(gold, predicted) == Fraction(exact)
    assert how.f1(gold, predicted) == pytest.approx(float(score))
    score = score if how.words(gold) or how.words(predicted) else Fraction(1)
    assert rules(V20).f1(gold, predicted) == pytest.approx(float(score))


@pytest.mark.parametrize(("language", "gold", "predicted", "f1"), BY_HAND["mlqa"])
def test_mlqa_by_hand(language: str, gold: str, predicted: str, f1: str) -> None:
    assert rules(f"mlqa-{language}").f1(gold, predicted) == pytest.approx(float(Fraction(f1)))


def test_the_best_answer_counts_for_each_score() -> None:
    result = evaluate({"a": ["one two", "two three four"]}, {"a": "two three"}, V11)
    assert result == {"exact_match": 0, "f1": pytest.approx(80), "total": 1}


def test_a_question_without_a_prediction_scores_0() -> None:
    assert evaluate({"a": ["x"], "b": ["y"]}, {"a": "x"}, V11)["exact_match"] == 50
    with pytest.raises(ValueError, match="1 of 2 questions have no prediction: b"):
        evaluate({"a": ["x"], "b": ["y"]}, {"a": "x"}, V20)


def test_no_answer_is_an_answer_in_squad_2() -> None:
    golds = {"a": [], "b": [], "c": ["x"], "d": ["the"]}
    result = evaluate(golds, {"a": "", "b": "x", "c": "", "d": ""}, V20)
    expected = {"exact": 50, "f1": 50, "total": 4, "NoAns_exact": 50, "NoAns_f1": 50, "NoAns_total": 2}
    expected |= {"HasAns_exact": 50, "HasAns_f1": 50, "HasAns_total": 2}  # an answer without words counts as no answer
    assert result == expected


def test_missing_answers_and_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="question a has no answer"):
        evaluate({"a": []}, {"a": ""}, V11)
    with pytest.raises(ValueError, match="no questions to score"):
        evaluate({}, {}, V11)
    with pytest.raises(ValueError, match=r"'mlqa-fr' are unknown. Choose from squad-v1\.1, squad-v2\.0, mlqa-en"):
        rules("mlqa-fr")


# --- compared with the scripts

LETTERS = [*"aAnNtThHeE tthe anx.,-–'\"!?€$ \t\n12éßİ日本の。", *"the | a |an |e\u0301".split("|")]
LETTERS += [*"《》 NBA ﬁ½①ال", " ال", "của", " der ", "la ", "👍", "\u200b", "\u3000", "\xa0", "\u2028"]


def text(rng: random.Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(0, 9)))


def drawn(seed: int, *, without: bool) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return random answers and predictions, which are often parts of an answer."""
    rng = random.Random(seed)
    golds: dict[str, list[str]] = {}
    predictions = {}
    for number in range(60):
        least = 0 if without and rng.random() < 0.4 else 1
        golds[str(number)] = [text(rng) for _ in range(least * rng.randint(1, 3))]
        kind = rng.random()
        near = rng.choice(golds[str(number)] or [""])
        predictions[str(number)] = text(rng) if kind < 0.4 else near[: rng.randint(0, 9)].upper() if kind < 0.9 else ""
    return golds, predictions


@pytest.mark.parametrize("seed", range(8))
def test_the_scripts_agree_on_random_text(seed: int) -> None:
    golds, predictions = drawn(seed, without=False)
    del predictions["7"]
    result = evaluate(golds, predictions, V11)
    assert {key: result[key] for key in ("exact_match", "f1")} == pytest.approx(script_v11(golds, predictions))
    for language in MLQA:
        result = evaluate(golds, predictions, f"mlqa-{language}")
        expected = script_v11(golds, predictions, language)
        assert {key: result[key] for key in expected} == pytest.approx(expected), language
    assert {f"mlqa-{language}" for language in MLQA} | {V11, V20} == {*RULES}


@pytest.mark.parametrize("seed", range(8))
def test_hugging_face_agrees_on_squad_2(seed: int) -> None:
    """Compare with squad_evaluate of transformers, at several thresholds and at the best one of each score."""
    peer = oracle("transformers.data.metrics.squad_metrics")
    golds, predictions = drawn(seed, without=True)
    golds |= {"8": ["the"], "9": ["?", "x"]}
    answers = {name: [{"text": answer} for answer in texts] for name, texts in golds.items()}
    examples = [SimpleNamespace(qas_id=name, answers=texts) for name, texts in answers.items()]
    exact, f1 = peer.get_raw_scores(examples, predictions)
    ours = squad.scores(golds, predictions, rules(V20))
    assert (ours.exact, ours.f1) == (exact, pytest.approx(f1))
    assert 0 < sum(f1.values()) < len(f1)
    rng = random.Random(seed)
    odds = {name: rng.choice([0.0, -1.0, 2.5, round(rng.gauss(0, 4), 1)]) for name in golds}  # some are equal
    for threshold in (-1.0, 0.0, 2.5, 1e9):
        result = null_threshold.evaluate(golds, predictions, odds, threshold)
        assert result == pytest.approx(dict(peer.squad_evaluate(examples, predictions, odds, threshold)))


# --- the threshold


def test_an_empty_prediction_is_wrong_if_an_answer_without_words_exists() -> None:
    """The script checks whether there are answers, not whether they have words. It accepts an empty text there."""
    golds, predictions = {"a": ["the"], "b": ["x"], "c": []}, {"a": "y", "b": "y", "c": "y"}
    odds = dict.fromkeys(golds, 1.0)
    assert null_threshold.evaluate(golds, predictions, odds, 0)["f1"] == pytest.approx(100 / 3)
    assert evaluate(golds, null_threshold.applied(predictions, odds, 0), V20)["f1"] == pytest.approx(200 / 3)
    assert null_threshold.evaluate(golds, dict.fromkeys(golds, "the"), odds, 1)["f1"] == pytest.approx(200 / 3)


def test_a_prediction_without_odds_is_refused() -> None:
    with pytest.raises(ValueError, match="1 predictions have no odds for the case without an answer: b"):
        null_threshold.evaluate({"a": [], "b": []}, {"a": "x", "b": "y"}, {"a": 0.0}, 0)
    with pytest.raises(ValueError, match="1 predictions have no odds for the case without an answer: b"):
        null_threshold.applied({"a": "x", "b": "y"}, {"a": 0.0}, 0)
    assert null_threshold.applied({"a": "x", "b": "y"}, {"a": 0.1, "b": 0.0}, 0) == {"a": "", "b": "y"}


@pytest.mark.parametrize(
    ("score", "baseline", "questions", "expected"),
    [(80, 50, 100, 200 * (0.41 / 100) ** 0.5), (100, 0, 50, 0), (50, 50, 0, 200 * 0.5**0.5)],
)
def test_margins_by_hand(score: float, baseline: float, questions: float, expected: float) -> None:
    """The variances of numbers that are 0 or 1 are 0.8 * 0.2 = 0.16 and 0.5 * 0.5 = 0.25."""
    assert squad.margin(score, baseline, questions) == pytest.approx(expected)
