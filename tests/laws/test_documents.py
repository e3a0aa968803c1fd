"""Test law 20: several documents in one sequence give the same outputs as separate sequences, or they are refused.

Legend: B batch, T tokens, N documents, d width.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case, claims, defaults, in_turn
from .compare import assert_close, assert_refused
from .scene import PAD, Scene, attend_all, embedded, new_caches, normal, padded, positions_of, use_path, with_gradients

WIDTH = 9
#: Lengths of the documents in each sample, with padding and without.
PADDED, FULL = [[5, 3, 1], [4, 2]], [[5, 3, 1], [4, 5]]
ROUNDING = 1e-9


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


def outcome(stack: Stack, x: Tensor, positions: Positions, weight: Tensor) -> list[Tensor]:
    """Return the outputs and, if gradients are recorded, the gradients of all parameters."""
    output = stack(x, positions)[0]
    return with_gradients(output, (output * weight).sum(), stack.parameters()) if torch.is_grad_enabled() else [output]


def check_documents(case: Case, side: str, path: str) -> None:
    """Check that the documents of a sequence give the same outputs and gradients as separate sequences."""
    stack, packed = Scene(queries=WIDTH).stack(case), Packed(side)
    use_path(stack, path)
    x = embedded(packed.tokens, stack.shape.dim)
    weight = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x) * packed.tokens.ne(PAD)[..., None]
    together = positions_of(packed.tokens, stack, documents=packed.documents)
    apart = positions_of(packed.separated(packed.tokens), stack)
    if together.segments is not None:  # segments move with their tokens
        apart = replace(apart, segments=packed.separated(together.segments) * packed.separated(packed.tokens).ne(PAD))
    with torch.set_grad_enabled(path != "auto"):
        output, *gradients = outcome(stack, x, together, weight)
        expected, *right = outcome(stack, packed.separated(x), apart, packed.separated(weight))
    for row, (b, place) in zip(expected, packed.places, strict=True):
        own = output[b, place]
        assert_close(own, row[: len(own)], ROUNDING, f"a document of {len(own)} tokens")
    for gradient, other in zip(gradients, right, strict=True):
        assert_close(gradient, other, ROUNDING, "gradient")


def check_refused(case: Case) -> None:
    """Check that documents are refused by the name of the encoding, with the reason."""
    stack, packed = Scene(queries=WIDTH).stack(case), Packed("right")
    positions = replace(positions_of(packed.tokens, stack), documents=packed.documents)
    x = embedded(packed.tokens, stack.shape.dim)
    assert_refused(lambda: stack(x, positions), case.spec, "documents that share a sequence", "because")


def keeps_apart(case: Case) -> bool:
    return bool(case.capabilities.documents)


@pytest.mark.parametrize("case", in_turn(keeps_apart, claims))
def test_documents_equal_separate_sequences(case: Case) -> None:
    """Without padding, fused attention has a shortcut for decoders, which must not ignore the documents."""
    check_documents(case, "left" if case.causal else "right", "explicit")
    check_documents(case, "none", "auto")


@pytest.mark.parametrize("case", in_turn(lambda case: not keeps_apart(case), claims))
def test_documents_are_refused_where_they_are_not_declared(case: Case) -> None:
    check_refused(case)
    stack, packed = Scene(queries=WIDTH).stack(case), Packed("right")
    assert_refused(lambda: positions_of(packed.tokens, stack, documents=packed.documents), case.spec, "because")


def check_memory(case: Case) -> None:
    """Check that a query sees the memory of its own document only: memory columns have document numbers too."""
    stack, packed, cut = Scene(queries=WIDTH).stack(case), Packed("right"), 6
    tokens, documents = packed.tokens[:1], packed.documents[:1]
    x = normal(1, WIDTH, stack.shape.dim, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole = attend_all(stack, x, positions_of(tokens, stack, documents=documents))
        positions = positions_of(tokens[:, cut:], stack, memory=cut, documents=documents)
        parts = attend_all(stack, x[:, cut:], positions, memory=x[:, :cut])
    assert_close(parts, whole[:, :, cut:], 1e-12, "with memory")


def check_decoding(case: Case) -> None:
    """Check decoding in steps, in which the two samples change their places as in beam search."""
    stack, packed, swapped = Scene(queries=WIDTH).stack(case), Packed("left"), torch.tensor([1, 0])
    tokens, documents = packed.tokens, packed.documents
    x, caches, steps = embedded(tokens, stack.shape.dim), new_caches(stack), []
    with torch.no_grad():
        whole = stack(x, positions_of(tokens, stack, documents=documents))[0]
        for start, end in [(0, 4), (4, 5), (5, 8), (8, 9)]:
            positions = positions_of(tokens[:, :end], stack, cached=start, documents=documents[:, :end])
            steps.append(stack(x[:, start:end], positions, caches=caches)[0])
            if start == 4:
                tokens, documents, x, whole, *steps = (rows[swapped] for rows in (tokens, documents, x, whole, *steps))
                for cache in caches:
                    cache.reorder(swapped)
    real = tokens.ne(PAD)
    assert_close(torch.cat(steps, 1)[real], whole[real], 1e-12, "step by step")


@pytest.mark.parametrize("case", defaults(lambda case: keeps_apart(case) and case.capabilities.memory), ids=str)
def test_a_document_goes_on_from_memory(case: Case) -> None:
    check_memory(case)


@pytest.mark.parametrize("case", defaults(lambda case: keeps_apart(case) and case.causal), ids=str)
def test_decoding_step_by_step_keeps_documents_apart(case: Case) -> None:
    check_decoding(case)
