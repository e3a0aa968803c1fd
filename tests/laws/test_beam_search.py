"""Test laws 3, 5 and 6 together: beam search with caches, memory and padding equals a search without them.

The other search computes every history again in each step, without padding. A history is a prompt and the tokens before
it. Legend: B prompts, W hypotheses per prompt, R = B W rows, T columns up to now, V words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_posenc.attention import KeyValueCache
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case, in_turn, without_options
from .compare import assert_close
from .scene import PAD, WORDS, Scene, embedded, new_caches, normal, padded, positions_of, run, use_path

pytestmark = pytest.mark.usefixtures("_new_memory_is_nan")  # caches grow in memory of their own

MEMORY, PROMPT, NEW, BEAM = 4, 5, 6, 4
#: Lengths of the histories: two reach into the memory, two are shorter than the prompt.
LENGTHS = [9, 2, 7, 4]
IN_CI, LONG = 20, 200
EXCUSED = 0.02

Step = Callable[[Tensor, Tensor | None], Tensor]
"""Log-probabilities [R, V] after tokens [R, T], which continue the rows [R] of the step before."""


def search(step: Step, history: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best continuations [B, W, NEW] of tokens [B, T] and their log-probabilities [B, W]."""
    tokens, scores = history, torch.zeros(len(history), 1, dtype=torch.float64)  # [R, T], [B, W]
    order: Tensor | None = None
    for _ in range(NEW):
        sums = scores.reshape(-1, 1) + step(tokens, order)  # [R, V]
        scores, best = sums.view(len(history), -1).topk(BEAM)  # of [B, W V]
        first = torch.arange(len(history))[:, None] * (len(tokens) // len(history))
        order = (first + best // WORDS).flatten()
        tokens = torch.cat([tokens[order], (best % WORDS).view(-1, 1)], 1)
    return tokens[:, -NEW:].unflatten(0, (-1, BEAM)), scores


@torch.no_grad()
def lively(stack: Stack) -> Stack:
    """Return the stack with content weights that keep the size of their inputs, and without biases.

    Biases could make the stack predict the same word after any other words.
    """
    random = torch.Generator().manual_seed(2)
    for module in stack.modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
        elif isinstance(module, nn.Linear):
            module.weight.copy_(normal(*module.weight.shape, generator=random) * 1.2 * module.in_features**-0.5)
            nn.init.zeros_(module.bias)
    return stack


def next_words(out: Tensor) -> Tensor:
    """Return log-probabilities of words, [..., d] -> [..., V], without padding and not tied to embeddings."""
    table = normal(out.shape[-1], WORDS, generator=torch.Generator().manual_seed(3)).to(out.dtype)
    return (out @ table).index_fill(-1, torch.tensor([PAD]), float("-inf")).log_softmax(-1)


def recomputed(stack: Stack) -> Step:
    """Return a step function that computes all columns again."""
    return lambda tokens, order: next_words(run(stack, tokens, "explicit")[:, -1])


@torch.no_grad()
def incremental(stack: Stack, history: Tensor, memory: int, path: str) -> Step:
    """Return a step function for new columns only; the first `memory` columns are an earlier segment."""
    caches = new_caches(stack)
    earlier = history[:, :memory]
    states = stack(embedded(earlier, stack.shape.dim), positions_of(earlier, stack))[1] if memory else None

    @torch.no_grad()
    def step(tokens: Tensor, order: Tensor | None) -> Tensor:
        for cache in caches if order is not None else []:
            cache.reorder(order)
        done = max(caches[0].length - memory, 0)
        segment, pads = tokens[:, memory:], tokens[:, :memory].eq(PAD)
        where = positions_of(segment, stack, cached=done, memory=memory, memory_padding=pads)
        use_path(stack, path)
        new = embedded(segment[:, done:], stack.shape.dim)
        return next_words(stack(new, where, memory=None if done else states, caches=caches)[0][:, -1])

    return step


def alone(stack: Stack, history: Tensor) -> tuple[Tensor, Tensor]:
    """Run each history without its padding, in batches of equal length."""
    words, scores = torch.empty(len(history), BEAM, NEW, dtype=torch.int64), torch.empty(len(history), BEAM).double()
    lengths = history.ne(PAD).sum(1)
    for length in lengths.unique():
        rows = lengths.eq(length)
        words[rows], scores[rows] = search(recomputed(stack), history[rows, -length:])
    return words, scores


def check_same(actual: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor], what: str) -> None:
    """Compare the hypotheses by rank; ranks with equal scores may be exchanged, but rarely."""
    assert_close(actual[1], expected[1], 1e-10, f"scores {what}")
    tied = actual[0].ne(expected[0]).any(-1)
    assert tied.double().mean() <= EXCUSED, f"{what}: {int(tied.sum())} of {tied.numel()} hypotheses are tied"


def check_beam_search(case: Case, number: int, seed: int = 0) -> None:
    """Check the search without memory and, if the encoding allows it, with memory."""
    width = MEMORY + PROMPT
    stack = lively(Scene(queries=width + NEW).stack(case))
    history = padded((LENGTHS * number)[:number], width, "left", seed)
    expected = alone(stack, history)
    assert len(expected[0].flatten(1).unique(dim=0)) > number / 2, "the stack says the same of everything"
    for memory in {0, MEMORY if case.capabilities.memory else 0}:
        for path in ("explicit", "auto"):
            actual = search(incremental(stack, history, memory, path), history)
            check_same(actual, expected, f"{path}, memory {memory}")


CAUSAL = in_turn(lambda case: case.causal, without_options)


@pytest.mark.parametrize("case", CAUSAL)
def test_beam_search_finds_what_recomputing_all_finds(case: Case) -> None:
    check_beam_search(case, IN_CI)


@pytest.mark.long
@pytest.mark.parametrize("case", CAUSAL)
def test_many_beam_searches_find_what_recomputing_all_finds(case: Case) -> None:
    check_beam_search(case, LONG, seed=1)


def test_the_search_ranks_what_it_returns() -> None:
    stack = lively(Scene(queries=PROMPT + NEW).stack(Case("shaw", causal=True)))
    history = padded([PROMPT] * 3, PROMPT)
    words, scores = search(recomputed(stack), history)
    whole = torch.cat([history[:, None].expand(-1, BEAM, -1), words], 2).flatten(0, 1)  # [B W, PROMPT + NEW]
    log_probabilities = next_words(run(stack, whole))[:, PROMPT - 1 : -1].gather(2, whole[:, PROMPT:, None])
    assert_close(scores.flatten(), log_probabilities.sum((1, 2)), 1e-12, "sums")
    assert bool((scores.diff() < 0).all())
    assert all(len(best.unique(dim=0)) == BEAM for best in words)


def test_a_cache_that_confuses_its_beams_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = KeyValueCache.reorder
    monkeypatch.setattr(KeyValueCache, "reorder", lambda cache, order: right(cache, order.sort().values))
    with pytest.raises(AssertionError, match="scores"):
        check_beam_search(Case("shaw", causal=True), IN_CI)


def test_pads_of_the_memory_that_are_seen_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Positions.of_tokens

    def without(*arguments: Any, memory_padding: Tensor | None, **named: Any) -> Positions:
        return right(*arguments, **named)

    monkeypatch.setattr(Positions, "of_tokens", without)
    with pytest.raises(AssertionError, match=f"memory {MEMORY}"):
        check_beam_search(Case("shaw", causal=True), IN_CI)
