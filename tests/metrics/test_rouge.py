"""Test ROUGE-L against values computed by hand, rouge-score, and a search through all subsequences."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from fairseq_posenc import metrics
from fairseq_posenc.metrics.rouge import of_units

WORDS = "what who the a of in city king ?".split()


def longest_common(a: list[str], b: list[str]) -> int:
    """Return the length of the longest common subsequence by trying all of them."""
    subsequences = {part for size in range(len(b) + 1) for part in itertools.combinations(b, size)}
    return max(size for size in range(len(a) + 1) if subsequences & {*itertools.combinations(a, size)})


def drawn(rng: random.Random, most: int) -> list[str]:
    return rng.choices(WORDS, k=rng.randint(1, most))


# --- ROUGE-L


def test_chinese_is_compared_by_characters() -> None:
    assert metrics.units_of("他在NBA 2K？", "characters") == [*"他在nba2k？"]
    assert metrics.rouge_l("谁是王？", ["王是谁？"], units="characters") == pytest.approx(2 / 4)
    assert metrics.rouge_l("谁是王？", ["王是谁？"]) == pytest.approx(
        1 / 2
    )  # the Chinese characters are one word, and the mark is another


def test_tokenised_text_is_compared_by_tokens() -> None:
    assert metrics.units_of("the -LRB- afc -RRB- ", "spaces") == ["the", "-lrb-", "afc", "-rrb-"]


@pytest.mark.parametrize("seed", range(20))
def test_the_longest_common_subsequence_is_found(seed: int) -> None:
    rng = random.Random(seed)
    a, b = drawn(rng, 8), drawn(rng, 8)
    assert of_units(a, [b]) == pytest.approx(2 * longest_common(a, b) / (len(a) + len(b)))


def test_five_thousand_pairs_take_seconds() -> None:
    rng = random.Random(3)
    hypotheses, references = ([" ".join(drawn(rng, 40)) for _ in range(5000)] for _ in range(2))
    began = time.process_time()
    metrics.mean_rouge_l(hypotheses, [[reference] for reference in references])
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.rouge_l("a", []), "at least one reference"),
        (lambda: metrics.rouge_l("a", ["a"], units="letters"), "units 'letters' are unknown"),
        (lambda: metrics.rouge_l("a", ["a"], variant="f2"), "variant 'f2' of ROUGE-L is unknown"),
        (lambda: metrics.mean_rouge_l([], []), "no texts to score"),
        (lambda: metrics.mean_rouge_l(["a"], []), "argument 2 is shorter"),
        (lambda: metrics.distinct([]), "there are no texts"),
        (lambda: metrics.best_constant([]), "no training questions"),
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
