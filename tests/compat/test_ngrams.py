"""Test --no-repeat-ngram-size: first that fairseq ignores it, then the fix."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq.ngram_repeat_block import NGramRepeatBlock

HYPOTHESES = torch.tensor([[2, 5, 6, 5, 1, 1, 1], [2, 5, 6, 7, 1, 1, 1], [2, 5, 5, 5, 1, 1, 1]])


def banned(forward: Callable[..., torch.Tensor], size: int, step: int) -> list[list[int]]:
    block = NGramRepeatBlock(size, use_extension=False)
    scores = forward(block, HYPOTHESES, torch.zeros(3, 9), 1, 3, step)
    return [(row == -torch.inf).nonzero().flatten().tolist() for row in scores]


def test_repeated_ngrams_are_banned() -> None:
    shipped = NGramRepeatBlock.forward._posenc_original
    assert banned(shipped, 2, 3) == [[], [], []]  # the fault: it compares with the padding
    assert banned(NGramRepeatBlock.forward, 2, 3) == [[6], [], [5]]
    assert banned(NGramRepeatBlock.forward, 3, 3) == [[], [], [5]]
    assert banned(NGramRepeatBlock.forward, 4, 3) == [[], [], []]
    assert banned(NGramRepeatBlock.forward, 2, 0) == [[], [], []]


def test_ngram_blocking_compiles_to_torchscript() -> None:
    compiled = torch.jit.script(NGramRepeatBlock(2, use_extension=False))
    scores = compiled(HYPOTHESES, torch.zeros(3, 9), 1, 3, 3)
    assert (scores == -torch.inf).nonzero().tolist() == [[0, 6], [2, 5]]
