"""Test law 24: at positions that the caller gives, an encoding equals its reference, or an error names it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairseq_posenc.positions import Positions

from .cases import LENGTH_FLAG, Case, claims, defaults, in_one_direction, in_turn
from .compare import assert_close, assert_refused
from .literal import literal_all, literal_embed
from .scene import PAD, Scene, attend_all, batch_of, embedded, on_device, padded, positions_of
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
        """Return the positions of all samples, or of the single sample whose tokens and positions `literal` set."""
        where = super().positions(tokens, cached)
        return replace(where, ids=self.ids[..., : where.key_length])

    def literal(self) -> Tensor:
        """Return the outputs of the literal attention, sample by sample, because references read one row of ids."""
        ids = self.ids.expand(len(self.tokens), -1)
        return torch.cat([self._sample(slice(b, b + 1), ids[b]) for b in range(len(ids))], 1)

    def _sample(self, sample: slice, ids: Tensor) -> Tensor:
        tokens, all_ids = self.tokens[sample], self.ids
        self.ids = ids
        try:
            inputs = literal_embed(self.stack.pos, self.x[sample], self.positions(tokens))
            inputs = torch.cat([self.memory[sample], inputs], 1)
            return literal_all(self.stack, inputs, self.positions(tokens, self.cached))
        finally:
            self.ids = all_ids


def check_own(case: Case, scene: Scene = SCENE, *, shared: bool = False) -> None:
    """Compare outputs, gradients and inference with the reference at the same positions."""
    forward = Own(case, scene, shared=shared)
    check_gradients(forward, "explicit", EXPLICIT)
    with torch.no_grad():
        expected = forward.literal()
        assert_close(forward.actual("explicit"), expected, EXPLICIT, "inference")
        assert_close(forward.actual("auto"), expected, 1e-6, "inference")


def check_columns(case: Case) -> None:
    """Check that the positions 0 to K-1 give what columns give."""
    stack = SCENE.stack(case)
    _, x, where = batch_of(stack)
    with torch.no_grad():
        own = attend_all(stack, x, replace(where, ids=torch.arange(6)))
        assert_close(own, attend_all(stack, x, where), EXPLICIT, "positions 0 to K-1")


def check_refused(case: Case) -> None:
    """Check that an encoding refuses positions that the caller gives, when they are made and when they are used."""
    stack = SCENE.stack(case)
    (member,) = stack.pos.members.values()
    reason = "no positions" if member.capabilities.any_positions else member.only_columns
    tokens, words = padded([6, 4], 6), (case.spec, reason)
    where = positions_of(tokens, stack)
    assert_refused(lambda: run_at(stack, tokens, replace(where, ids=torch.arange(6))), *words)
    assert_refused(lambda: stack.positions(tokens, pad=PAD, boundaries=(0, 2), ids=torch.arange(6)), *words)
    assert_refused(lambda: case.encoding(replace(case.shape(), drawn=8)), *words)


def run_at(stack: object, tokens: Tensor, where: Positions) -> Tensor:
    """Run a stack at the given positions."""
    return stack(embedded(tokens, stack.shape.dim), where)[0]  # type: ignore[operator,attr-defined]


def check_limit(case: Case) -> None:
    """Check that a position beyond the limit is refused, and that the error names the flag to raise."""
    stack = SCENE.stack(case)
    limit = stack.pos.limit
    assert limit is not None
    tokens = padded([3], 3)
    where = replace(positions_of(tokens, stack), ids=torch.tensor([0, 1, limit - 1]))
    assert run_at(stack, tokens, where).isfinite().all()
    too_far = replace(where, ids=torch.tensor([0, limit, 1]))
    assert_refused(lambda: run_at(stack, tokens, too_far), case.spec, str(limit + 1), LENGTH_FLAG)


def _declares(case: Case) -> bool:
    return bool(case.capabilities.any_positions)


def _uses(case: Case) -> bool:
    return _declares(case) and any(member.uses_positions for member in case.encoding(case.shape()).members.values())


DEFAULTS = defaults(_uses)


@pytest.mark.parametrize("case", in_turn(lambda case: in_one_direction(case) and _uses(case), claims))
def test_own_positions_equal_the_reference(case: Case) -> None:
    check_own(case)


@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_shared_positions_and_a_single_query_equal_the_reference(case: Case) -> None:
    check_own(case, shared=True)
    check_own(case, SINGLE)


@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_positions_in_order_equal_columns(case: Case) -> None:
    check_columns(case)


@pytest.mark.parametrize("case", defaults(lambda case: not _uses(case)), ids=str)
def test_encodings_that_cannot_use_positions_say_why(case: Case) -> None:
    check_refused(case)


@pytest.mark.parametrize("case", defaults(lambda case: _uses(case) and not case.capabilities.extrapolates), ids=str)
def test_a_position_beyond_the_table_is_refused(case: Case) -> None:
    check_limit(case)


@pytest.mark.parametrize("spec", ["learned+segments-input", "learned+segments", "rope+fox", "rope+cope"])
def test_members_without_positions_leave_the_others_theirs(spec: str) -> None:
    check_own(Case(spec, causal="segments" not in spec))
