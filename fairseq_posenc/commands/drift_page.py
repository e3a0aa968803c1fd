"""Write the page docs/half-precision.md from the measurements of `drift`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from .rounding import MOVED, MOVED_CONSTANT, PRECISIONS

Row = Mapping[str, Any]
#: Two numbers of a cell: the key of the first, the key of the second, and the format that joins them.
OUTPUTS = ("output_rms", "output_max", "{} ({})")
GRADIENTS = ("projections_rms", "tables_rms", "{} / {}")

INTRODUCTION = f"""\
# Half precision

How far float16, bfloat16 and autocast take the attention of each encoding from float64, with the same weights.
Written by `python -m fairseq_posenc drift --output docs/half-precision.md` (some minutes); do not edit.

## What keeps it near

Products of queries and keys, and theirs with tables, are made in the precision of the model. Everything after them is
at least float32: distances, biases, products of products, logits and softmax. Content is divided
before it is multiplied, the mask goes in last. A table is promoted before its rows are read, so that what all pairs add
to the gradient of a row is summed in float32. Under autocast the same holds, and parameters stay float32. The suite's
laws hold every encoding with every option to this (`tests/laws/test_half.py`).

## What is measured

{{setting}}
A stack at its maximum length with heads of 64; a quarter of one sample is pads. Projections as BERT's, scaled so that
queries have its standard deviation, 0.55. So that positions take part, each parameter of an encoding is moved from
where it starts by noise: of standard deviation {MOVED_CONSTANT} where all its numbers start the same (zeros, ones),
about that of the content's logits, otherwise {MOVED}. *Positions* is how far the output is from that of the same
weights without positions. These are sizes of the start of training, not of its end.

Every layer attends to the same input of unit variance, so that no norm hides a drift. A module in float16 or bfloat16
has rounded weights, which is part of its drift; *weights alone* is the drift of float64 with these rounded weights.

{{verdict}}
"""

#: Why these encodings drift more or less than the others.
REASONS = {
    "cope": """\
- `cope` is far in its gradients, whatever the weights: it reads its table between the rows at counts that are sums of
  gates. The slope jumps where a count passes a whole number, and rounded counts pass it elsewhere. Where neighbouring
  rows are alike it drifts like the others (a test smooths its table).
""",
    "fire": """\
- `fire` is far in the gradients of its own parameters, where they are rounded: *weights alone* is all of it.
""",
    "alibi": """\
- A bias costs nothing where it is float32: `alibi` subtracts up to a sixteenth of the distance from a logit here, and
  its outputs are as near as those of `none`.
""",
}

OUTPUT_TEXT = """\
## Outputs

The rms of the difference to float64 in terms of the output's rms; in brackets the largest difference in terms of the
largest output. A training step and inference together. float32 in millionths, the others in thousandths.
"""

GRADIENT_TEXT = """\
## Gradients

The rms of the difference to float64 in terms of the gradient's rms: of the query, key, value and output projections,
and after the stroke of the encoding's own parameters (- where it has none). The gradient of the outputs is noise of
unit variance, as after loss scaling. Units as above.
"""


def page(rows: Sequence[Row]) -> str:
    """Return the page in Markdown, from one row per encoding, reading, stack and precision."""
    where = f"torch {rows[0]['torch']} on {rows[0]['device']} (`--device cuda` measures a GPU)"
    setting = f"Length {rows[0]['length']}, {where}, seed {rows[0]['seed']}."
    parts = [
        INTRODUCTION.format(setting=setting, verdict=_verdict(rows)),
        _farthest(rows),
        OUTPUT_TEXT,
        _table(rows, OUTPUTS),
        GRADIENT_TEXT,
        _table(rows, GRADIENTS),
    ]
    return "\n".join(parts)


def _verdict(rows: Sequence[Row]) -> str:
    wrong = sum(not row["near"] for row in rows)
    bounds = ", ".join(f"{p} {p.outputs:g} and {p.gradients:g}" for p in PRECISIONS if not p.autocast)
    verdict = f"**{wrong} of {len(rows)} are not finite or too far**" if wrong else "All is finite and within bounds"
    return f"{verdict}. Bounds of the rms of outputs and of gradients:\n{bounds}, under autocast the same."


def _farthest(rows: Sequence[Row], most: int = 6) -> str:
    """Return the section on the encodings that drift most in bfloat16."""
    head = "## Which drift most\n\nIn bfloat16, thousandths; of gradients the larger of the two numbers below.\n"
    encodings = {row["encoding"] for row in rows}
    parts = [head, "".join(text for name, text in REASONS.items() if name in encodings)]
    for what, keys in (("outputs", OUTPUTS[:1]), ("gradients", GRADIENTS[:2])):
        parts.append(_lines([what, "stack", "module", "weights alone", "autocast"], _ranked(rows, keys, most)))
    return "\n".join(parts)


def _ranked(rows: Sequence[Row], keys: Sequence[str], most: int) -> list[list[str]]:
    """Return lines of the `most` largest drifts, and of `none` for comparison. The largest of several keys counts."""

    def size(row: Row, prefix: str = "") -> float:
        return max(row[prefix + key] or 0.0 for key in keys)

    module, autocast = (
        {(_label(row), row["stack"]): row for row in rows if row["precision"] == name and row["finite"]}
        for name in ("bfloat16", "autocast bfloat16")
    )
    ordered = sorted((key for key in module if key in autocast), key=lambda key: -size(module[key]))
    chosen = [key for number, key in enumerate(ordered) if number < most or key[0] == "`none`"]
    drifts = [(key, (size(module[key]), size(module[key], "weights_"), size(autocast[key]))) for key in chosen]
    return [[*key, *(_number(number, 1e3) for number in numbers)] for key, numbers in drifts]


def _table(rows: Sequence[Row], what: tuple[str, str, str]) -> str:
    """Return a table with one row per encoding, reading and stack, and one column per precision."""
    columns = ["positions", *map(str, PRECISIONS)]
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        line = cells.setdefault((_label(row), row["stack"]), {"positions": _number(row["positions"], 1)})
        line[row["precision"]] = _cell(row, what)
    lines = [[*key, *(line[column] for column in columns)] for key, line in cells.items()]
    return _lines(["encoding", "stack", *columns], lines)


def _label(row: Row) -> str:
    return f"`{row['encoding']}`" + (f" `{row['options']}`" if row["options"] else "")


def _cell(row: Row, what: tuple[str, str, str]) -> str:
    if not row["finite"]:
        return "**not finite**"
    unit = 1e6 if row["precision"] == "float32" else 1e3
    one, other, form = what
    text = form.format(_number(row[one], unit), _number(row[other], unit))
    return text if row["near"] else f"**{text}, too far**"


def _number(value: float | None, unit: float) -> str:
    """Format `value * unit`: from 10 on as a whole number, below with two significant digits; `-` for None."""
    if value is None:
        return "-"
    return f"{value * unit:.0f}" if value * unit >= 10 else f"{value * unit:.2g}"


def _lines(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table whose first two columns contain text."""
    align = ("left", "left", *["right"] * (len(head) - 2))
    return tabulate(rows, head, tablefmt="pipe", disable_numparse=True, colalign=align) + "\n"
