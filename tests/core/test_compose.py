"""Test what a composition says about its length, its layers and what it needs to know about the tokens."""

from __future__ import annotations

import logging
import re

import pytest
import torch

from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.positions import Positions

N = 8


def composition(spec: str, args: str = "") -> Composition:
    return build(spec, args, StackShape(2, 2, 8, N, causal=True))


def positions(length: int) -> Positions:
    return Positions(length, length, torch.device("cpu"), causal=True)


def test_a_sequence_beyond_the_table_is_refused() -> None:
    pos = composition("learned")
    pos.check(positions(N))
    for length in (N + 1, 3 * N):
        with pytest.raises(ValueError, match=rf"is defined up to {N} positions, but there are {length} "):
            pos.check(positions(length))


@pytest.mark.parametrize("spec", ["sinusoidal", "shaw"])
def test_a_longer_sequence_than_in_training_is_logged_once(spec: str, caplog: pytest.LogCaptureFixture) -> None:
    pos = composition(spec)
    with caplog.at_level(logging.WARNING, logger="fairseq_posenc"):
        pos.check(positions(N - 1))
        pos.check(positions(N))
        assert caplog.records == []
        pos.check(positions(N + 2))
        pos.check(positions(N + 3))
    (record,) = caplog.records
    assert re.search(rf"a sequence has {N + 2} positions, more than max_length=", record.message)


def test_only_the_layers_of_the_stack_exist() -> None:
    pos = composition("shaw")
    assert [pos.layer(number).index for number in (1, 2)] == [1, 2]
    for number in (0, 3):
        with pytest.raises(ValueError, match=rf"layer {number} does not exist: the layers of the stack are 1 to 2"):
            pos.layer(number)


@pytest.mark.parametrize(
    ("spec", "boundaries", "segments"),
    [
        ("shaw", False, False),
        ("sentence-restart", True, False),
        ("segments", False, True),
        ("shaw+segments", False, True),
        ("sentence-restart+shaw", True, False),
    ],
)
def test_a_composition_needs_what_a_member_needs(spec: str, boundaries: bool, segments: bool) -> None:
    pos = build(spec, "", StackShape(2, 2, 8, N, causal=False))
    assert (pos.needs_boundaries, pos.needs_segments) == (boundaries, segments)


@pytest.mark.parametrize(
    ("spec", "directional"), [("none", False), ("shaw", True), ("t5", True), ("alibi", False), ("alibi+shaw", True)]
)
def test_one_member_that_tells_left_from_right_is_enough(spec: str, directional: bool) -> None:
    assert build(spec, "", StackShape(2, 2, 8, N)).capabilities.directional is directional
