"""Test that every law notices a fault: each row of canaries.toml names a law and a fault.

Others are changes in what encodings share. Faults of torch's compiler are tested beside their laws.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from fairseq_posenc.attention import KeyValueCache
from fairseq_posenc.core import compose, drawing
from fairseq_posenc.core.syntax import parse_options
from fairseq_posenc.encodings import Composition
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from . import broken
from . import test_caches_and_copies as caches
from . import test_initialisation as initial
from . import test_own_positions as own
from .cases import Case, tables
from .scene import Scene, padded
from .test_causality import check_causality
from .test_count import check_count
from .test_documents import ONE_AFTER_ANOTHER as DOCUMENTS
from .test_documents import check_documents
from .test_gradients import check_frozen, check_gradients, check_per_sample
from .test_half import check_half, check_sums
from .test_incremental import MEMORY, check_incremental, check_memory, check_reorder, check_steps
from .test_length import check_beyond
from .test_options import check_options
from .test_padding import check_alone, check_empty_batch, check_empty_rows, check_padding
from .test_reference import check_fused, check_fused_gradients, check_reference
from .test_schedule import check_schedule
from .test_shift_and_direction import check_direction, check_shift
from .test_statistics import check_statistics
from .test_undeclared import CONTRADICTIONS, NEEDS, PLACES, check_contradiction, check_undeclared

pytestmark = pytest.mark.usefixtures("_new_memory_is_nan")
Law = Callable[..., Any]


def named(law: Law, **settings: Any) -> dict[str, Law]:
    """Return a law called with these settings, by a name that consists of its own name and those of the settings."""
    words = [law.__name__.removeprefix("check_"), *(getattr(x, "__name__", str(x)) for x in settings.values())]
    return {" ".join(words): partial(law, **settings)}


SIMPLE = (
    check_reference, check_fused, check_fused_gradients, check_schedule, check_causality, check_padding,
    check_empty_rows, check_incremental, check_memory, check_documents, check_shift, check_direction, check_beyond,
    own.check_own, own.check_limit, caches.check_lengths, caches.check_copy, check_sums, check_count,
    initial.check_step_zero, check_options, check_gradients, check_frozen, check_per_sample, check_empty_batch,
    check_statistics,
)  # fmt: skip
CHANGES = (caches.in_place, caches.replaced_parameters, caches.swapped, caches.written_behind)
WITH_SETTINGS = [
    *(named(law, path="auto") for law in (check_causality, check_documents)),
    *(named(check_undeclared, need=need, place=place) for need, place in itertools.product(NEEDS, PLACES)),
    *(named(check_contradiction, name=name) for name in CONTRADICTIONS),
    *(named(caches.check_evaluation, change=change) for change in CHANGES),
    *(named(check_half, dtype=dtype) for dtype in (torch.bfloat16, torch.float16)),
]
LAWS: dict[str, Law] = {
    **{name: law for laws in (*map(named, SIMPLE), *WITH_SETTINGS) for name, law in laws.items()},
    "recommended": partial(initial.check_recommended, starts=initial.RECOMMENDED["shaw"]),
}
CANARIES = tables("canaries")["canaries"]


@pytest.mark.parametrize(("law", "name", "stack", "args", "words"), CANARIES)
def test_a_broken_encoding_is_caught(law: str, name: str, stack: str, args: str, words: str) -> None:
    composition = broken.Permissive if stack == "permissive" else Composition
    with pytest.raises((AssertionError, IndexError, RuntimeError), match=words):
        LAWS[law](Case("broken", parse_options(args), stack == "decoder", getattr(broken, name), composition))


def test_every_law_has_a_canary() -> None:
    assert {row[0] for row in CANARIES} == LAWS.keys()


Wrong = Callable[[Any], Any]  # a function, method or property -> its replacement
ALIBI = Case("alibi", causal=True)


def mask_without_documents(right: Any, *, before: bool = False) -> property:
    """Return a mask that ignores documents, everywhere or only if columns come `before` the queries."""
    return property(lambda self: right.make(replace(self, documents=None) if self.offset or not before else self))


def forgets_padding_of_memory(right: Any) -> property:
    """Return positions that take the padding of the memory for tokens."""
    return property(lambda self: lambda *args, **given: right.fget(self)(*args, **given | {"memory_padding": None}))


mask_of_new_documents = partial(mask_without_documents, before=True)
SHARED: list[tuple[Any, str, Wrong, Callable[[], Any], str]] = [
    (KeyValueCache, "reorder", lambda right: lambda self, order: right(self, order.sort().values),
     lambda: check_reorder(Case("shaw", causal=True)), "reordered"),
    (Stack, "positions", forgets_padding_of_memory, lambda: check_reorder(ALIBI, memory=MEMORY), "behind 4 columns"),
    (Positions, "allowed", mask_without_documents, lambda: check_documents(ALIBI), "documents"),
    (Positions, "allowed", mask_without_documents, lambda: check_documents(ALIBI, path="auto"), "documents"),
    (Positions, "allowed", mask_of_new_documents, lambda: check_memory(ALIBI, documents=DOCUMENTS), "with memory"),
    (Positions, "allowed", mask_of_new_documents, lambda: check_reorder(ALIBI, documents=DOCUMENTS), "reordered"),
    (Positions, "within", lambda right: lambda self, window: right(self, window and window + 2),
     lambda: check_reference(Case("rope", {"window": 3}, causal=True), Scene(queries=14)), "differs"),
    (drawing, "_order", lambda right: lambda stack, training: torch.arange(stack.max_length),
     lambda: own.check_uniform(False), "of 15 pairs"),
    (drawing, "_order", lambda right: lambda stack, training: torch.arange(stack.max_length),
     lambda: own.check_drawn(Case("rope")), "differs"),
    (drawing, "_order", lambda right: lambda stack, training: torch.randperm(stack.max_length),
     lambda: check_alone(own.stack_of(Case("rope")), padded([8, 3], 8)), "a sample of"),
    (compose, "drawn_positions",
     lambda right: lambda at, stack, training: right(at, replace(stack, causal=False), training=training),
     lambda: check_steps(own.stack_of(Case("rope", causal=True)), [5, 1, 1, 1], "left", "explicit"), "steps"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name", "wrong", "law", "words"), SHARED)
def test_a_fault_in_what_encodings_share_is_caught(
    owner: Any, name: str, wrong: Wrong, law: Callable[[], Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong(vars(owner)[name]))
    with pytest.raises(AssertionError, match=words):
        law()
