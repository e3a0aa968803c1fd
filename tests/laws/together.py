"""Check that encodings which work together, in one layer or in different ones, obey the laws of single encodings."""

from __future__ import annotations

from .cases import Case
from .scene import Scene
from .test_caches_and_copies import check_copy
from .test_causality import check_causality
from .test_gradients import check_gradients, check_stack_flag
from .test_incremental import STEPS, check_incremental, check_reorder
from .test_memory import check_memory
from .test_padding import check_empty_rows, check_padding
from .test_reference import check_fused, check_reference


def check_laws(case: Case, *scenes: Scene) -> None:
    """Compare a composition with its references in some scenes, and check all laws that its capabilities allow."""
    for scene in scenes:
        check_reference(case, scene)
        check_fused(case, scene)
    for side in ("left", "right"):
        check_padding(case, side, "auto")
        check_empty_rows(case, side, "explicit")
    check_gradients(case, (0, 1))
    check_stack_flag(case)
    check_copy(case)
    if case.causal:
        check_causality(case, "auto")
        check_incremental(case, STEPS["in chunks"], "left", "auto")
        check_incremental(case, STEPS["token by token"], "none", "explicit")
        check_reorder(case, "explicit")
    if case.capabilities.memory:
        for path in ("explicit", "auto"):
            check_memory(case, path)
