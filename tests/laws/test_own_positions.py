"""Test laws 21 and 24: positions that the caller gives, and positions that are drawn at random.

At positions that the caller gives, an encoding equals its reference; `test_undeclared` tests those that refuse them.
Positions that are drawn at random are sorted subsets, and evaluation depends on the sequence only.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairseq_posenc.core import drawing
from fairseq_posenc.encodings import StackShape
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import LENGTH_FLAG, Case, claims, defaults, in_last_direction, in_one_direction, in_turn, uses_own
from .compare import assert_close, assert_refused
from .literal import literal_all, literal_embed
from .scene import Scene, attend_all, batch_of, drawn, on_device, padded, positions_of
from .test_incremental import STEPS, check_steps
from .test_padding import check_alone
from .test_reference import EXPLICIT, Forward, check_gradients

#: Memory or a cache before the queries, with padding on the left; and a single query after memory or a cache.
SCENE, SINGLE = Scene(before=2, side="left", room=10), Scene(queries=1, before=5, side="right", room=10)
#: Number of positions beyond the maximum length that are tested with encodings that extrapolate.
BEYOND = 5


class Own(Forward):
    """Run a scene at positions that are not in order and may be equal; samples differ unless `shared` is true."""

    def __init__(self, case: Case, scene: Scene, *, shared: bool = False) -> None:
        super().__init__(case, scene)
        columns, limit = self.memory_length + self.tokens.shape[1], self.stack.pos.limit
        generator = torch.Generator().manual_seed(7)
        shape = (columns,) if shared else (scene.batch, columns)
        most = self.stack.shape.max_length + BEYOND if limit is None else limit
        self.ids = on_device(torch.randint(most, shape, generator=generator, device="cpu"))

    def positions(self, tokens: Tensor, cached: int = 0) -> Positions:
        """Return the positions of the samples."""
        where = super().positions(tokens, cached)
        return replace(where, ids=self.ids[..., : where.key_length])

    def literal(self) -> Tensor:
        """Return the outputs of the literal attention, sample by sample, because references read one row of ids."""
        ids = self.ids.expand(len(self.tokens), -1)
        return torch.cat([self._sample(slice(b, b + 1), ids[b]) for b in range(len(ids))], 1)

    def _sample(self, sample: slice, ids: Tensor) -> Tensor:
        one = copy.copy(self)
        one.ids, one.tokens, one.x, one.memory = ids, self.tokens[sample], self.x[sample], self.memory[sample]
        return super(Own, one).literal()


def check_own(case: Case, scene: Scene = SCENE, *, shared: bool = False) -> None:
    """Compare outputs, gradients and inference with the reference at the same positions."""
    forward = Own(case, scene, shared=shared)
    check_gradients(forward, "explicit", EXPLICIT)
    with torch.no_grad():
        expected = forward.literal()
        assert_close(forward.actual("explicit"), expected, EXPLICIT, "inference")
        assert_close(forward.actual("auto"), expected, 1e-6, "inference")


def check_limit(case: Case) -> None:
    """Check that a position beyond the limit is refused, and that the error names the flag to raise."""
    stack = SCENE.stack(case)
    limit = stack.pos.limit
    assert limit is not None
    _, x, where = batch_of(stack, [3])
    assert stack(x, replace(where, ids=torch.tensor([0, 1, limit - 1])))[0].isfinite().all()
    too_far = replace(where, ids=torch.tensor([0, limit, 1]))
    assert_refused(lambda: stack(x, too_far), case.spec, str(limit + 1), LENGTH_FLAG)


DEFAULTS = defaults(uses_own)


@pytest.mark.parametrize("case", in_turn(lambda case: in_one_direction(case) and uses_own(case), claims))
def test_own_positions_equal_the_reference(case: Case) -> None:
    check_own(case)


@pytest.mark.parametrize("case", in_turn(uses_own, lambda case: case in DEFAULTS and in_last_direction(case)))
def test_shared_positions_and_a_single_query_equal_the_reference(case: Case) -> None:
    check_own(case, shared=True)
    check_own(case, SINGLE)


@pytest.mark.parametrize("case", defaults(lambda case: uses_own(case) and not case.capabilities.extrapolates), ids=str)
def test_a_position_beyond_the_table_is_refused(case: Case) -> None:
    check_limit(case)


@pytest.mark.parametrize("spec", ["learned+segments-input", "learned+segments", "rope+fox", "rope+cope"])
def test_members_without_positions_leave_the_others_theirs(spec: str) -> None:
    check_own(Case(spec, causal="segments" not in spec))


# -- positions that are drawn at random ---------------------------------------------------------------------

#: Number of positions to draw from, and number of tokens of the longest sequence.
POSITIONS, LONGEST = 40, 9
LENGTHS = [8, 3, 8, 6]
EXACT = 1e-9
#: One encoding of each kind: at the input, rotations, products with vectors and a bias.
KINDS = ["learned", "rope", "shaw", "t5"]


def stack_of(case: Case) -> Stack:
    """Return a stack that draws positions, in evaluation mode."""
    return drawn(case.stack(replace(case.shape(max_length=POSITIONS), drawn=LONGEST)))


def check_uniform(causal: bool) -> None:
    """Check that in training all 15 pairs of 6 positions are equally likely, also in a sample with padding."""
    stack = Case("none", causal=causal).shape(max_length=6)
    where, draws = Positions(3, 3, torch.device("cpu"), padding=torch.tensor([[False] * 3, [False, False, True]])), 1500
    with torch.random.fork_rng():
        torch.manual_seed(0)
        ids = [drawing.drawn_positions(where, replace(stack, drawn=3), training=True).ids for _ in range(draws)]
    pairs = Counter((int(one[1, 0]), int(one[1, 1])) for one in ids if one is not None)
    expected = draws / 15  # with a standard deviation of 10
    assert len(pairs) == 15, f"only {len(pairs)} of 15 pairs were drawn"
    assert all(abs(count - expected) < 45 for count in pairs.values()), f"not uniform: {pairs}"


def check_drawn(case: Case) -> None:
    """Check that in training the outputs are those of the reference at the positions that a seed draws."""
    stack = stack_of(case).train()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(5)
        _, x, where = batch_of(stack, [8, 8])
        torch.manual_seed(5)
        order = torch.randperm(POSITIONS)[:8].tolist()
        at = replace(where, ids=torch.tensor(sorted(order)))
        assert_close(
            attend_all(stack, x, where), literal_all(stack, literal_embed(stack.pos, x, at), at), EXACT, "drawn"
        )


OF_KINDS = [case for case in DEFAULTS if case.spec in KINDS]


@pytest.mark.parametrize("case", OF_KINDS, ids=str)
def test_a_seed_gives_the_reference_at_its_positions(case: Case) -> None:
    check_drawn(case)


@pytest.mark.parametrize("causal", [False, True])
def test_all_subsets_are_equally_likely(causal: bool) -> None:
    check_uniform(causal)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("case", OF_KINDS, ids=str)
def test_evaluation_depends_on_the_sample_alone(case: Case, side: str) -> None:
    check_alone(stack_of(case), padded(LENGTHS, 8, side))


@pytest.mark.parametrize("case", [case for case in OF_KINDS if case.causal], ids=str)
def test_steps_at_drawn_positions_equal_the_whole(case: Case) -> None:
    check_steps(stack_of(case), STEPS["in chunks"], "left", "explicit")


def test_positions_in_evaluation_never_change() -> None:
    """Scores of trained models depend on these numbers."""
    for causal, expected in ((False, [5, 12, 17, 36]), (True, [0, 8, 10, 16])):
        ids = batch_of(stack_of(Case("rope", causal=causal)), [4])[2].ids
        assert ids is not None
        assert ids.flatten().tolist() == expected


def test_what_drawn_positions_do_not_fit_is_refused() -> None:
    stack = stack_of(Case("rope", causal=True))
    assert_refused(lambda: batch_of(stack, [LONGEST + 1]), str(LONGEST + 1), "drawn", str(POSITIONS))
    sizes = {"length_flag": "--the-number", "drawn_flag": "--the-longest"}
    assert_refused(lambda: StackShape(1, 2, 8, 4, drawn=5, **sizes), "--the-number", "4", "--the-longest", "5")
    tokens, x, where = batch_of(stack.train(), [4])
    assert_refused(lambda: positions_of(tokens, stack, cached=2), "eval()")
    assert_refused(lambda: stack(x, replace(where, ids=None)), "StackShape.drawn")
