"""`python -m fairseq_posenc docs` also writes docs/attention-paths.md: the attention path that each encoding takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from tabulate import tabulate
from torch import Tensor

from ..attention import Projected
from ..attention.choice import Choice, Mode, Place, choose
from ..core.compose import LayerCall
from ..core.quiet import warnings_only
from ..encodings import StackShape, build, names
from ..positions import Positions
from .listing import on_meta

PAGE = "attention-paths.md"
LENGTH, HEADS, HEAD_DIM, CLIP = 512, 1, 64, 64
#: Options of encodings that read fewer rows of a table than the default.
FEWER_ROWS = f"clip={CLIP}"

INTRODUCTION = f"""\
# Attention paths

`python -m fairseq_posenc docs` writes this page; do not edit it.

Self-attention is computed on one of three paths, which give the same results up to rounding:

- *explicit*: torch operations, with logits in float32 and a tensor of all pairs of queries and keys;
- *fused*: torch's `scaled_dot_product_attention`, if the encoding adds nothing to the logits or a bias that is not
  rounded;
- *flex*: torch's FlexAttention on a GPU. It adds the terms of an encoding to the logits in float32 inside its kernel.

`--pos-enc-path auto` (the default) takes the best path that is exact. The log says once which path was taken, and why.
`--pos-enc-path explicit`, `fused` or `flex` forces a path. If the forced path is not exact, an error gives the reason.

The paths were not measured on a GPU, because no GPU was available. `python -m fairseq_posenc gpu-check --output DIR`
checks all paths on a GPU and measures them. In CI, the test `tests/laws/test_flex.py` runs FlexAttention on a CPU
without compiling it, and compares outputs and gradients with the reference in float64.
[Memory](attention-memory.md) shows how much memory each path keeps for the backward pass.

## The path that auto takes

The table is for n = {LENGTH}, heads of width {HEAD_DIM}, and a GPU with Triton. *half* is bfloat16 or float16.
An encoding has a second row, with `{FEWER_ROWS}`, if its smaller tables change the path.
On a GPU, inference takes the same path as training. The exception is decoding one token at a time, where the logits
are small: it takes fused if fused is exact for the encoding, and explicit otherwise. On a CPU, training and decoding
one token at a time take explicit.
"""

DROPOUT = """\
With attention dropout, FlexAttention cannot be used. `auto` then takes fused or explicit, as the last column shows. The
presets of BERT and RoBERTa have attention dropout 0.1, as in their papers, so they cannot use flex. In
`recipes/pretrain_mlm`, the presets `m1-m4-flex` (BERT) and `base-flex` (RoBERTa) set the attention dropout to 0, and
keep every other dropout of the papers. For other models, give `--attention-dropout 0`.

Training with deterministic algorithms (`torch.use_deterministic_algorithms`) takes explicit, and so does a call that
asks for the attention weights. In float64, attention takes fused or explicit.
"""


class Column(NamedTuple):
    """Hold a column of the table: its title, and what the choice of the path depends on."""

    title: str
    place: Place
    dtype: torch.dtype
    mode: Mode


CPU, GPU = Place(on_gpu=False, triton=False), Place(on_gpu=True, triton=True)
COLUMNS = (
    Column("CPU, inference", CPU, torch.float32, Mode()),
    Column("GPU, half", GPU, torch.bfloat16, Mode(training=True)),
    Column("GPU, float32", GPU, torch.float32, Mode(training=True)),
    Column("GPU, half, with attention dropout", GPU, torch.bfloat16, Mode(training=True, dropout=0.1)),
)


def page() -> str:
    """Return the Markdown of the page."""
    with warnings_only(__package__.rpartition(".")[0]):
        table, reasons = _table()
    return "\n".join([INTRODUCTION, table, "", "## Why not flex", "", reasons, "", DROPOUT])


def _table() -> tuple[str, str]:
    lines, reasons = [], dict[str, list[str]]()
    for name, options in subjects():
        choices = [chosen(name, options, column) for column in COLUMNS]
        title = f"`{name}`" + (f" `{options}`" if options else "")
        lines.append([title, *(choice.path for choice in choices)])
        if choices[1].path != "flex":
            reasons.setdefault(choices[1].reason.removeprefix("not flex: "), []).append(title)
    head = ["encoding", *(column.title for column in COLUMNS)]
    listed = [f"- {', '.join(titles)}: {reason}." for reason, titles in reasons.items()]
    return tabulate(lines, head, tablefmt="github"), "\n".join(listed)


def subjects() -> Iterator[tuple[str, str]]:
    """Yield every encoding with its default options and, if that changes a path, with `FEWER_ROWS`."""
    for name in names():
        yield name, ""
        if works(name, FEWER_ROWS) and paths(name, FEWER_ROWS) != paths(name, ""):
            yield name, FEWER_ROWS


def paths(name: str, options: str) -> list[str]:
    """Return the path that the encoding takes under the conditions of each column."""
    return [chosen(name, options, column).path for column in COLUMNS]


def works(name: str, options: str) -> bool:
    """Return whether the encoding accepts the options."""
    return any(on_meta(name, options, shape_of(causal)) is not None for causal in (False, True))


def shape_of(causal: bool, length: int = LENGTH) -> StackShape:
    """Return the shape of the stack for which the paths are shown."""
    return StackShape(1, HEADS, HEADS * HEAD_DIM, length, causal=causal, has_cls=not causal)


def chosen(name: str, options: str, column: Column) -> Choice:
    """Return the path that auto takes for an encoding, in an encoder if it works there, and the reason."""
    causal = on_meta(name, options, shape_of(False)) is None
    with torch.no_grad():
        x, call = inputs(name, options, causal, column.dtype)
        return choose(x, call, column.mode, place=column.place)


def inputs(
    name: str, options: str, causal: bool, dtype: torch.dtype, length: int = LENGTH
) -> tuple[Projected, LayerCall]:
    """Return queries, keys and values of one layer, and its hooks."""
    encoding = build(name, options, shape_of(causal, length)).to(dtype)
    cls_column = None if causal else torch.zeros(1, dtype=torch.long)
    segments = torch.zeros(1, length, dtype=torch.long) if encoding.needs_segments else None
    positions = Positions(length, length, torch.device("cpu"), causal=causal, segments=segments, cls_column=cls_column)
    q, k, v = (torch.zeros(1, HEADS, length, HEAD_DIM, dtype=dtype, requires_grad=True) for _ in range(3))
    call = encoding.layer(1, content, content).at(positions, encoding.per_layer(positions)[0])
    if not call.view.has("compress"):
        return Projected(q, k, v, q, k), call
    slots = call.compress(*torch.zeros(2, 1, length, HEADS * HEAD_DIM, dtype=dtype))[0].shape[1]
    k, v = k[:, :, :slots], v[:, :, :slots]
    return Projected(q, k, v, q, k, positioned=False), call


def content(x: Tensor) -> Tensor:
    """Stand in for a layer's projection: only split x [B, T, d] into heads, [B, h, T, d / h]."""
    return x.unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2)
