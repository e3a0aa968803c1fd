"""Test law 25: with the option `layers`, an encoding is active in the listed layers and in no others."""

from __future__ import annotations

import pytest

from fairseq_posenc.core.schedule import numbers
from fairseq_posenc.encodings import build, specs
from fairseq_posenc.encodings.building import with_defaults

from .cases import Case, scheduled, tables
from .compare import assert_refused
from .scene import Scene
from .test_gradients import check_gradients
from .test_reference import check_fused, check_reference

#: The encoding is active in the first and the last of three layers. The last layer has number 3, but rank 2.
SCHEDULE, LAYERS = "1:3", 3
SCHEDULED = scheduled(SCHEDULE)
WITH_SCHEDULE = {case.spec for case in SCHEDULED}


def check_schedule(case: Case) -> None:
    scene = Scene(layers=LAYERS, before=2, side="left")
    check_reference(case, scene)
    check_fused(case, scene)


@pytest.mark.parametrize("case", SCHEDULED, ids=str)
def test_an_encoding_equals_its_reference_in_its_layers(case: Case) -> None:
    check_schedule(case)


@pytest.mark.parametrize("case", SCHEDULED, ids=str)
def test_only_the_layers_of_the_schedule_have_tables(case: Case) -> None:
    """Every parameter gets its gradient once, so DDP finds no unused one, and the count is the one of fewer layers."""
    check_gradients(case, range(LAYERS))
    (member,) = case.encoding(case.shape(layers=LAYERS)).members.values()
    has = sum(parameter.numel() for parameter in member.parameters())
    assert has == type(member).count(member.options, case.shape(layers=LAYERS))
    everywhere = Case(case.spec, {key: value for key, value in case.args.items() if key != "layers"}, case.causal)
    assert has == sum(parameter.numel() for parameter in everywhere.encoding(case.shape(layers=2)).parameters())


# -- values of the option ------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "layers", "meaning"), [(None, 2, [1, 2]), *tables("options")["layers"]])
def test_the_option_names_layers(text: str | None, layers: int, meaning: list[int]) -> None:
    assert list(numbers(text, layers)) == meaning


@pytest.mark.parametrize("name", [spec for spec in specs() if "+" not in spec and spec not in WITH_SCHEDULE])
def test_an_encoding_that_does_not_act_in_layers_has_no_schedule(name: str) -> None:
    shape = Case(name).shape()
    words = "does nothing" if name == "none" else "at the input"
    assert_refused(lambda: build(name, "layers=2", shape), "--pos-enc-args", name, "layers=2 has no effect", words)


# -- several members -----------------------------------------------------------------------------------


def test_conflicts_count_only_where_layers_overlap() -> None:
    shape = Case("rope", causal=True).shape(layers=4)
    together = "rope.layers=1-3,m4m.layers=every-4"
    assert str(build("rope+m4m", together, shape)).count("layers=") == 2
    assert_refused(lambda: build("rope+m4m", "rope.layers=1-3,m4m.layers=3-4", shape), "m4m", "rope", "option layers")
    assert_refused(lambda: build("rope+m4m", "rope.layers=1-3", shape), "m4m", "rope")


def test_a_method_can_occur_twice_in_different_layers() -> None:
    shape = Case("t5").shape(layers=4)
    args = "t5.layers=every-4-skip,t5-2.layers=every-4,t5-2.buckets=8"
    built = build("t5+t5-2", args, shape)
    shapes = {name: tuple(parameter.shape) for name, parameter in built.named_parameters()}
    assert shapes == {"t5.weight": (1, 2, 32), "t5-2.weight": (1, 2, 8)}
    assert [list(built.layer(index).members) for index in (1, 2, 3, 4)] == [["t5"]] * 3 + [["t5-2"]]
    assert build(built.name, args, shape).name == "t5+t5-2"


def test_defaults_of_an_encoding_hold_for_all_members_of_its_kind() -> None:
    given = with_defaults("rope+rope-2+t5", "rope-2.base=100", "rope.base=500,t5.buckets=8")
    assert given == {"rope.base": "500", "rope_2.base": "100", "t5.buckets": "8"}
