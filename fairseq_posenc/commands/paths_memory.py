"""Write docs/attention-memory.md (`docs --memory`), which shows how much memory each attention path keeps."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from tabulate import tabulate
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.graph import saved_tensors_hooks

from ..attention import PathRefusedError, attend
from ..attention.choice import Mode, choose
from ..attention.flex import gradients_on_a_cpu
from ..core.quiet import warnings_only
from .listing import on_meta
from .paths_page import GPU, HEAD_DIM, inputs, shape_of, subjects

PAGE = "attention-memory.md"
LENGTH = 2048
PATHS = ("explicit", "fused", "flex")

INTRODUCTION = f"""\
# Memory of the attention paths

`python -m fairseq_posenc docs --memory` writes this page in a few minutes; do not edit it. [Attention
paths](attention-paths.md) explains the paths.

The table shows how many MiB each path keeps from the forward pass to the backward pass, for one head and one sample of
{LENGTH} tokens in bfloat16. Each number is the total size of the tensors that autograd saves: the queries, keys and
values, and the results that the path keeps. A tensor that is saved twice is counted once. The sizes were measured on a
CPU, where FlexAttention runs uncompiled; they were not measured on a GPU. A bias that does not depend on the content is
counted for this sample, although all samples of a batch share it. The column *auto* shows the path that `--pos-enc-path
auto` takes on a GPU. A dash means that the path is not exact for the encoding.
"""


def page() -> str:
    """Measure the memory of all paths, and return the page as Markdown."""
    with warnings_only(__package__.rpartition(".")[0]), gradients_on_a_cpu():
        lines = list(_lines())
    return "\n".join([INTRODUCTION, tabulate(lines, ["encoding", "auto", *PATHS], tablefmt="github"), ""])


def _lines() -> Iterator[list[str]]:
    for name, options in subjects():
        title = f"`{name}`" + (f" `{options}`" if options else "")
        kept = {path: kept_for_backward(name, options, path, LENGTH) for path in PATHS}
        cells = ("-" if kept[path] is None else f"{(kept[path] or 0) / 2**20:.2f}" for path in PATHS)
        yield [title, chosen_path(name, options, LENGTH), *cells]


def chosen_path(name: str, options: str, length: int) -> str:
    """Return the path that `--pos-enc-path auto` takes on a GPU in training, in half precision."""
    causal = on_meta(name, options, shape_of(False)) is None
    x, call = inputs(name, options, causal, torch.bfloat16, length)
    return choose(x, call, Mode(training=True), place=GPU).path


def kept_for_backward(name: str, options: str, path: str, length: int) -> int | None:
    """Return how many bytes autograd keeps for the attention of one head; None if the path is not exact."""
    causal = on_meta(name, options, shape_of(False)) is None
    kept: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        if not isinstance(x, FakeTensor):  # fake tensors have no memory; torch uses them to trace FlexAttention
            storage = x.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
        return x

    with saved_tensors_hooks(keep, lambda x: x):
        x, call = inputs(name, options, causal, torch.bfloat16, length)
        kept.clear()  # what is computed once for all layers
        try:
            out, _ = attend(x, call, path=path)
        except PathRefusedError:
            return None
    assert out.shape[-1] == HEAD_DIM
    return sum(kept.values())
