"""Test law 20: several documents in one sequence give the same outputs as separate sequences.

`test_undeclared` tests that other encodings refuse documents. Legend: B batch, T tokens, N documents, d width.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from .cases import Case, claims, defaults, in_turn
from .compare import assert_all_close
from .scene import PAD, Scene, embedded, outcome, padded, positions_of, use_path
from .test_incremental import LENGTH, check_memory, check_reorder

WIDTH = 9
#: Lengths of the documents in each sample, with padding and without.
PADDED, FULL = [[5, 3, 1], [4, 2]], [[5, 3, 1], [4, 5]]
#: Documents of three samples in which tokens follow one another through memory and cache.
ONE_AFTER_ANOTHER = torch.tensor([[0] * 5 + [1] * 3, [0] * 3 + [1] * 3 + [2] * 2, [0] * LENGTH])


class Packed:
    """Hold tokens and document numbers, [B, T] each, and the sample and the mask of each document.

    Padding on the right has a number of its own, and padding on the left has the number of the first document.
    """

    def __init__(self, side: str) -> None:
        samples = FULL if side == "none" else PADDED
        self.tokens = padded([sum(sample) for sample in samples], WIDTH, side)
        self.documents = torch.full_like(self.tokens, 0 if side == "left" else 9)
        self.places = []
        for b, (lengths, real) in enumerate(zip(samples, self.tokens.ne(PAD), strict=True)):
            numbers = torch.arange(len(lengths))
            self.documents[b, real] = numbers.repeat_interleave(torch.tensor(lengths))
            self.places += [(b, real & (self.documents[b] == number)) for number in numbers]

    def separated(self, rows: Tensor) -> Tensor:
        """Return each document as a row of its own, padded on the right with PAD or zeros: [B, T, ...] -> [N, ...]."""
        parts = [rows[b, place] for b, place in self.places]
        return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=0 if rows.dim() > 2 else PAD)


def check_documents(case: Case, side: str = "right", path: str = "explicit") -> None:
    """Check that the documents of a sequence give the same outputs and gradients as separate sequences."""
    stack, packed = Scene(queries=WIDTH).stack(case), Packed(side)
    use_path(stack, path)
    x, alone = embedded(packed.tokens, stack.shape.dim), packed.separated(packed.tokens)
    together = positions_of(packed.tokens, stack, documents=packed.documents)
    apart = positions_of(alone, stack)
    if together.segments is not None:  # segments move with their tokens
        apart = replace(apart, segments=packed.separated(together.segments) * alone.ne(PAD))
    with torch.set_grad_enabled(path != "auto"):
        actual = packed.separated(stack(x, together)[0])
        expected = stack(packed.separated(x), apart)[0] * alone.ne(PAD)[..., None]
    assert_all_close(outcome(stack, actual), outcome(stack, expected), 1e-9, "documents")


def keeps_apart(case: Case) -> bool:
    return bool(case.capabilities.documents)


@pytest.mark.parametrize("case", in_turn(keeps_apart, claims))
def test_documents_equal_separate_sequences(case: Case) -> None:
    """Without padding, fused attention has a shortcut for decoders, which must not ignore the documents."""
    check_documents(case, "left" if case.causal else "right", "explicit")
    check_documents(case, "none", "auto")


@pytest.mark.parametrize("case", defaults(keeps_apart), ids=str)
def test_documents_go_on_from_memory_and_cache(case: Case) -> None:
    for path in ("explicit", "auto"):
        if case.capabilities.memory:
            check_memory(case, path, documents=ONE_AFTER_ANOTHER)
        if case.causal:
            check_reorder(case, path, documents=ONE_AFTER_ANOTHER)
