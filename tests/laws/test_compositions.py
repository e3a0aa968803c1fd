"""Test law 15: combined encodings equal their references, or the combination is refused with the reason."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch

from fairseq_posenc.attention import windows
from fairseq_posenc.core.syntax import parse_options
from fairseq_posenc.encodings import RELATIVE, build, names
from fairseq_posenc.encodings.linformer import Linformer

from .broken import declaring
from .cases import LENGTH_FLAG, Case, directions, every, first_of_kind, tables
from .compare import assert_refused
from .scene import Scene, attend_all, batch_of, new_caches
from .test_caches_and_copies import check_copy
from .test_causality import check_causality
from .test_gradients import check_gradients
from .test_incremental import STEPS, check_incremental, check_memory, check_reorder
from .test_padding import check_empty_rows, check_padding
from .test_reference import check_fused, check_reference

TABLES: dict[str, list[list[str]]] = tables("compositions")
STACKS = {"decoder": [True], "encoder": [False], "both": [True, False]}


def listed(table: str) -> list[Any]:
    """Return the cases of a table. `make test` tries a decoder if possible, for which more laws hold."""
    rows = [(spec, parse_options(args), STACKS[stacks]) for spec, args, stacks in TABLES[table]]
    cases = [(Case(spec, args, causal), causal == tried[0]) for spec, args, tried in rows for causal in tried]
    return [pytest.param(case, id=str(case), marks=[] if now else [pytest.mark.long]) for case, now in cases]


def check_laws(case: Case, *scenes: Scene) -> None:
    """Compare a composition with its references in some scenes, and check all laws that its capabilities allow."""
    for scene in scenes:
        check_reference(case, scene)
        check_fused(case, scene)
    for side in ("left", "right"):
        check_padding(case, side, "auto")
        check_empty_rows(case, side, "explicit")
    for layers in ((0, 1), (0, 1, 2)):
        check_gradients(case, layers)
    check_copy(case)
    if case.causal:
        check_causality(case, "auto")
        check_incremental(case, STEPS["in chunks"], "left", "auto")
        check_incremental(case, STEPS["token by token"], "none", "explicit")
        check_reorder(case, "explicit")
    if case.capabilities.memory:
        for path in ("explicit", "auto"):
            check_memory(case, path)


@pytest.mark.parametrize("case", [*listed("compositions"), *listed("schedules")])
def test_a_composition_obeys_the_laws(case: Case) -> None:
    check_laws(case, Scene(), Scene(before=3, side="left"))


@pytest.mark.parametrize("case", listed("windows"))
def test_layers_with_and_without_windows_obey_the_laws(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "SMALLEST", 1)
    check_laws(case, Scene(queries=14, side="left"), Scene(queries=7, before=7, side="right", span=5))


def pairs() -> list[Any]:
    """Return all pairs of encodings. `make test` tries one pair for each pair of kinds, which have the same hooks."""
    first = {case.name for case in every(first_of_kind)}
    return [
        pytest.param(pair, id="+".join(pair), marks=[] if first.issuperset(pair) else [pytest.mark.long])
        for pair in itertools.permutations(names(), 2)
    ]


@pytest.mark.parametrize("pair", pairs())
def test_every_pair_equals_its_reference_or_is_refused_by_name(pair: tuple[str, str]) -> None:
    both = [causal for causal in directions(pair[0]) if causal in directions(pair[1])]
    case = Case("+".join(pair), {}, both[0] if both else True)
    try:
        build(case.spec, None, case.shape())
    except ValueError:
        assert_refused(lambda: build(case.spec, None, case.shape()), "--pos-enc", *pair)
        return
    check_reference(case, Scene(before=2, side="left", layers=1))  # CASES have two layers


def test_capabilities_are_the_intersection_but_the_union_of_direction() -> None:
    shape = Case("none", causal=True).shape()
    assert build("alibi+none", None, shape).capabilities == replace(RELATIVE, directional=False)
    assert build("alibi+shaw", None, shape).capabilities.directional
    learned = replace(RELATIVE, memory=False, extrapolates=False, shift_invariant=False)
    assert build("alibi+learned", None, shape).capabilities == learned
    assert not build("alibi+t5", None, shape).capabilities.bidirectional


def test_the_limit_of_a_composition_is_the_shortest() -> None:
    stack = Scene(queries=4, room=0).stack(Case("shaw+learned"))
    assert stack.pos.limit == 4
    assert_refused(lambda: batch_of(stack, [5]), LENGTH_FLAG, "extend=repeat")


@pytest.mark.parametrize(("spec", "tensors"), [("rope+m4", 3), ("m4", 2), ("rope+shaw", 2)])
def test_raw_keys_are_cached_only_where_one_reads_and_another_projects(spec: str, tensors: int) -> None:
    stack = Scene().stack(Case(spec, causal=True))
    _, x, positions = batch_of(stack)
    caches = new_caches(stack)
    with torch.no_grad():
        attend_all(stack, x, positions, caches=caches)
    assert [len(cache.columns()) for cache in caches] == [tensors] * 2


def test_compressed_keys_have_no_cache() -> None:
    stack = Scene().stack(Case("compressing", causal=True, cls=declaring(Linformer, causal=True)))
    _, x, positions = batch_of(stack, [6])
    assert_refused(lambda: attend_all(stack, x, positions, caches=new_caches(stack)), "compressed", "cached")
