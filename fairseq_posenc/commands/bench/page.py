"""`python -m fairseq_posenc cost`: write the page docs/cost.md and its figure from the results of benchmarks."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from ...core.quiet import warnings_only
from ...core.writing import write_whole
from ...papers.reading import figures
from . import figure, table, targets
from .machine import ALLOCATOR
from .rows import Row
from .table import FACTS

INTRODUCTION = """\
# What each encoding costs

Time and memory relative to the same layer without an encoding, whose attention is torch's fused kernel. Written by
`python -m fairseq_posenc cost`, of what `bench` measured; do not edit.

All ratios are medians of rounds that take turns in one process, so that what else the machine does slows both alike;
± is half the interquartile range. A time in ms says nothing about another machine. A *target* is what the project set
itself from prototypes; a row over it by more than 0.03 is measured again, up to three times, and the pooled median
counts. `!` marks a target that does not hold, *aim* what the best known way might reach.

![ratios of a base layer](cost.png)
"""

STOPS = """\
What stops each at its aim:

- Content-free (T5, DIET, ALiBi, M1, M2, ...): nothing but noise. The bias is made once a forward, and added.
- RoPE, xPos: two passes over q and k.
- Shaw, LFHC, XL, GCDF: half a product of queries and keys more, whose windows of rows cost 1.12 of what they need, and
  a copy of each window into the logits. XL and GCDF also project the distances.
- M4, DeBERTa: twice that; the half of the keys is written across the rows, by C++ at the price of a copy, without a
  compiler at several times that. By operations alone they cost 1.14.
- M4M: the same, then the product of three matrices, forward and backward. The gate of the keys is kept for the
  backward; that of the queries and the content are made twice, which saves two matrices a layer.
- Clipped, all of these have few different products a query, which one pass in C++ adds to the content or multiplies in
  (without a compiler, the windows serve). What remains is these products, and one more pass over the pairs.
- M3 is no matrix product: its forward is a loop in C++, two multiplications a number where a product has one; its
  backward is loops that torch.compile makes (without a C++ compiler, both in steps).
"""

REPRODUCE = """\
## How to reproduce it

    bench="python -m fairseq_posenc bench"
    $bench --quick --output results/bench                                     # the layers with targets, 20 minutes
    $bench --shapes small --what layer --encodings shaw tupe diet-abs diet-rel --output results/small
    $bench --what padded --shapes base --rounds 3 --threads 1 --output results/padded
    $bench --what memory,decode --shapes base --output results/more
    $bench --what scaling --rounds 5 --threads 1 --output results/scaling
    $bench --what peers --shapes base --rounds 5 --output results/peers       # those that are installed
    $bench --what lm-memory --output results/lm-memory                        # memory of earlier segments
    $bench --what translation --translation DATA-BIN --rounds 3 --threads 1 --output results/translation
    python -m fairseq_posenc cost results/*/bench.json --output docs/cost.md

The benchmark starts itself again with `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_` raised, unless they are
set: glibc otherwise maps every large tensor anew, which alone makes explicit attention at n = 512 cost 2.3 times fused
attention where it costs 1.2. The recipes set them too. For runs of your own:

    export {allocator}

`DATA-BIN` is what `fairseq-preprocess` made of Multi30k; the recipe leaves one in its results.
"""

GPU = """\
## On a GPU

Not measured: none was at hand. Training there goes through torch's fused attention where that is exact, with the bias
and its gradient in float32, and without a bias in any precision. In half precision the kernel would round the bias, so
encodings with one take the explicit path, with logits in float32. FlexAttention and Triton kernels are left until they
can be measured. `bench --device cuda` measures base layers at n = 128, 512 and 2048 in bfloat16.
"""

TITLES = {
    "layer": "## Layers",
    "model": "## Models\n\nA masked LM of 4 layers.",
    "memory": "## Memory\n\nPeak of the attention core in training, relative to the explicit core without positions.",
    "decode": "## Decoding\n\nOne token behind a cache, relative to the same layer and cache without an encoding.",
    "translation": """\
## Translation, beside stock fairseq

Cost of a word relative to fairseq's `transformer` of the same size on Multi30k: below 1 is faster. Encoder-only methods
stand in the encoder. All models are told the longest sentence (64 positions at least). Targets are the reciprocals of
the words a second to reach: training 0.97 (content-free), 0.90 (Shaw, LFHC, XL, GCDF), 0.85; beam search 1.0, 0.85 and
0.7 (DeBERTa).""",
    "exponent": "## Growth\n\nExponents of time and memory over the length, one sequence.",
    "length": "### Each length",
}


def main(argv: Sequence[str]) -> int:
    """Write the page and the figure. Return 1 if no layer is among the results."""
    args = _parser().parse_args(argv)
    own: list[Row] = []
    beside: list[Row] = []
    found: list[Mapping[str, Any]] = []
    for flats in map(_read, args.results):
        rows = [Row(**{name: flat[name] for name in Row.__dataclass_fields__}) for flat in flats]
        peers = any(row.peer and row.what == "layer" for row in rows)
        (beside if peers else own).extend(rows)  # rows measured together with peers are shown with them
        found += flats
    picture = args.output.with_suffix(".png")
    with warnings_only():
        drawn = figure.draw(own, picture)
    if not drawn:
        print(f"cost: no layer among the results, so no {picture.name} and no page", file=sys.stderr)
        return 1
    write_whole(args.output, text(own, beside, found).replace("cost.png", picture.name))
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m fairseq_posenc cost",
        description="The page on cost and its figure, of what bench wrote.",
        epilog="example: cost results/*/bench.json --output docs/cost.md",
    )
    made.add_argument("results", nargs="+", type=Path, metavar="BENCH.JSON")
    made.add_argument("--output", type=Path, required=True, metavar="PAGE.md", help="the figure is written beside it")
    return made


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of one benchmark.

    Raises:
        SystemExit: The file cannot be read, or its rows lack fields.
    """
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text())
        missing = [name for name in Row.__dataclass_fields__ if any(name not in row for row in rows)]
    except (OSError, ValueError, TypeError) as error:
        raise SystemExit(f"cost: {path}: {error}: give the bench.json that bench --output wrote") from error
    if missing:
        raise SystemExit(f"cost: {path}: rows without {', '.join(missing)}: measure again with this version")
    return rows


def text(own: Sequence[Row], peers: Sequence[Row], found: Sequence[Mapping[str, Any]]) -> str:
    """Return the page.

    `own` are the rows of our encodings, `peers` those of other implementations and of ours measured with them. `found`
    are all rows as they were read, with the facts about the machines.
    """
    parts = [INTRODUCTION, diet(own)]
    for what, title in TITLES.items():
        some = [row for row in own if row.what == what]
        if some:
            parts += [title, table.markdown_tables(some, "**{}**")]
            parts += [aims(some), STOPS] if what == "layer" else []
    if peers:
        title = "## Other implementations\n\nWhole layers as their packages make them, ours beside."
        parts += [title, table.markdown_tables(peers, "**{}**")]
    allocator = " ".join(f"{name}={value}" for name, value in ALLOCATOR.items())
    reproduce = REPRODUCE.strip().replace("{allocator}", allocator)
    return "\n\n".join([*(part.strip() for part in parts), GPU.strip(), reproduce, _machines(found)]) + "\n"


def diet(rows: Sequence[Row]) -> str:
    """Return the section with Table 1 of the DIET paper, next to our measurements."""
    ours = {
        (row.shape, row.mode, row.encoding): row
        for row in rows
        if row.what == "layer" and not row.padded and row.length == 512 and not row.options and not row.peer
    }
    theirs = figures("DIET", table="Table 1")
    names = dict.fromkeys(one.encoding for one in theirs)
    head = ["", *(column for name in names for column in (f"{name}, DIET", "ours"))]
    lines = []
    for column in dict.fromkeys(one.column for one in theirs):
        shape, mode = column.split(", ")
        cells = []
        for printed in figures("DIET", table="Table 1", column=column):
            row = ours.get((shape, mode, printed.encoding))
            cells += [f"{1 + (printed.value or 0) / 100:.2f}"]  # printed as percent more than BERT
            cells += [f"{row.ratio:.2f}" if row and row.ratio is not None else "not measured"]
        lines.append([column, *cells])
    text = "## Beside the DIET paper's Table 1\n\n"
    text += "Theirs: BERT on TPU v2. Ours: one layer at n = 512, fp32 on two CPU cores.\n\n"
    return text + tabulate(lines, head, tablefmt="github", disable_numparse=True)


def aims(rows: Sequence[Row]) -> str:
    """Return a section with the aim of each family, and the range that its members reach."""
    together: dict[str, list[Row]] = {}
    for row in rows:
        family = targets.family(row.encoding, row.options, set()) if row.stretch else None
        if family:
            together.setdefault(family.name, []).append(row)
    lines = []
    for name, members in together.items():
        cells = []
        for mode in ("train", "infer"):
            some = [row for row in members if row.mode == mode and row.ratio is not None]
            ratios = [row.ratio for row in some if row.ratio is not None]
            cells += [f"{some[0].stretch:.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"] if some else ["", ""]
        lines.append([name, *cells])
    table = tabulate(
        lines, ["family", "aim, train", "measured", "aim, infer", "measured"], tablefmt="github", disable_numparse=True
    )
    return f"## How far each family is from its aim\n\nAt n = 512, base.\n\n{table}"


def _machines(found: Sequence[Mapping[str, Any]]) -> str:
    """Return sentences that name each machine, with its versions, once."""
    facts = dict.fromkeys("; ".join(f"{name} {row[name]}" for name in FACTS if name in row) for row in found)
    return "Measured with " + ".\nAnd with ".join(facts) + "."
