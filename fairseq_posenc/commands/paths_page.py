"""Write docs/attention-paths.md, which shows the attention path that each encoding takes (`docs` runs this)."""

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
from ..encodings import StackShape, build, specs
from ..positions import Positions
from .listing import on_meta

PAGE = "attention-paths.md"
LENGTH, HEADS, HEAD_DIM, CLIP = 512, 1, 64, 64
#: The law of flex in tests/laws has more cases than this.
LAW_CASES = 180
#: Options with which encodings may take another path: fewer rows of a table than by default, and terms of values.
FEWER_ROWS, VALUES = f"clip={CLIP}", "values=true"

INTRODUCTION = f"""\
# Attention paths

`python -m fairseq_posenc docs` writes this page; do not edit it.

Self-attention is computed on one of three paths, which give the same results except for rounding errors:

- *explicit* uses separate torch operations, and stores the logits of all pairs of queries and keys in float32.
- *fused* is torch's `scaled_dot_product_attention`. *fused* is exact if the encoding adds nothing to the logits, or if
  the kernel does not round the encoding's bias.
- *flex* is torch's FlexAttention on a GPU. The kernel of FlexAttention adds the terms of an encoding to the logits in
  float32.

`--pos-enc-path auto` (the default) chooses the best of the paths that are exact. A log line says once which path was
chosen, and why. `--pos-enc-path explicit`, `fused` or `flex` forces a path. If the forced path is not exact, an error
gives the reason. With the option `layers`, the path is chosen for each layer separately, because layers may have
different encodings.

The paths were not measured on a GPU, because no GPU was available. `python -m fairseq_posenc gpu-check --output DIR`
checks all paths on a GPU and measures them. The test `tests/laws/test_flex.py` runs FlexAttention uncompiled on a CPU,
and compares outputs and gradients with the reference in float64, in more than {LAW_CASES} cases (some of them are
tested by `make test-long` only). The command
`gpu-check --device cpu --quick` passed with torch 2.8.0 (Python 3.11), 2.11.0 (Python 3.12) and 2.13.0 (Python 3.11).
For torch 2.8.0 and 2.11.0, only torch, its requirements and numpy were installed. We have not run the kernels that
Triton compiles for a GPU. *flex* needs torch 2.8 or newer; with an older torch, `auto` takes another path.
[Memory](attention-memory.md) shows how much memory each path keeps for the backward pass.

## The path that auto takes

The table shows the paths for sequences of {LENGTH} tokens and heads of width {HEAD_DIM}, and for a GPU with Triton. In
the headings, *half* means bfloat16 or float16. A further row shows an encoding with `{FEWER_ROWS}` or `{VALUES}` if
this option changes its path. The option `buckets` of `deberta` has the same effect as `clip`. No option except `clip`,
`buckets` and `values` changes the path for {LENGTH} tokens. On a GPU, inference takes the same path as training.
Decoding one token at a time is an exception, because it computes few logits: it takes *fused* if this path is exact for
the encoding, otherwise *explicit*. On a CPU, training takes *explicit* in every precision, and so does decoding one
token at a time.
"""

DROPOUT = """\
With attention dropout, FlexAttention cannot be used, so `auto` takes *fused* or *explicit*. The last column of the
table shows the path with attention dropout. The presets of BERT and RoBERTa have attention dropout 0.1, as in their
papers, so they cannot use *flex*. In `recipes/pretrain_mlm`, the presets `m1-m4-flex` (BERT) and `base-flex` (RoBERTa)
set the attention dropout to 0, and leave every other dropout as in the papers. To use *flex* with other models, give
`--attention-dropout 0`.

If deterministic algorithms are requested (`torch.use_deterministic_algorithms`), training takes the path *explicit*. A
call that requests the attention weights also takes *explicit*. In float64, attention takes *fused* or *explicit*.
"""

LOW_RANK = """\
## Why factors are not appended to queries and keys

The bias of `diet-abs` is a product of two tables. The bias of `alibi` in a decoder is s (j - i), where s is a slope.
The bias s (j - i) has the same effect as s j, because the softmax cancels the term -s i, which depends only on the
query. Instead of adding such a bias to the logits, one can append its two factors to the queries and keys as additional
features, and call torch's fused kernel without a bias. The same number of zeros must be appended to the values, because
the kernel needs queries, keys and values of equal width. We tried this method outside of the package, with heads of
width 64. We found these results:

- *Drift* is the rms of the difference between the outputs and the outputs in float64, divided by the rms of the outputs
  in float64. In float32, `alibi` has a drift of 2.3e-6 at n = 512 and of 9.8e-6 at n = 2048, because the logits grow to
  s n. Our bound is 5e-6, and the drift of *explicit* is 8e-8. In bfloat16, `alibi` with a single additional feature has
  a drift of 0.19 at n = 512 and of 0.52 at n = 2048 (*explicit*: 0.0023), because bfloat16 rounds integers above 256.
  The rounding disappears if each position is the sum of a multiple of 256 and a remainder, and each slope is the sum of
  three numbers in bfloat16. In float16, multiples of 2048 (instead of 256) and two numbers for each slope (instead of
  three) are enough. With the resulting 6 features (in float16: 4), the drift is as small as that of *explicit*. In
  float32, bfloat16 and float16, the drift of `diet-abs` is as small as that of *explicit*. The drift of `diet-abs` is
  also small under autocast, where the tables are in float32.
- *Memory*, counted as in [Memory](attention-memory.md): `alibi` would keep 1.13 MiB, and `diet-abs` of rank 64 would
  keep 2.01 MiB. *flex* keeps 1.03 MiB for `alibi` and 1.02 MiB for `diet-abs`. For `diet-abs`, *flex* also keeps 16 MiB
  for the product of the tables, which all samples of a batch share. With attention dropout, where *flex* cannot be
  used, *explicit* keeps 40.75 MiB.
- *Time* of attention alone on a CPU, at n = 512 in float32: Compared with *fused* with a bias, inference takes 0.78
  times as long for `alibi`, 2.00 times as long for `diet-abs` of rank 64, and 1.11 times as long for rank 8. Compared
  with *explicit*, training takes 0.89 (`alibi`), 1.33 (rank 64) and 0.93 (rank 8) times as long.

Appended features would therefore be an improvement in two cases only. On a CPU, inference with `alibi` would be faster
than with a bias, but the drift in float32 is too large for long sequences. On a GPU, training in half precision with
attention dropout would need much less memory than on the path *explicit*. However, `--attention-dropout 0` with *flex*
saves at least as much memory for `alibi`. The package therefore does not append factors. For `diet-abs` with attention
dropout, *auto* takes *explicit*, and the log gives the reason.
"""


class Column(NamedTuple):
    """Hold a column of the table: its title, and the conditions on which the choice of the path depends."""

    title: str
    place: Place
    dtype: torch.dtype
    mode: Mode


CPU, GPU = Place(on_gpu=False, triton=False), Place(on_gpu=True, triton=True)
COLUMNS = (
    Column("CPU, inference, float32", CPU, torch.float32, Mode()),
    Column("CPU, inference, half", CPU, torch.bfloat16, Mode()),
    Column("GPU, half", GPU, torch.bfloat16, Mode(training=True)),
    Column("GPU, float32", GPU, torch.float32, Mode(training=True)),
    Column("GPU, half, with attention dropout", GPU, torch.bfloat16, Mode(training=True, dropout=0.1)),
)
HALF = next(column for column in COLUMNS if column.title == "GPU, half")


def page() -> str:
    """Return the page as Markdown."""
    with warnings_only(__package__.rpartition(".")[0]):
        table, reasons = _table()
    return "\n".join([INTRODUCTION, table, "", "## Why auto does not take flex", "", reasons, "", DROPOUT, LOW_RANK])


def _table() -> tuple[str, str]:
    lines, reasons = [], dict[str, list[str]]()
    for name, options in subjects(FEWER_ROWS, VALUES):
        choices = {column: chosen(name, options, column) for column in COLUMNS}
        title = title_of(name, options)
        lines.append([title, *(choice.path for choice in choices.values())])
        if choices[HALF].path != "flex":
            reasons.setdefault(choices[HALF].reason.removeprefix("not flex: "), []).append(title)
    head = ["encoding", *(column.title for column in COLUMNS)]
    listed = [f"- {', '.join(titles)}: {_explained(reason)}." for reason, titles in reasons.items()]
    return tabulate(lines, head, tablefmt="github"), "\n".join(listed)


def _explained(reason: str) -> str:
    """Return the reason for a path in the words of the page."""
    against_fused, _, against_flex = reason.partition("; not flex: ")
    if not against_flex:
        return reason
    return f"*fused* cannot be used, because {against_fused}; *flex* is not used, because {against_flex}"


def subjects(*others: str) -> Iterator[tuple[str, str]]:
    """Yield every encoding with its default options, and with each of the options `others` that changes its path.

    If `others` is empty, only the option `FEWER_ROWS` is tried.
    """
    for name in specs():
        yield name, ""
        for options in others or (FEWER_ROWS,):
            if works(name, options) and paths(name, options) != paths(name, ""):
                yield name, options


def title_of(name: str, options: str) -> str:
    """Return the first cell of a row."""
    return f"`{name}` `{options}`" if options else f"`{name}`"


def paths(name: str, options: str) -> list[str]:
    """Return the paths that the encoding takes under the conditions of the columns."""
    return [chosen(name, options, column).path for column in COLUMNS]


def works(name: str, options: str) -> bool:
    """Return whether the encoding works with these options, in an encoder or in a decoder."""
    return any(on_meta(name, options, shape_of(causal)) is not None for causal in (False, True))


def shape_of(causal: bool, length: int = LENGTH) -> StackShape:
    """Return the shape of the encoder or decoder for which the page shows the paths."""
    return StackShape(1, HEADS, HEADS * HEAD_DIM, length, causal=causal, has_cls=not causal)


def chosen(name: str, options: str, column: Column) -> Choice:
    """Return the path that `auto` takes for an encoding, and why.

    If the encoding does not work in encoders, return its path in a decoder.
    """
    causal = on_meta(name, options, shape_of(False)) is None
    with torch.no_grad():
        x, call = inputs(name, options, causal, column.dtype)
        return choose(x, call, column.mode, place=column.place)


def inputs(
    name: str, options: str, causal: bool, dtype: torch.dtype, length: int = LENGTH
) -> tuple[Projected, LayerCall]:
    """Return the queries, keys and values of one layer, all zero, and the layer's hooks."""
    encoding = build(name, options, shape_of(causal, length)).to(dtype)
    cls_column = None if causal else torch.zeros(1, dtype=torch.long)
    segments = torch.zeros(1, length, dtype=torch.long) if encoding.needs_segments else None
    positions = Positions(length, length, torch.device("cpu"), causal=causal, segments=segments, cls_column=cls_column)
    q, k, v = (torch.zeros(1, HEADS, length, HEAD_DIM, dtype=dtype, requires_grad=True) for _ in range(3))
    call = encoding.layer(1, content, content).at(positions, encoding.per_layer(positions)[0])
    call = call.with_inputs(torch.zeros(1, length, HEADS * HEAD_DIM, dtype=dtype))
    if not call.view.has("compress"):
        return Projected(q, k, v, q, k), call
    slots = call.compress(*torch.zeros(2, 1, length, HEADS * HEAD_DIM, dtype=dtype))[0].shape[1]
    k, v = k[:, :, :slots], v[:, :, :slots]
    return Projected(q, k, v, q, k, positioned=False), call


def content(x: Tensor) -> Tensor:
    """Split x [B, T, d] into heads [B, h, T, d / h], without a projection."""
    return x.unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2)
