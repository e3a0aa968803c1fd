"""Test the invented sentences, whose meaning depends on word order, and the claim of the demo."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from recipes.lib.invented import sentences

ROOT = Path(__file__).resolve().parents[3]
SIZES = {"train": 1500, "valid": 50, "test": 100}


def test_a_seed_makes_the_same_sentences_and_no_split_has_those_of_another() -> None:
    splits = sentences.generate(SIZES, seed=1)
    assert sentences.generate(SIZES, seed=1) == splits != sentences.generate(SIZES, seed=2)
    sources = [pair.source for pairs in splits.values() for pair in pairs]
    assert len(sources) == len(set(sources)) == sum(SIZES.values())


def words(text: str) -> list[str]:
    return text.lower().rstrip(".").split()


def test_swapped_nouns_give_the_same_words_but_a_different_translation() -> None:
    """Swap subject and object, so that a model which sees a bag of words cannot tell the two sentences apart."""
    lexicon = sentences.Lexicon()
    grammar = sentences.Grammar(random.Random(1), lexicon)
    for _ in range(300):
        subject, verb, object_, adverb = grammar.parts()
        original = sentences.put(lexicon, subject, verb, object_, adverb)
        swapped = sentences.put(lexicon, object_, verb, subject, adverb)
        assert Counter(words(original.source)) == Counter(words(swapped.source))
        assert original.target != swapped.target


def test_the_verb_agrees_with_a_subject_that_stands_far_away() -> None:
    lexicon = sentences.Lexicon()
    dog, cats, queen = (lexicon.noun(index, plural=index == 1) for index in (0, 1, 10))
    clause = sentences.Clause(1, sentences.Phrase(cats), head_acts=True)
    pair = sentences.put(lexicon, sentences.Phrase(dog, clause=clause), 0, sentences.Phrase(queen), None)
    assert pair.source == "The dog that chased the cats saw the queen."
    assert len({noun.ending for noun in (dog, cats, queen)}) == 3
    assert words(pair.target)[-1] == lexicon.verbs[0] + "t" + dog.ending


def test_the_translation_is_a_function_of_the_ordered_sentence() -> None:
    """Check that each source sentence has one target. Different sources may have the same target."""
    first, second = (sentences.generate({"train": 4000}, seed=seed)["train"] for seed in (1, 2))
    known = dict(first)
    shared = [pair for pair in second if pair.source in known]
    assert shared
    assert all(known[pair.source] == pair.target for pair in shared)


@pytest.mark.parametrize(
    ("none", "best", "status"), [(12.5, 99.0, 0), (0.0, 99.0, 1), (85.0, 90.0, 1), (None, 90.0, 1)]
)
def test_the_demo_fails_if_its_claim_is_wrong(none: float | None, best: float, status: int, tmp_path: Path) -> None:
    """Run the end of recipes/demo/run.sh on invented scores, without its steps."""
    (tmp_path / "scores").mkdir()
    for name, value in (("none", none), ("rope", best)):
        facts = json.dumps({"BLEU": value, "±": 1.0} if value is not None else {}, indent=1)
        (tmp_path / "scores" / f"en-inv.{name}.s1.json").write_text(facts)
    claim = (ROOT / "recipes/demo/run.sh").read_text(encoding="utf-8").partition('translation_wmt18/run.sh"\n')[2]
    start = f"set -euo pipefail; preset=demo dry_run='' pos_enc=none,rope output={tmp_path}\n"
    start += 'fail() { echo "$*"; exit 1; }\n'
    ran = subprocess.run(["bash", "-c", start + claim], capture_output=True, text=True, check=False)
    assert ran.returncode == status, ran.stderr
    assert status == 0 or f"the best encoding has {best} BLEU" in ran.stdout
