"""Test ROUGE-L and the other scores of questions against values computed by hand and against rouge-score."""

from __future__ import annotations

import itertools
import random
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest
from oracles.oracle_ways import oracle

from fairseq_posenc import metrics
from fairseq_posenc.metrics.rouge import of_units

WORDS = "what who the a of in city king ?".split()


def drawn(rng: random.Random, most: int) -> list[str]:
    return rng.choices(WORDS, k=rng.randint(1, most))


# --- ROUGE-L


BY_HAND = tomllib.loads(Path(__file__).with_name("by_hand.toml").read_text("utf-8"))


@pytest.mark.parametrize(("hypothesis", "reference", "value"), BY_HAND["rouge"])
def test_values_computed_by_hand(hypothesis: str, reference: str, value: str) -> None:
    assert metrics.rouge_l(hypothesis, [reference]) == pytest.approx(float(Fraction(value)))


def test_coco_combines_the_best_precision_and_the_best_recall_of_different_references() -> None:
    value = (1 + 1.2**2) * 1.0 * 0.5 / (0.5 + 1.2**2 * 1.0)
    assert of_units(["a", "b"], [["a", "b", "c", "d", "e"], ["b", "c"]], "coco") == pytest.approx(value)
    assert of_units(["a", "b"], [["a", "b", "c", "d", "e"], ["b", "c"]]) == pytest.approx(2 * 0.4 / 1.4)


class Spaces:
    """Split texts at spaces for rouge-score, whose own tokenizer drops punctuation and letters that are not English."""

    def tokenize(self, text: str) -> list[str]:
        return text.split()


def test_rouge_score_says_the_same() -> None:
    scorer, rng = oracle("rouge_score.rouge_scorer").RougeScorer(["rougeL"], tokenizer=Spaces()), random.Random(7)
    for _ in range(300):
        hypothesis, *references = (" ".join(drawn(rng, 15)) for _ in range(1 + rng.randint(1, 3)))
        theirs = max(scorer.score(reference, hypothesis)["rougeL"].fmeasure for reference in references)
        assert metrics.rouge_l(hypothesis, references, units="spaces") == pytest.approx(theirs, abs=1e-12)


def test_chinese_is_compared_by_characters() -> None:
    assert metrics.units_of("他在NBA 2K？", "characters") == [*"他在nba2k？"]
    assert metrics.rouge_l("谁是王？", ["王是谁？"], units="characters") == pytest.approx(2 / 4)
    assert metrics.rouge_l("谁是王？", ["王是谁？"]) == pytest.approx(
        1 / 2
    )  # the Chinese characters are one word, and the mark is another


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.rouge_l("a", []), "at least one reference"),
        (lambda: metrics.rouge_l("a", ["a"], variant="f2"), "variant 'f2' of ROUGE-L is unknown"),
        (lambda: metrics.mean_rouge_l([], []), "no texts to score"),
        (lambda: metrics.score(["a"], [["a"]], [1, 2]), "argument 3 is longer"),
    ],
)
def test_bad_arguments_are_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# --- all scores


def test_a_source_is_scored_once_with_all_its_questions() -> None:
    groups = metrics.grouped(["x", "x", "y"], [["a", "b"], ["a", "c"], ["d"]], ["one", "one", "two"])
    assert groups == metrics.GroupedText(["x", "y"], [["a", "b", "c"], ["d"]])
    scores = metrics.score(["Who is it?", "who is it?", "Who is it?"], [["Who is it?"], ["Why?"], ["why?"]], [1, 1, 2])
    assert (scores.sources, scores.items, scores.distinct) == (2, 3, 0.5)
    assert scores.rouge_l == pytest.approx((1 + 2 / 6) / 2)


def test_a_perfect_output_has_the_highest_scores() -> None:
    questions = ["What is the first city of the king ?", "Who was in the old city , and why ?"]
    scores = metrics.score(questions, [[question, "What?"] for question in questions], range(2))
    assert (scores.rouge_l, scores.rouge_l_coco, scores.distinct) == (1.0, 1.0, 1.0)
    assert (scores.bleu, scores.chrf) == (pytest.approx(100), pytest.approx(100))
    lower = metrics.score(
        [question.lower() for question in questions], [[question] for question in questions], range(2)
    )
    assert lower.bleu == pytest.approx(100)
    assert "tok:13a" in lower.bleu_signature
    assert "case:lc" in lower.chrf_signature


def test_bleu_is_that_of_sacrebleu_with_all_references() -> None:
    from sacrebleu.metrics import BLEU

    texts = ["the king of the city is who ?", "what was in the old town ?"]
    references = [["who is the king of the city ?", "the king is who ?"], ["what was the old town ?"]]
    scores = metrics.score(texts, references, range(2), "spaces")
    streams = [[references[0][0], references[1][0]], [references[0][1], None]]
    expected = BLEU(tokenize="none", lowercase=True).corpus_score(texts, streams)
    assert scores.bleu == pytest.approx(expected.score)
    chinese = metrics.score(["谁是他的父亲？"], [["他的父亲是谁？"]], [0], "characters")
    assert "tok:zh" in chinese.bleu_signature


# --- baselines


def test_the_beginning_of_a_sentence() -> None:
    assert metrics.first_units("The U.S. is big.", 5) == "The U.S."
    assert metrics.first_units("上海是中国的城市。", 4, "characters") == "上海是中"
    assert metrics.first_units("-LRB- afc -RRB- won .", 2, "spaces") == "-LRB- afc"
    assert metrics.first_units("", 3) == ""


def test_the_best_constant_is_better_than_all_short_ones() -> None:
    questions = ["what is the king ?", "what was the city ?", "who is the king of it ?", "what is in the city ?"]
    best = metrics.best_constant(questions)
    references = [[question] for question in questions]
    value = metrics.mean_rouge_l([best] * 4, references)
    units = sorted({unit for question in questions for unit in question.split()})
    for size in (1, 2, 3):
        for words in itertools.product(units, repeat=size):
            assert metrics.mean_rouge_l([" ".join(words)] * 4, references) <= value + 1e-9
    assert metrics.best_constant(["谁？", "谁是？"], "characters") == "谁？"
    # This search also has to replace and to delete words.
    assert metrics.best_constant(["it why who", "who who who is", "is who who it"]) == "who who it why who"
