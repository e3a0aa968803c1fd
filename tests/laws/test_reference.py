"""Test law 1: outputs and gradients of every encoding equal those of its literal reference in float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_posenc.attention.choice import UNFUSED
from fairseq_posenc.encodings import names
from fairseq_posenc.positions import Positions

from .cases import Case, every, in_turn, without_options
from .compare import assert_all_close, assert_close, assert_refused
from .literal import literal_all, literal_embed
from .scene import Scene, attend_all, embedded, new_caches, normal, outcome, positions_of, scenes, use_path

EXPLICIT, FUSED = 1e-9, 1e-6
USUAL = Scene()


class Forward:
    """Run a scene through our attention and through the literal one.

    The columns before the queries are memory if the encoding allows memory, otherwise a cached prefix in a decoder. In
    an encoder without memory, there are no such columns.
    """

    def __init__(self, case: Case, scene: Scene, dtype: torch.dtype = torch.float64) -> None:
        self.stack = scene.stack(case).to(dtype)
        can = self.stack.pos.capabilities
        before = scene.before if can.memory or case.causal else 0
        self.memory_length = before if can.memory else 0
        self.cached = before - self.memory_length
        self.tokens = scene.tokens(scene.queries + self.cached)
        self.span = scene.span if case.causal else None
        dim = self.stack.shape.dim
        self.x = embedded(self.tokens, dim).to(dtype).requires_grad_()
        generator = torch.Generator().manual_seed(scene.seed)
        self.memory = normal(scene.batch, self.memory_length, dim, generator=generator).to(dtype).requires_grad_()

    def positions(self, tokens: Tensor, cached: int = 0) -> Positions:
        return positions_of(tokens, self.stack, cached=cached, memory=self.memory_length, span=self.span)

    def actual(self, path: str) -> Tensor:
        """Return the outputs of our attention, [L, B, Q, d]."""
        use_path(self.stack, path)
        if not self.cached:
            memory = self.memory if self.memory_length else None
            return attend_all(self.stack, self.x, self.positions(self.tokens), memory=memory)
        caches, cut = new_caches(self.stack), self.cached
        attend_all(self.stack, self.x[:, :cut], self.positions(self.tokens[:, :cut]), caches=caches)
        return attend_all(self.stack, self.x[:, cut:], self.positions(self.tokens, cut), caches=caches)

    def inputs(self) -> Tensor:
        """Return the inputs of all columns, [B, K, d]."""
        return torch.cat([self.memory, literal_embed(self.stack.pos, self.x, self.positions(self.tokens))], 1)

    def literal(self) -> Tensor:
        """Return the outputs of the literal attention, [L, B, Q, d]."""
        return literal_all(self.stack, self.inputs(), self.positions(self.tokens, self.cached))

    def outcome(self, output: Tensor) -> dict[str, Tensor]:
        """Return an output and its gradients for the inputs and all parameters."""
        return outcome(self.stack, output, input=self.x, memory=self.memory)


def check_reference(case: Case, scene: Scene = USUAL) -> None:
    """Compare outputs and gradients of the explicit path with the reference."""
    check_gradients(Forward(case, scene), "explicit", EXPLICIT)


def check_gradients(forward: Forward, path: str, tolerance: float) -> None:
    """Compare outputs and gradients with the reference."""
    actual, expected = forward.outcome(forward.actual(path)), forward.outcome(forward.literal())
    assert_all_close(actual, expected, tolerance, path)


def check_fused(case: Case, scene: Scene = USUAL) -> None:
    """Check that the fused path equals the reference, or is refused if it cannot be exact."""
    forward = Forward(case, scene)
    with torch.no_grad():
        if case.hooks & UNFUSED.keys():
            assert_refused(lambda: forward.actual("fused"), "fused")
        else:
            assert_close(forward.actual("fused"), forward.literal(), FUSED, "output")


def check_fused_gradients(case: Case) -> None:
    check_gradients(Forward(case, Scene(before=2, side="left")), "fused", FUSED)


@pytest.mark.parametrize("case", in_turn())
@given(scene=scenes())
def test_the_explicit_path_equals_the_reference(case: Case, scene: Scene) -> None:
    check_reference(case, scene)


# The fused kernel gets what the hooks return, so that options are no other cases for it.
@pytest.mark.parametrize("case", in_turn(now=without_options))
@given(scene=scenes())
def test_the_fused_path_equals_the_reference(case: Case, scene: Scene) -> None:
    check_fused(case, scene)


@pytest.mark.parametrize("case", in_turn(lambda case: not case.hooks & UNFUSED.keys(), without_options))
def test_the_fused_path_has_the_gradients_of_the_reference(case: Case) -> None:
    """GPUs use the fused path in training; this test runs it on a CPU."""
    check_fused_gradients(case)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", names())
def test_many_random_cases_equal_the_reference(name: str) -> None:
    @settings(max_examples=1000)
    @given(case=st.sampled_from(every(lambda case: case.name == name)), scene=scenes())
    def check(case: Case, scene: Scene) -> None:
        check_reference(case, scene)

    check()
