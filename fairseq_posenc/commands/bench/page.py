"""`python -m fairseq_posenc cost`: write docs/cost.md and its figure from the results of `bench`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from ...analysis.style import save_picture
from ...core.quiet import warnings_only
from ...core.writing import write_whole
from ...papers.reading import figures
from . import figure, gpu_page, table, targets
from .machine import ALLOCATOR
from .rows import Row
from .table import FACTS

INTRODUCTION = """\
# What each encoding costs

Unless a section says otherwise, the numbers are ratios: time or memory of a layer with an encoding, divided by that of
a baseline. The baseline is the same layer without an encoding, computed with torch's fused attention kernel. `python -m
fairseq_posenc cost` writes this page from the measurements of `bench`; do not edit it.

Each ratio is a median over several rounds. In each round, the layers with and without an encoding run in turn in one
process, so that other programs on the machine slow both layers equally. The number after ± is half the interquartile
range of the ratios. Times in ms depend on the machine. A *target* is an upper limit for a ratio. The project set the
targets after measuring prototypes of the layers. A ratio that exceeds its target by more than 0.03 is measured again,
up to three times, and the page shows the median over all rounds. `!` marks a ratio above its target. An *aim* is the
ratio that we expect from the best known method.

![ratios of a base layer](cost.png)
"""

STOPS = """\
The layers of each family have these costs, which the baseline does not have:

- Content-free encodings (T5, DIET, ALiBi, M1, M2, ...) have a cost that is too small to be distinguished from noise.
  The bias of T5, DIET or ALiBi, and the factors by which M1 and M2 multiply the logits, are computed once for all
  samples of a batch.
- RoPE and xPos rotate the queries and keys, so they must read and write all of them.
- Shaw, LFHC, XL and GCDF multiply the queries by the vectors of the distances. A block of queries is multiplied only by
  the vectors of distances that occur in it. With blocks, the number of products with these vectors is about half as
  large, but still 1.12 times the number of products of queries and keys. The products of queries with these vectors
  must also be copied into the logits. XL and GCDF also project the vectors of the distances.
- M4 and DeBERTa multiply both the queries and the keys by the vectors of the distances, which is twice as much work as
  in Shaw. M4 and DeBERTa must also transpose the products of the keys with these vectors. In C++, transposing takes as
  long as copying; without a C++ compiler, it takes several times as long. By the number of operations alone, M4 and
  DeBERTa would each have a ratio of 1.14.
- M4M has the same costs as M4. In addition, the forward and backward pass of M4M multiply three matrices element by
  element: the content logits (the products of queries and keys), a gate from the queries and a gate from the keys. M4M
  stores the gate from the keys for the backward pass. The backward pass computes the content logits and the gate from
  the queries again, which saves the memory of two matrices per layer.
- If distances are clipped, each query has only a few different products with the vectors of distances. A loop in C++
  adds these products to the content logits, or multiplies the content logits by them. Without a C++ compiler, the
  products are computed for blocks of queries, exactly as if distances were not clipped. With a compiler, two costs
  remain: computing these products, and reading and writing all logits once more.
- The logits of M3 cannot be computed as a matrix product. M3's forward pass is a loop in C++, which needs two
  multiplications where a matrix product needs one. M3's backward pass consists of loops that torch.compile generates.
  Without a C++ compiler, M3 uses separate torch operations, which are slower.
"""

REPRODUCE = """\
## How to reproduce it

    bench="python -m fairseq_posenc bench"
    $bench --quick --output results/bench                                     # layers with targets, 20 minutes
    $bench --shapes small --parts layer --encodings shaw tupe diet-abs diet-rel --output results/small
    $bench --parts model --encodings shaw tupe diet-abs diet-rel --threads 1 --rounds 5 --output results/model
    $bench --parts padded --shapes base --rounds 3 --threads 1 --output results/padded
    $bench --parts memory,decode --shapes base --output results/more
    $bench --parts scaling --rounds 5 --threads 1 --output results/scaling
    $bench --parts peers --shapes base --rounds 5 --output results/peers      # installed packages only
    $bench --parts lm-memory --output results/lm-memory                       # memory of earlier segments
    $bench --parts translation --translation DATA-BIN --rounds 3 --threads 1 --output results/translation
    python -m fairseq_posenc cost results/*/bench.json --output docs/cost.md

The benchmark restarts itself with higher `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_`, unless these variables
are set. With its default thresholds, glibc maps new memory for every large tensor. With glibc's defaults, attention to
512 tokens without a fused kernel takes 2.3 times as long as fused attention. With the higher thresholds, attention
without a fused kernel takes only 1.2 times as long as fused attention. The recipes also set these two environment
variables. For your own runs, set them with:

    export {allocator}

`DATA-BIN` is the output folder of `fairseq-preprocess` for Multi30k, which the translation recipe writes into its
results.
"""

TITLES = {
    "layer": "## Layers",
    "model": """\
## Models

The models are masked LMs of the sizes in Table 1 of the DIET paper. Times are relative to the same model without an
encoding. With `--threads 1`, `bench` measures CPU time, which does not include other programs on the machine.""",
    "memory": """\
## Memory

The table shows the peak memory of attention in training, relative to attention without positions. The memory of the
projections is not counted. Neither the layers with positions nor those without positions use a fused kernel.""",
    "decode": """\
## Decoding

The table shows the time per token, relative to the same layer without an encoding and with a cache of the same
length.""",
    "translation": """\
## Translation, compared with stock fairseq

The tables show the time per word on Multi30k, relative to fairseq's `transformer` of the same size; a model with a
number below 1 is faster than fairseq's. Encodings that do not work in decoders are used in the encoder only. The
maximum length of all models is the length of the longest sentence, but at least 64. The relative speed of an encoding
is its number of words per second, divided by that of fairseq's model. A target is 1 divided by the relative speed that
the encoding should reach. In training, the relative speed should be 0.97 (content-free encodings), 0.90 (Shaw, LFHC,
XL, GCDF) or 0.85 (others). In beam search, the relative speed should be 1.0 (content-free encodings), 0.7 (DeBERTa) or
0.85 (others).""",
    "exponent": """\
## Growth

Time and memory grow roughly as a power of the length. The tables show the exponent of this power.""",
    "length": "### Time and memory at each length",
}


def main(argv: Sequence[str]) -> int:
    """Write docs/cost.md and its figure. Return 1 if the results contain no layer, and 0 otherwise."""
    args = _parser().parse_args(argv)
    on_a_gpu = None if args.gpu is None else gpu_page.read(args.gpu)
    own: list[Row] = []
    beside: list[Row] = []
    raw_rows: list[Mapping[str, Any]] = []
    for flats in map(_read, args.results):
        rows = [Row(**{name: flat[name] for name in Row.__dataclass_fields__}) for flat in flats]
        peers = any(row.peer and row.what == "layer" for row in rows)
        (beside if peers else own).extend(rows)  # rows measured together with peers are shown with them
        raw_rows += flats
    picture = args.output.with_suffix(".png")
    with warnings_only():
        drawn = figure.drawn(own)
        if drawn is not None:
            save_picture(drawn, picture)
    if drawn is None:
        problem = "the results contain no layers, so neither the page nor its figure was written"
        print(f"cost: {problem}. Add the results of bench --parts layer.", file=sys.stderr)
        return 1
    write_whole(args.output, text(own, beside, raw_rows, on_a_gpu).replace("cost.png", picture.name))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_posenc cost",
        description="Write a page that shows what each encoding costs, and its figure, from the results of bench.",
        epilog="Example: python -m fairseq_posenc cost results/*/bench.json --output docs/cost.md",
    )
    parser.add_argument("results", nargs="+", type=Path, metavar="FILE", help="Files bench.json that bench wrote.")
    parser.add_argument(
        "--gpu", type=Path, metavar="FILE", help="File gpu.json that gpu-check wrote, for the section about GPUs."
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="Markdown page to write. The figure of the page is written into the same folder.",
    )
    return parser


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a bench.json.

    Raises:
        SystemExit: The file cannot be read, or its rows lack fields.
    """
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text())
        missing = [name for name in Row.__dataclass_fields__ if any(name not in row for row in rows)]
    except (OSError, ValueError, TypeError) as error:
        raise SystemExit(f"cost: {path}: {error}. Give the bench.json that bench --output wrote.") from error
    if missing:
        raise SystemExit(
            f"cost: {path}: the measurements lack {', '.join(missing)}. Run bench again with the installed version."
        )
    return rows


def text(
    own: Sequence[Row],
    peers: Sequence[Row],
    raw_rows: Sequence[Mapping[str, Any]],
    on_a_gpu: Mapping[str, Any] | None,
) -> str:
    """Return docs/cost.md as Markdown.

    Args:
        own: Rows of our encodings.
        peers: Rows of other implementations, and of our encodings that were measured together with them.
        raw_rows: All rows as the files contain them, with the facts about the machines.
        on_a_gpu: The content of gpu.json; None if nothing was measured on a GPU.
    """
    parts = [INTRODUCTION, diet(own)]
    for what, title in TITLES.items():
        members = [row for row in own if row.what == what]
        if members:
            parts += [title, table.markdown_tables(members, "**{}**")]
            parts += [aims(members), STOPS] if what == "layer" else []
    if peers:
        title = "## Other implementations\n\nThe tables compare the layers of other packages with the plugin's layers."
        parts += [title, table.markdown_tables(peers, "**{}**")]
    allocator = " ".join(f"{name}={value}" for name, value in ALLOCATOR.items())
    reproduce = REPRODUCE.strip().replace("{allocator}", allocator)
    return (
        "\n\n".join([*(part.strip() for part in parts), gpu_page.section(on_a_gpu), reproduce, _machines(raw_rows)])
        + "\n"
    )


def diet(rows: Sequence[Row]) -> str:
    """Return the section that shows Table 1 of the DIET paper next to our measurements."""
    ours = {
        (row.what, row.shape, row.mode, row.encoding): f"{row.ratio:.2f}"
        for row in rows
        if row.what in ("layer", "model") and not (row.padded or row.options or row.peer) and row.length == 512
    }
    theirs = figures("DIET", table="Table 1")
    names = dict.fromkeys(printed.encoding for printed in theirs)
    head = ["", *(column for name in names for column in (f"{name}, DIET", "layer", "model"))]
    lines = []
    for column in dict.fromkeys(printed.column for printed in theirs):
        shape, mode = column.split(", ")
        cells = []
        for printed in figures("DIET", table="Table 1", column=column):
            cells += [f"{1 + (printed.value or 0) / 100:.2f}"]  # printed as percent more than BERT
            cells += [ours.get((what, shape, mode, printed.encoding), "not measured") for what in ("layer", "model")]
        lines.append([column, *cells])
    text = "## Comparison with Table 1 of the DIET paper\n\n"
    text += (
        "The DIET paper measured two BERT models on TPU v2: base has 12 layers of width 768, and small has 4 layers\n"
        "of width 512. We measured one layer of each model and both whole models at n = 512 in float32 on a CPU.\n\n"
    )
    return text + tabulate(lines, head, tablefmt="github", disable_numparse=True)


def aims(rows: Sequence[Row]) -> str:
    """Return a section with the aim of each family, and the range of ratios that its encodings reach."""
    together: dict[str, list[Row]] = {}
    for row in rows:
        family = targets.family(row.encoding, row.options, set()) if row.stretch else None
        if family:
            together.setdefault(family.name, []).append(row)
    lines = []
    for name, members in together.items():
        cells = []
        for mode in ("train", "infer"):
            in_mode = [row for row in members if row.mode == mode and row.ratio is not None]
            ratios = [row.ratio for row in in_mode if row.ratio is not None]
            cells += [f"{in_mode[0].stretch:.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"] if in_mode else ["", ""]
        lines.append([name, *cells])
    table = tabulate(
        lines, ["family", "aim, train", "measured", "aim, infer", "measured"], tablefmt="github", disable_numparse=True
    )
    return f"## Aims of the families of encodings\n\nThe layers have width 768 and 12 heads, and n is 512.\n\n{table}"


def _machines(raw_rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a list of the different machines and software versions with which the rows were measured."""
    facts = dict.fromkeys("; ".join(f"{name} {row[name]}" for name in FACTS if name in row) for row in raw_rows)
    return "The measurements were made with:\n\n" + "\n".join(f"- {line}" for line in facts)
