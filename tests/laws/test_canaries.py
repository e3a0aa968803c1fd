"""Test that every law notices a fault: each row names a law, a fault, and words of the failure.

A fault is a broken encoding, or a change in what encodings share. Faults of torch's compiler are tested beside their
laws.
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
from fairseq_posenc.encodings import Composition
from fairseq_posenc.encodings.alibi import Alibi
from fairseq_posenc.encodings.huang import M2
from fairseq_posenc.encodings.learned import Learned
from fairseq_posenc.encodings.none import NoEncoding
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from . import broken
from . import test_caches_and_copies as caches
from . import test_initialisation as initial
from . import test_own_positions as own
from . import test_undeclared as undeclared
from .broken import declaring
from .cases import Case
from .scene import Scene, padded
from .test_causality import check_causality
from .test_count import check_count
from .test_documents import ONE_AFTER_ANOTHER as DOCUMENTS
from .test_documents import check_documents
from .test_gradients import check_frozen, check_gradients
from .test_half import check_half as half
from .test_half import check_sums
from .test_incremental import MEMORY, STEPS, check_incremental, check_memory, check_reorder
from .test_length import check_beyond
from .test_options import check_option, other_values
from .test_padding import check_alone, check_empty_rows, check_padding
from .test_reference import FUSED, Forward, check_fused, check_reference
from .test_reference import check_gradients as check_reference_gradients
from .test_schedule import SCENE, SCHEDULE
from .test_shift_and_direction import check_direction, check_shift
from .test_statistics import SCENES, check_statistics

pytestmark = pytest.mark.usefixtures("_new_memory_is_nan")
Law = Callable[[Case], Any]


def fault(cls: type, *, causal: bool = False, composition: type[Composition] = Composition, **args: Any) -> Case:
    """Return the case of a broken encoding."""
    return Case("broken", args, causal, cls, composition)


def permitted(cls: type) -> Case:
    """Return the case of an encoding whose composition lets it do what it does not declare."""
    return fault(cls, composition=broken.Permissive)


def check_own_option(case: Case) -> None:
    """Check the option that a broken encoding adds, which is the last one."""
    check_option(case, *other_values(case)[-1])


def fused_gradients(case: Case) -> None:
    check_reference_gradients(Forward(case, Scene()), "fused", FUSED)


reference = partial(check_reference, scene=Scene())
statistics = partial(check_statistics, scene=SCENES[0], path="explicit")
scheduled = partial(check_reference, scene=SCENE)
causality = [partial(check_causality, path=path) for path in ("explicit", "auto")]
together = [partial(check_documents, side="right", path=path) for path in ("explicit", "auto")]
steps = partial(check_incremental, steps=STEPS["token by token"], side="none", path="explicit")
reorder = partial(check_reorder, path="explicit")
left = partial(check_padding, side="left", path="explicit")
empty_rows = partial(check_empty_rows, side="left", path="explicit")
memory = partial(check_memory, path="explicit")
gradients = partial(check_gradients, layers=(0, 1, 2))
starts = partial(initial.check_recommended, starts=initial.BY_NAME["shaw"])
contradiction, places = undeclared.check_contradiction, itertools.product(undeclared.NEEDS, undeclared.PLACES)
undeclared_uses = [partial(undeclared.check_undeclared, need=need, place=place) for need, place in places]
changes = (caches.in_place, caches.replaced_parameters, caches.swapped, caches.written_behind)
evaluation = {change: partial(caches.check_evaluation, change=change) for change in changes}

CANARIES: list[tuple[Law, Case, str]] = [
    (reference, fault(broken.WrongSign, share="none"), "differs"),
    (reference, fault(broken.ForgetsTheLayer, share="none"), "differs"),
    (reference, fault(broken.Detached), r"gradient of pos\.broken\.weight"),
    (fused_gradients, fault(broken.Detached), r"gradient of pos\.broken\.weight"),
    (partial(check_fused, scene=Scene()), fault(broken.WrongInInference), "differs"),
    (scheduled, fault(broken.ReadsByIndex, layers=SCHEDULE, share="none"), "output: differs"),
    *((law, fault(broken.LooksAhead, causal=True), "columns before") for law in causality),
    (left, fault(broken.CountsPads), "a sample of"),
    (empty_rows, fault(broken.AddsToAllRows), "a sample of pads"),
    (empty_rows, fault(broken.BadGradient), "gradient of"),
    (steps, fault(broken.CountsRowsFromZero, causal=True), "steps"),
    (memory, fault(broken.CountsRowsFromZero), "with memory"),
    *((law, fault(broken.CountsPads), "documents: output") for law in together),
    (check_shift, fault(declaring(Learned, shift_invariant=True)), "shift_invariant"),
    (check_shift, fault(declaring(Alibi, shift_invariant=False)), "shift_invariant"),
    (check_direction, fault(declaring(M2, directional=False)), "directional"),
    (check_direction, fault(declaring(Alibi, directional=True)), "directional"),
    (check_beyond, fault(broken.WrapsAround), "beyond the maximum length"),
    (check_beyond, fault(broken.SilentlyClips), "contradicts"),
    (check_beyond, permitted(broken.IgnoresItsLimit), "not refused"),
    (own.check_own, fault(broken.ReadsColumns), "differs"),
    (own.check_limit, permitted(broken.IgnoresItsLimit), "not refused"),
    *((law, permitted(undeclared.NOTHING), "not refused") for law in undeclared_uses),
    *((partial(contradiction, name=name), permitted(NoEncoding), "not refused") for name in undeclared.CONTRADICTIONS),
    *((law, fault(broken.StaleCache), change.__name__) for change, law in evaluation.items()),
    (caches.check_lengths, fault(broken.KeepsTheLongest), "at first: length 4"),
    (caches.check_copy, fault(broken.SharesItsWeight), "the other one|the changed one|its own parameters"),
    (partial(half, ways=[(torch.bfloat16, False)]), fault(broken.RoundsPositions), "half precision"),
    (
        partial(half, ways=[(torch.float16, False)]),
        fault(broken.DoublesGradientsInHalf),
        "gradients of (tables|projections) drift",
    ),
    (check_sums, fault(broken.SumsInHalf), r"summed gradient of broken\.weight"),
    (check_count, fault(broken.WrongCount), "parameters, not"),
    (starts, fault(broken.ForgetsToDraw), "is not drawn"),
    (starts, fault(broken.Shifted), ": mean 0.0"),
    (
        initial.check_step_zero,
        fault(broken.OneHeadStartsDead),
        "no gradient: .*part 1; .*part 3; .*part 9",
    ),
    (initial.check_step_zero, fault(broken.ListsWhatLearns), "listed as constant along a row, and has a gradient"),
    (check_own_option, fault(broken.DropsItsOption), "changes nothing"),
    (gradients, fault(broken.ReadsItsWeight, share="layer-wise"), r"reentrant: .*weight accumulated [2-9] times"),
    (gradients, fault(broken.Detached), "accumulated 0 times"),
    (partial(check_frozen, training=False), fault(broken.Detached), "has no gradient"),
    (statistics, fault(broken.WrongSign, causal=True), "(logit|entropy) of"),
]


@pytest.mark.parametrize(("law", "case", "words"), CANARIES, ids=lambda part: getattr(part, "cls", type).__name__)
def test_a_broken_encoding_is_caught(law: Law, case: Case, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        law(case)


Wrong = Callable[[Any], Any]  # a function, method or property -> its replacement
ALIBI = Case("alibi", causal=True)


def mask_without_documents(right: Any, *, before: bool = False) -> property:
    """Return a mask that ignores documents, everywhere or only if columns come `before` the queries."""
    return property(lambda self: right.make(replace(self, documents=None) if self.offset or not before else self))


def forgets_padding_of_memory(right: Any) -> property:
    """Return positions that take the padding of the memory for tokens."""
    return property(lambda self: lambda *args, **given: right.fget(self)(*args, **given | {"memory_padding": None}))


mask_with_documents_of_queries = partial(mask_without_documents, before=True)
SHARED: list[tuple[Any, str, Wrong, Callable[[], Any], str]] = [
    (KeyValueCache, "reorder", lambda right: lambda self, order: right(self, order.sort().values),
     lambda: reorder(Case("shaw", causal=True)), "reordered"),
    (Stack, "positions", forgets_padding_of_memory, lambda: reorder(ALIBI, memory=MEMORY), "behind 4 columns"),
    *((Positions, "allowed", mask_without_documents, partial(law, ALIBI), "documents: output") for law in together),
    (Positions, "allowed", mask_with_documents_of_queries, lambda: memory(ALIBI, documents=DOCUMENTS), "with memory"),
    (Positions, "allowed", mask_with_documents_of_queries, lambda: reorder(ALIBI, documents=DOCUMENTS), "reordered"),
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
     lambda: own.check_steps(Case("rope", causal=True)), "steps"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name", "wrong", "law", "words"), SHARED)
def test_a_fault_in_what_encodings_share_is_caught(
    owner: Any, name: str, wrong: Wrong, law: Callable[[], Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong(vars(owner)[name]))
    with pytest.raises(AssertionError, match=words):
        law()
