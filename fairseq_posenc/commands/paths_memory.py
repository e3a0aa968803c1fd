"""Write docs/attention-memory.md (`docs --memory`), which shows how much memory each attention path keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from tabulate import tabulate
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.graph import saved_tensors_hooks

from ..attention import PathRefusedError, attend, flex
from ..attention.choice import Mode, choose
from ..attention.flex import gradients_on_a_cpu
from ..core.quiet import warnings_only
from ..core.terms import OfToken
from ..encodings import StackShape
from ..stack import Stack
from .listing import on_meta
from .paths_page import GPU, HEAD_DIM, inputs, shape_of, subjects, title_of
from .rounding import blocks_of

PAGE = "attention-memory.md"
LENGTH = 2048
PATHS = ("explicit", "fused", "flex")
#: Sizes of the whole layer: heads, width, tokens of a sample, samples. `gpu-check` measures a layer of this size, too.
LAYER_HEADS, LAYER_DIM, LAYER_LENGTH, LAYER_BATCH = 12, 768, 512, 32
#: Target of the peak memory of a layer that takes flex on a GPU, relative to a layer without positions.
MEMORY = 1.2

INTRODUCTION = f"""\
# Memory of the attention paths

`python -m fairseq_posenc docs --memory` writes this page in a few minutes; do not edit it. [Attention
paths](attention-paths.md) explains the paths.

The table shows how many MiB each path keeps from the forward pass to the backward pass, for one head and one sample of
{LENGTH} tokens in bfloat16. Each number is the total size of the tensors that autograd saves: the queries, keys and
values, and the results that the path keeps. A tensor that is saved twice is counted once. The sizes were measured on a
CPU, where FlexAttention runs uncompiled; they were not measured on a GPU. A bias that does not depend on the content is
counted in full, although all samples of a batch share it. The column *auto* shows the path that `--pos-enc-path
auto` takes on a GPU. A dash means that the path is not exact for the encoding.
"""

LAYER_SIZE = (
    f"width {LAYER_DIM}, {LAYER_HEADS} heads, feed-forward width {4 * LAYER_DIM}, "
    f"{LAYER_BATCH} samples of {LAYER_LENGTH} tokens"
)
LAYER = f"""
## A whole layer

Attention is only a part of the memory of a layer. The next table counts a whole layer for each encoding that takes
*flex*: {LAYER_SIZE}, bfloat16, without dropout.
The column *MiB* shows how much memory the layer keeps for the backward pass, without its parameters. The column *ratio*
shows the memory of the layer divided by that of a layer without positions on the path *fused*. `!` marks a ratio above
{MEMORY:.2f}, which is our target for the peak memory on a GPU. The products of queries or keys with the rows of a table
are not kept: the backward pass computes them again, for one layer at a time. We have not measured the peak memory on a
GPU. The peak memory also contains the products that are computed again, the gradients and other temporary tensors.
"""


def page() -> str:
    """Measure the memory of all paths, and return the page as Markdown."""
    with warnings_only(__package__.rpartition(".")[0]), gradients_on_a_cpu():
        core = tabulate(list(_lines()), ["encoding", "auto", *PATHS], tablefmt="github")
        head = ["encoding", "MiB", "ratio"]
        layer = tabulate(list(_layer_lines()), head, tablefmt="github", disable_numparse=True)
    return "\n".join([INTRODUCTION, core, LAYER, layer, ""])


def _lines() -> Iterator[list[str]]:
    for name, options in subjects():
        kept = {path: kept_for_backward(name, options, path, LENGTH) for path in PATHS}
        cells = ("-" if kept[path] is None else f"{(kept[path] or 0) / 2**20:.2f}" for path in PATHS)
        yield [title_of(name, options), chosen_path(name, options, LENGTH), *cells]


def _layer_lines() -> Iterator[list[str]]:
    plain = kept_by_layer("none", "", "fused")
    for name, options in subjects():
        if chosen_path(name, options, LAYER_LENGTH) == "flex":
            kept = kept_by_layer(name, options, "flex")
            missed = " !" if kept > MEMORY * plain else ""
            yield [title_of(name, options), f"{kept / 2**20:.0f}", f"{kept / plain:.2f}{missed}"]


def chosen_path(name: str, options: str, length: int) -> str:
    """Return the path that `--pos-enc-path auto` takes on a GPU in training, in half precision."""
    causal = on_meta(name, options, shape_of(False)) is None
    x, call = inputs(name, options, causal, torch.bfloat16, length)
    return choose(x, call, Mode(training=True), place=GPU).path


def kept_for_backward(name: str, options: str, path: str, length: int) -> int | None:
    """Return how many bytes autograd keeps for the attention of one head; None if the path is not exact."""
    causal = on_meta(name, options, shape_of(False)) is None
    with counted() as kept:
        x, call = inputs(name, options, causal, torch.bfloat16, length)
        kept.clear()  # what is computed once for all layers
        try:
            out, _ = attend(x, call, path=path)
        except PathRefusedError:
            return None
    assert out.shape[-1] == HEAD_DIM
    return sum(kept.values())


def kept_by_layer(name: str, options: str, path: str, length: int = LAYER_LENGTH) -> int:
    """Return how many bytes autograd keeps for a whole layer and `LAYER_BATCH` samples, without the parameters.

    This function counts two small batches, because every further sample keeps as much memory as the second one.
    """
    causal = on_meta(name, options, shape_of(False)) is None
    shape = StackShape(1, LAYER_HEADS, LAYER_DIM, length, causal=causal, has_cls=not causal)
    stack = Stack(name, options, shape).bfloat16()
    for block in blocks_of(stack):
        block.self_attn.path = path
        block.self_attn.eval()  # FlexAttention refuses training on a CPU
    one, two = (_kept_with_batch(stack, batch) for batch in (1, 2))
    return one + (LAYER_BATCH - 1) * (two - one)


def _kept_with_batch(stack: Stack, batch: int) -> int:
    tokens = torch.full((batch, stack.shape.max_length), 3)
    segments = torch.zeros_like(tokens) if stack.pos.needs_segments else None
    positions = stack.positions(tokens, pad=1, boundaries=(2,), segments=segments)
    x = torch.zeros(*tokens.shape, stack.shape.dim, dtype=torch.bfloat16, requires_grad=True)
    with counted(leave_out=stack.parameters()) as kept:
        stack(x, positions)
    return sum(kept.values())


@contextmanager
def counted(leave_out: Iterable[Tensor] = ()) -> Iterator[dict[int, int]]:
    """Yield the sizes in bytes, keyed by address, of the storages that autograd saves within the `with` block.

    The storages of the tensors `leave_out` are not counted."""
    kept: dict[int, int] = {}
    others = {x.untyped_storage().data_ptr() for x in leave_out}

    def keep(x: Tensor) -> Tensor:
        if not isinstance(x, FakeTensor):  # fake tensors have no memory; torch uses them to trace FlexAttention
            storage = x.untyped_storage()
            if storage.data_ptr() not in others:
                kept[storage.data_ptr()] = storage.nbytes()
        return x

    def with_keep(save: Callable[[Tensor], Tensor | OfToken], load: Callable[..., Tensor]) -> saved_tensors_hooks:
        """Return hooks that call `save` and `load`, and count the tensors that `save` returns."""

        def keep_also(x: Tensor) -> Tensor | OfToken:
            saved = save(x)
            for tensor in (saved,) if isinstance(saved, Tensor) else (saved.x, saved.vectors):
                keep(tensor)
            return saved

        return saved_tensors_hooks(keep_also, load)

    with saved_tensors_hooks(keep, lambda x: x), patch.object(flex, "saved_tensors_hooks", with_keep):
        yield kept
