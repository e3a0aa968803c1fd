"""Test law 22: in training, an encoding learns to tell left from right if and only if it declares `directional`.

The lowest possible losses in nats are: ln 2 = 0.69 if the model cannot distinguish the two neighbours, about 1.9 if it
only knows in which half of the sequence a word is, and 2.4 if it only knows the words of the sequence.
"""

from __future__ import annotations

import pytest

from fairseq_posenc.encodings import get, names

from . import toy
from .cases import Case, defaults, every, in_one_direction

BOUND = 0.1
FLOORS = {"none": 2.2, "segments": 1.7, "segments-input": 1.7}
FLOOR = 0.5
#: The loss of these encodings is only printed, because their projections depend on the columns.
REPORTED = {"linformer"}
#: Number of updates that are enough to show a wrong declaration; `make test-long` takes four times as many.
ENOUGH = toy.STEPS // 4
#: Options that change the formula of an encoding.
READINGS = {"form", "reset"}


def families() -> list[Case]:
    """Return the first encoding of every file."""
    first = {get(name).__module__: name for name in reversed(names())}
    return defaults(lambda case: in_one_direction(case) and case.name in first.values())


def all_readings() -> list[Case]:
    """Return every encoding with every formula, including `families`; `make test-long` runs the long ones."""
    return every(lambda case: in_one_direction(case) and set(case.args) <= READINGS)


def check_left_neighbour(case: Case, steps: int = toy.STEPS, denied: int = toy.STEPS) -> None:
    """Check that the final loss is low if the encoding is directional and high if it is not."""
    directional = case.capabilities.directional  # before the toy's settings change it
    steps = steps if directional and case.spec not in REPORTED else denied
    case = Case(case.spec, toy.settings(case.spec, case.args), case.causal, case.cls)
    loss = toy.train(case, cls=toy.reads_cls(case), steps=steps)
    print(f"{case}: {loss:.3f} nats")
    assert 0 <= loss < 4, f"{case} diverged: {loss}"
    if case.spec in REPORTED:
        return
    if directional:
        assert loss < BOUND, f"{case} declares directional, and cannot say its left neighbour: {loss:.3f}"
    else:
        floor = FLOORS.get(case.spec, FLOOR)
        assert loss >= floor, f"{case} denies directional, and says its left neighbour: {loss:.3f} < {floor}"


@pytest.mark.parametrize("case", families(), ids=str)
def test_the_left_neighbour_is_learned_as_declared(case: Case) -> None:
    check_left_neighbour(case, denied=ENOUGH)


@pytest.mark.long
@pytest.mark.parametrize("case", all_readings(), ids=str)
def test_the_left_neighbour_is_learned_by_every_reading(case: Case) -> None:
    check_left_neighbour(case)


def test_all_encodings_are_among_the_long_ones() -> None:
    assert {case.name for case in all_readings()} == set(names())
    assert {str(case) for case in families()} <= {str(case) for case in all_readings()}


@pytest.mark.parametrize(
    ("spec", "args", "reads"),
    [
        ("tupe", {}, True),  # reset=auto
        ("tupe", {"form": "original"}, True),
        ("tupe", {"reset": "none"}, False),
        ("m4", {"reset": "vector"}, True),  # refused without [CLS]
        ("m4", {}, False),
        ("cope", {}, False),  # works in decoders only
    ],
)
def test_cls_is_there_for_those_that_read_it(spec: str, args: dict[str, str], reads: bool) -> None:
    assert toy.reads_cls(Case(spec, args, causal=spec == "cope")) is reads
