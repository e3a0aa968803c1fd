"""Test law 21: randomly drawn positions are sorted subsets, and evaluation depends on the sequence only."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairseq_posenc.core import drawing
from fairseq_posenc.encodings import StackShape
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case
from .compare import assert_close, assert_refused, assert_same
from .literal import literal_all, literal_embed
from .scene import PAD, attend_all, drawn, embedded, new_caches, padded, positions_of, run, use_path
from .test_incremental import decode
from .test_own_positions import DEFAULTS as CAN

#: Number of positions to draw from, and number of tokens of the longest sequence.
POSITIONS, LONGEST = 40, 9
LENGTHS = [8, 3, 8, 6]
EXACT = 1e-9
#: One encoding of each kind: at the input, rotations, products with vectors and a bias.
KINDS = ["learned", "rope", "shaw", "t5"]


def stack_of(case: Case) -> Stack:
    """Return a stack that draws positions, in evaluation mode."""
    return drawn(case.stack(replace(case.shape(max_length=POSITIONS), drawn=LONGEST)))


def ids_of(stack: Stack, tokens: Tensor) -> Tensor:
    """Return the positions of all columns, [B, K]."""
    ids = positions_of(tokens, stack).ids
    assert ids is not None
    return ids.expand(len(tokens), -1)


def check_uniform(causal: bool) -> None:
    """Check that in training all 15 pairs of 6 positions are equally likely, also in a sample with padding."""
    stack = Case("none", causal=causal).shape(max_length=6)
    where, draws = Positions(3, 3, torch.device("cpu"), padding=torch.tensor([[False] * 3, [False, False, True]])), 3000
    with torch.random.fork_rng():
        torch.manual_seed(0)
        ids = [drawing.drawn_positions(where, replace(stack, drawn=3), training=True).ids for _ in range(draws)]
    pairs = Counter((int(one[1, 0]), int(one[1, 1])) for one in ids if one is not None)
    expected = draws / 15  # with a standard deviation of 14
    assert len(pairs) == 15, f"only {len(pairs)} of 15 pairs were drawn"
    assert all(abs(count - expected) < 60 for count in pairs.values()), f"not uniform: {pairs}"


def check_alone(case: Case, side: str) -> None:
    """Check that in evaluation a sample gives the same output in a batch, alone, and at the second call."""
    stack = stack_of(case)
    tokens = padded(LENGTHS, 8, side)
    together = run(stack, tokens)
    assert_same(run(stack, tokens), together, "the second call")
    for sample, row in zip(tokens, together, strict=True):
        real = sample.ne(PAD)
        assert_close(row[real], run(stack, sample[real][None])[0], EXACT, "a sample alone")


def check_steps(case: Case) -> None:
    """Check that decoding in steps gives the output of the whole sequence."""
    stack = stack_of(case)
    tokens = padded([8, 6, 8], 8, "left")
    use_path(stack, "explicit")
    with torch.no_grad():
        steps = decode(stack, tokens, [3, 1, 2, 1, 1])
    real = tokens.ne(PAD)
    assert_close(steps[real], run(stack, tokens, "explicit")[real], EXACT, "steps")


def check_reference(case: Case) -> None:
    """Check that in training the outputs are those of the reference at the positions that a seed draws."""
    stack = stack_of(case).train()
    tokens = padded([8, 8], 8)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(5)
        where = positions_of(tokens, stack)
        torch.manual_seed(5)
        order = torch.randperm(POSITIONS)[:8].tolist()
        x = embedded(tokens, stack.shape.dim)
        at = replace(where, ids=torch.tensor(sorted(order)))
        assert_close(
            attend_all(stack, x, where), literal_all(stack, literal_embed(stack.pos, x, at), at), EXACT, "drawn"
        )


OF_KINDS = [case for case in CAN if case.spec in KINDS]
DECODERS = [case for case in CAN if case.causal]


@pytest.mark.parametrize("case", CAN, ids=str)
def test_a_seed_gives_the_reference_at_its_positions(case: Case) -> None:
    check_reference(case)


@pytest.mark.parametrize("causal", [False, True])
def test_all_subsets_are_equally_likely(causal: bool) -> None:
    check_uniform(causal)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("case", OF_KINDS, ids=str)
def test_evaluation_depends_on_the_sample_alone(case: Case, side: str) -> None:
    check_alone(case, side)


@pytest.mark.parametrize("case", DECODERS, ids=str)
def test_steps_equal_the_whole(case: Case) -> None:
    check_steps(case)


def test_training_draws_at_each_call_and_follows_the_seed() -> None:
    stack, tokens = stack_of(Case("rope")).train(), padded([8], 8)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        draws = [ids_of(stack, tokens).tolist() for _ in range(3)]
        torch.manual_seed(1)
        again = [ids_of(stack, tokens).tolist() for _ in range(3)]
    assert draws == again
    assert draws[0] != draws[1] != draws[2]


def test_positions_in_evaluation_never_change() -> None:
    """Scores of trained models depend on these numbers."""
    tokens = padded([4], 4)
    drawn_ids = [ids_of(stack_of(Case("rope", causal=causal)), tokens)[0].tolist() for causal in (False, True)]
    assert drawn_ids == [[5, 12, 17, 36], [0, 8, 10, 16]]


def test_what_does_not_fit_is_refused() -> None:
    case = Case("rope", causal=True)
    stack, tokens = stack_of(case), padded([LONGEST + 1], LONGEST + 1)
    assert_refused(lambda: positions_of(tokens, stack), str(LONGEST + 1), "drawn", str(POSITIONS))
    sizes = {"length_flag": "--the-number", "drawn_flag": "--the-longest"}
    assert_refused(lambda: StackShape(1, 2, 8, 4, drawn=5, **sizes), "--the-number", "4", "--the-longest", "5")
    stack.train()
    assert_refused(lambda: positions_of(tokens[:, :4], stack, cached=2), "eval()")
    where = replace(positions_of(tokens[:, :4], stack), ids=None)
    assert_refused(lambda: stack(embedded(tokens[:, :4], stack.shape.dim), where), "StackShape.drawn")
    assert len(new_caches(stack)) == len(stack.layers)
