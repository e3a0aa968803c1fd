"""Test that beam search finds the same hypotheses with a cache, without a cache, and by a search of our own.

Sources have padding on the left, as in translation. Prefixes of targets have no padding there, because fairseq's
generator starts every hypothesis with </s> in column 0. If prefixes differ in length, search goes on freely after the
shorter one.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention import KeyValueCache

from .beams import BEAM, EOS, FIRST, check_same, generate, lively, prompts, search
from .cases import CASES, Models, in_turn, serves
from .support import WORDS

IN_CI, LONG = 20, 200
ALONE = 4  # number of prompts that are searched one by one, without a batch and padding

Case = tuple[str, str | None]
"""Name and arguments of an encoding."""
DECODERS = [case for case in CASES if serves(*case, causal=True)]
every_decoder = pytest.mark.parametrize("case", in_turn(DECODERS))


def check_generator(model: Any, task: Any, number: int, alone: int) -> None:
    """Compare batches of prompts with fairseq's search without a cache, and single prompts with `search`."""
    sources = prompts(number)
    expected = generate(model, task, sources, cached=False)
    assert len({str(best) for best in expected}) > number / 2, "the model says the same of everything"
    for left in (True, False):
        check_same(generate(model, task, sources, cached=True, left=left), expected)
    check_same(expected[:alone], [search(model, source) for source in sources[:alone]])


def check_prefixes(model: Any, task: Any, number: int) -> None:
    """Check generation with prefixes: the first one to three words of each translation are fixed."""
    random = torch.Generator().manual_seed(number)
    prefixes = [torch.randint(FIRST, FIRST + WORDS, (1 + row % 3,), generator=random) for row in range(number)]
    sources = prompts(number)
    actual = generate(model, task, sources, cached=True, prefixes=prefixes)
    for best, prefix in zip(actual, prefixes, strict=True):
        assert all(tokens[: len(prefix)] == prefix.tolist() for tokens, _ in best)
    expected = [search(model, source, prefix.tolist()) for source, prefix in zip(sources, prefixes, strict=True)]
    check_same(actual, expected)


@every_decoder
def test_a_cache_changes_no_hypothesis(models: Models, case: Case) -> None:
    model, task = models[case]
    check_generator(lively(model), task, IN_CI, ALONE)


@every_decoder
def test_prefixes_change_nothing_of_that(models: Models, case: Case) -> None:
    model, task = models[case]
    check_prefixes(lively(model), task, ALONE)


@pytest.mark.long
@every_decoder
def test_a_cache_changes_no_hypothesis_of_many(models: Models, case: Case) -> None:
    model, task = models[case]
    check_generator(lively(model), task, LONG, LONG)
    check_prefixes(lively(model), task, IN_CI)


# -- the checks can fail ----------------------------------------------------------------------------------


REORDER = KeyValueCache.reorder


def stays(cache: KeyValueCache, order: Tensor) -> None:
    """Reorder the cache by sentences, but not by beams."""
    REORDER(cache, order // BEAM * BEAM + torch.arange(len(order)) % BEAM)


def test_a_cache_that_does_not_follow_its_beams_is_caught(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = models["shaw", None]
    monkeypatch.setattr(KeyValueCache, "reorder", stays)
    with pytest.raises(AssertionError, match="instead of"):
        check_generator(lively(model), task, ALONE, 0)


def test_ties_are_excused_but_rare() -> None:
    best = [[([word, EOS], -1.0 - rank) for rank, word in enumerate(range(FIRST, FIRST + BEAM))] for _ in range(20)]
    tied = [[(tokens, -1.0) for tokens, _ in hypotheses] for hypotheses in best]
    check_same(tied, [tied[0][1::-1] + tied[0][2:], *tied[1:]])
    with pytest.raises(AssertionError, match="are tied"):
        check_same(tied, [hypotheses[::-1] for hypotheses in tied])
    with pytest.raises(AssertionError, match="instead of"):
        check_same(best, [best[0][::-1], *best[1:]])
