"""Test law 1 with random options, sharing, direction, stack, sizes, padding, cache and memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_posenc.encodings import names

from . import broken
from .cases import Case, every
from .scene import Scene, scenes
from .test_reference import check_reference

#: Numbers of random cases per encoding: in each run of the tests, and in `make test-long`.
IN_CI, LONG = 24, 1000


def random_scenes() -> st.SearchStrategy[Scene]:
    return st.builds(lambda scene, layers: replace(scene, layers=layers), scenes(), st.integers(1, 3))


def cases_of(name: str) -> st.SearchStrategy[Case]:
    return st.sampled_from(every(lambda case: case.name == name))


def check_many(name: str, number: int) -> None:
    @settings(max_examples=number)
    @given(case=cases_of(name), scene=random_scenes())
    def check(case: Case, scene: Scene) -> None:
        check_reference(case, scene)

    check()


@pytest.mark.parametrize("name", names())
def test_random_cases_equal_the_reference(name: str) -> None:
    check_many(name, IN_CI)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", names())
def test_many_random_cases_equal_the_reference(name: str) -> None:
    check_many(name, LONG)


def test_a_fault_in_one_of_three_layers_is_found() -> None:
    @settings(max_examples=IN_CI)
    @given(scene=random_scenes())
    def check(scene: Scene) -> None:
        check_reference(Case("broken", {"share": "none"}, cls=broken.ForgetsTheLayer), scene)

    with pytest.raises(AssertionError, match="differs"):
        check()
