"""Test laws 5 and 6: steps give the same output as the whole sequence, and memory the same as a longer context.

Beam search may reorder the samples between the steps, also behind memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention.choice import UNFUSED
from fairseq_posenc.stack import Stack

from .cases import Case, claims, in_turn, without_options
from .compare import assert_close
from .scene import PAD, Scene, attend_all, batch_of, embedded, new_caches, padded, positions_of, run, use_path

pytestmark = pytest.mark.usefixtures("_new_memory_is_nan")  # caches grow in memory of their own

LENGTH, MEMORY = 8, 4
STEPS = {"token by token": [1] * LENGTH, "in chunks": [3, 1, 2, 2], "from a prefix": [5, 1, 1, 1]}
#: For each kind of steps, the sides of the padding and the paths; together they contain every pair of side and path.
WAYS = {
    "token by token": [("none", "explicit"), ("left", "auto"), ("right", "explicit")],
    "in chunks": [("left", "explicit"), ("right", "auto")],
    "from a prefix": [("left", "explicit"), ("none", "auto")],
}
BEAM = torch.tensor([2, 0, 0, 1])


def decode(
    stack: Stack,
    tokens: Tensor,
    steps: Sequence[int],
    *,
    reorder_after: int = 0,
    memory: int = 0,
    documents: Tensor | None = None,
) -> Tensor:
    """Return the output at all columns after the memory, computed in steps; samples may be reordered on the way."""
    caches, outputs, done = new_caches(stack), [], 0
    earlier = tokens[:, :memory]
    states = stack(embedded(earlier, stack.shape.dim), positions_of(earlier, stack))[1] if memory else None
    for step in steps:
        seen, pads = tokens[:, memory : memory + done + step], tokens[:, :memory].eq(PAD)
        new = embedded(seen, stack.shape.dim)[:, done:]
        own = None if documents is None else documents[:, : memory + done + step]
        where = positions_of(seen, stack, cached=done, memory=memory, memory_padding=pads, documents=own)
        outputs.append(stack(new, where, memory=None if done else states, caches=caches)[0])
        done += step
        if done == reorder_after:
            tokens, outputs = tokens[BEAM], [output[BEAM] for output in outputs]
            documents = None if documents is None else documents[BEAM]
            for cache in caches:
                cache.reorder(BEAM)
    return torch.cat(outputs, 1)


def _for_steps(case: Case, path: str) -> str:
    """Set the path: a CPU chooses the explicit path for a single query, a GPU does not."""
    return path if path != "auto" or case.hooks & UNFUSED.keys() else "fused"


def check_incremental(
    case: Case, steps: Sequence[int] = (1,) * LENGTH, side: str = "none", path: str = "explicit", *, grad: bool = False
) -> None:
    """Compare decoding in steps with the whole sequence, with padding on one side."""
    stack = Scene(queries=LENGTH).stack(case)
    use_path(stack, _for_steps(case, path))
    with torch.set_grad_enabled(grad):
        check_steps(stack, steps, side, path)


def check_steps(stack: Stack, steps: Sequence[int], side: str, path: str) -> None:
    """Compare the steps of a stack with the whole sequence."""
    tokens = padded([8, 6, 8, 3], LENGTH, side)
    decoded, whole = decode(stack, tokens, steps), run(stack, tokens, path)
    real = tokens.ne(PAD)
    assert_close(decoded[real], whole[real], 1e-10, f"steps {list(steps)}")


def check_reorder(case: Case, path: str = "explicit", *, memory: int = 0, documents: Tensor | None = None) -> None:
    """Check decoding in which hypotheses are dropped and repeated, as in beam search.

    An earlier segment may come before, which begins with padding or consists of it.
    """
    stack = Scene(queries=LENGTH).stack(case)
    tokens = padded([8, 3, 6], LENGTH, "left")
    steps = [2, *[1] * (LENGTH - memory - 2)]
    use_path(stack, _for_steps(case, path))
    with torch.no_grad():
        decoded = decode(stack, tokens, steps, reorder_after=3, memory=memory, documents=documents)
    whole = run(stack, tokens[BEAM], path, documents=None if documents is None else documents[BEAM])
    real = tokens[BEAM, memory:].ne(PAD)
    assert_close(decoded[real], whole[:, memory:][real], 1e-10, f"reordered behind {memory} columns of memory")


def check_memory(case: Case, path: str = "explicit", *, documents: Tensor | None = None) -> None:
    """Check that memory and queries give the last rows of all columns, in every layer."""
    stack = Scene(queries=LENGTH).stack(case)
    use_path(stack, path)
    tokens, x, _ = batch_of(stack, [LENGTH] * 3)
    with torch.no_grad():
        whole = attend_all(stack, x, positions_of(tokens, stack, documents=documents))
        where = positions_of(tokens[:, MEMORY:], stack, memory=MEMORY, documents=documents)
        parts = attend_all(stack, x[:, MEMORY:], where, memory=x[:, :MEMORY])
    assert_close(parts, whole[:, :, MEMORY:], 1e-12, "with memory")


CAUSAL = in_turn(lambda case: case.causal, without_options)


@pytest.mark.parametrize("case", CAUSAL)
def test_steps_equal_the_whole(case: Case) -> None:
    for kind, ways in WAYS.items():
        for side, path in ways:
            check_incremental(case, STEPS[kind], side, path)
    check_incremental(case, STEPS["in chunks"], "left", "auto", grad=True)


@pytest.mark.parametrize("case", CAUSAL)
def test_beam_search_may_reorder(case: Case) -> None:
    for path in ("explicit", "auto"):
        check_reorder(case, path)
        if case.capabilities.memory:
            check_reorder(case, path, memory=MEMORY)


@pytest.mark.parametrize("case", in_turn(lambda case: case.capabilities.memory, claims))
def test_memory_equals_a_longer_context(case: Case) -> None:
    for path in ("explicit", "auto"):
        check_memory(case, path)
