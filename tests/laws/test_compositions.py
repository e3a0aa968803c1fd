"""Test law 15: combined encodings equal their references, or the combination is refused with the reason."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch

from fairseq_posenc.encodings import RELATIVE, build, names
from fairseq_posenc.encodings.linformer import Linformer
from fairseq_posenc.encodings.shaw import Shaw
from fairseq_posenc.positions import Positions

from .broken import declaring
from .cases import LENGTH_FLAG, Case, directions, every, first_of_kind, works
from .compare import assert_close, assert_refused, assert_same
from .scene import Scene, attend_all, embedded, new_caches, padded, positions_of, use_path
from .test_reference import check_reference
from .together import check_laws

ALLOWED = [
    ("learned+shaw", {}),
    ("learned+shaw", {"values": True, "clip": 2}),
    ("sinusoidal+t5", {"freq": "t2t"}),
    ("rope+alibi", {}),
    ("rope+shaw", {"share": "none"}),
    ("rope+fox", {}),
    ("rope+kerple+dape", {"share": "none"}),
    ("m2+t5+dape", {"hidden": 3}),
    ("diet-rel+segments+dape", {}),
    ("rope+t5", {}),
    ("shaw+alibi", {}),
    ("shaw+raffel", {"clip": 3}),
    ("m2+alibi", {}),
    ("rope+m4", {"clip": 3}),
    ("learned+m4m", {}),
    ("learned+sinusoidal+shaw+t5+alibi", {}),
    ("rope+logn", {}),
    ("pope+alibi", {"share": "all"}),
    ("wall+fox", {}),
    ("wall+alibi+logn", {}),
    ("path+fox", {}),
    ("path+alibi+logn", {}),
    ("rope+shaw", {"rope.fourier": True, "rope.base": 2.0}),
    ("fox", {"later": True}),
    ("rope+fox", {"later": True}),
    ("alibi", {"heads": 1}),
    ("pope+shaw+logn", {}),
    ("alibi+logn", {"form": "llama4", "interval": 2}),
    ("m2+shaw+logn", {"logn.share": "all"}),
    ("rope+kerple+dape+logn", {}),
    ("diet-rel+segments", {}),
    ("diet-abs+segments", {"diet-abs.share": "none", "segments.share": "layer-wise"}),
    ("diet-abs+diet-rel+segments-input+segments", {}),
    ("segments-input+linformer", {}),
    ("learned+segments-input+diet-abs-lin", {"share": "none"}),
]


def cases() -> list[Any]:
    """Return the compositions in both directions; `make test` tries decoders, where more laws hold."""
    every_way = [
        [Case(spec, args, causal) for causal in (True, False) if works(spec, args, causal)] for spec, args in ALLOWED
    ]
    return [
        pytest.param(case, id=str(case), marks=[] if case is ways[0] else [pytest.mark.long])
        for ways in every_way
        for case in ways
    ]


@pytest.mark.parametrize("case", cases())
def test_a_composition_obeys_the_laws(case: Case) -> None:
    check_laws(case, Scene(), Scene(before=3, side="left"))


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


def test_the_scale_of_a_member_holds_for_the_composition() -> None:
    shape = Case("t5").shape()
    assert build("t5", None, shape).layer(1).scale == shape.head_dim**-0.5
    assert build("learned+t5", "content_scale=one", shape).layer(1).scale == 1
    assert build("t5+shaw", "content_scale=one", shape).layer(1).scale == 1


def test_capabilities_are_the_intersection_but_the_union_of_direction() -> None:
    shape = Case("none", causal=True).shape()
    assert build("alibi+none", None, shape).capabilities == replace(RELATIVE, directional=False)
    assert build("alibi+shaw", None, shape).capabilities.directional
    learned = replace(RELATIVE, memory=False, extrapolates=False, shift_invariant=False)
    assert build("alibi+learned", None, shape).capabilities == learned
    assert not build("alibi+t5", None, shape).capabilities.bidirectional


def test_the_limit_of_a_composition_is_the_shortest() -> None:
    case = Case("shaw+learned")
    stack = Scene(queries=4, room=0).stack(case)
    assert stack.pos.limit == 4
    tokens = padded([5], 5)
    assert_refused(lambda: positions_of(tokens, stack), LENGTH_FLAG, "extend=repeat")
    positions = Positions.of_tokens(tokens, pad=None, causal=case.causal)
    assert_refused(lambda: stack(embedded(tokens, 8), positions), LENGTH_FLAG, "extend=repeat")


@pytest.mark.parametrize("spec", ["rope+shaw", "shaw+rope", "shaw", "rope", "rope+alibi"])
@pytest.mark.parametrize("reads", [False, True])
def test_raw_keys_are_cached_only_where_one_reads_and_another_projects(
    spec: str, reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shaw, "reads_keys", reads)  # pretend that Shaw reads keys, as M4 does
    case = Case(spec, causal=True)
    stack = Scene().stack(case)
    tokens = padded([6, 6], 6)
    caches = new_caches(stack)
    x = embedded(tokens, stack.shape.dim)
    with torch.no_grad():
        attend_all(stack, x, positions_of(tokens, stack), caches=caches)
    kept = 3 if reads and {"rope", "shaw"} <= set(spec.split("+")) else 2
    assert [len(cache.columns()) for cache in caches] == [kept] * 2
    if kept == 3:
        assert_same(caches[0].columns()[2], stack.layers[0].self_attn.project_key(x), "the raw keys")


@pytest.mark.parametrize(("case", "memory"), [(Case("rope+shaw", {}, True), 3), (Case("linformer"), 0)], ids=str)
def test_time_first_inputs_give_the_same(case: Case, memory: int) -> None:
    stack = Scene(queries=8).stack(case)
    tokens = padded([5, 3], 5)
    x, positions = embedded(tokens, stack.shape.dim), positions_of(tokens, stack, memory=memory)
    states = torch.randn(2, memory, stack.shape.dim, dtype=torch.float64)
    use_path(stack, "explicit")
    expected = attend_all(stack, x, positions, memory=states if memory else None)
    for block in stack.layers:
        block.self_attn.batch_first = False
    turned = [
        block.self_attn(x.transpose(0, 1), positions, tensors, memory=states.transpose(0, 1) if memory else None)[0]
        for block, tensors in zip(stack.layers, stack.pos.per_layer(positions), strict=True)
    ]
    assert_close(torch.stack(turned).transpose(1, 2), expected, 1e-12, "time first")


def test_compressed_keys_have_no_cache() -> None:
    stack = Scene().stack(Case("compressing", causal=True, cls=declaring(Linformer, causal=True)))
    tokens = padded([6], 6)
    x, positions = embedded(tokens, stack.shape.dim), positions_of(tokens, stack)
    assert_refused(lambda: attend_all(stack, x, positions, caches=new_caches(stack)), "compressed", "cached")
