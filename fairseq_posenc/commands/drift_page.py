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

This page compares attention in lower precisions and under autocast with the same attention in float64. The difference
of the outputs or gradients is called the drift of an encoding. `python -m fairseq_posenc drift --output
docs/half-precision.md` writes this page in a few minutes; do not edit it.

## How the plugin limits the drift

Products of queries with keys, and products of queries or keys with position tables, are computed in the precision of
the model. All later results are computed at least in float32: distances, biases, further products, logits and softmax.
Queries are scaled before they are multiplied by keys, and the mask is applied last. A table is converted to float32
before its rows are read, so that the gradient of a row is summed in float32. The same rules hold under autocast, where
parameters stay float32. `tests/laws/test_half.py` checks the rules for every encoding and every option; only
`make test-long` tries the options under autocast, too.

## What is measured

{{setting}}
Each encoding is measured in two layers, whose heads have width 64, on two samples. A quarter of the second sample is
padding. The projections are initialised as in BERT, but scaled so that queries have BERT's standard deviation, 0.55.
Noise is added to each parameter of an encoding, so that positions have an effect. If all initial values of a parameter
are equal (zeros or ones), the standard deviation of the noise is {MOVED_CONSTANT}, which is about that of the content
logits. For other parameters, the standard deviation of the noise is {MOVED}. The column *positions* shows the relative
difference between the outputs with and without positions, for the same weights. All parameters have values that are
typical of the start of training, not of its end.

Every layer reads the same input, which has unit variance. If a layer read the output of another layer, the layer norm
between them would hide drift. If a module is converted to float16 or bfloat16, its weights are rounded, which causes a
part of its drift. *Weights alone* is the drift of a computation in float64 with these rounded weights.

{{verdict}}
"""

#: Why these encodings drift more or less than the others.
REASONS = {
    "cope": """\
- The gradients of `cope` have a large drift, even if its weights are not rounded. `cope` computes a position as a sum
  of gates, and interpolates between the table's rows for the integers below and above this sum. The slope of the
  interpolation jumps at integer positions, so a rounding error that moves a position past an integer changes the
  gradient much. If neighbouring rows of the table are similar, `cope` does not drift more than other encodings (a test
  uses a smoothed table).
""",
    "fire": """\
- The gradients of `fire`'s own parameters have a large drift because these parameters are rounded. If the weights are
  rounded and everything else is computed in float64, the drift of `fire`'s gradients is just as large (column *weights
  alone*).
""",
    "alibi": """\
- A bias in float32 does not increase the drift. For example, `alibi` subtracts up to a sixteenth of the distance from a
  logit in the measured layers, but the drift of its outputs is as small as that of `none`.
""",
}

OUTPUT_TEXT = """\
## Outputs

Each number is the root mean square (rms) of the difference from the output in float64, divided by the rms of that
output. The number in brackets is the largest difference divided by the largest output. Each number in the table covers
the outputs of a training step and of inference together. All numbers are multiplied by 1,000,000 for float32 and by
1,000 for the other precisions.
"""

GRADIENT_TEXT = """\
## Gradients

Each number is the rms of the difference from the gradient in float64, divided by the rms of that gradient. The number
before the slash is for the query, key, value and output projections. The number after the slash is for the encoding's
own parameters (`-` if it has none). The gradient with respect to the outputs is noise of unit variance, as after loss
scaling. All numbers are multiplied by 1,000,000 for float32 and by 1,000 for the other precisions.
"""


def page(rows: Sequence[Row]) -> str:
    """Return the page as Markdown.

    Each of `rows` holds the measurements of an encoding with its options, in an encoder or a decoder, in one precision.
    """
    place = f"torch {rows[0]['torch']} on {rows[0]['device']}; `--device cuda` uses a GPU"
    setting = f"Sequences have {rows[0]['length']} tokens, and the seed is {rows[0]['seed']}. The run used {place}."
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
    *bounds, last = (f"{p.outputs:g} and {p.gradients:g} in {p}" for p in PRECISIONS if not p.autocast)
    verdict = (
        f"**{wrong} of {len(rows)} results are not finite or exceed their bounds**"
        if wrong
        else "All results are finite and within their bounds"
    )
    text = "The bounds of the outputs and of the gradients, also under autocast, are"
    return f"{verdict}. {text}\n{', '.join(bounds)}, and {last}."


def _farthest(rows: Sequence[Row], most: int = 6) -> str:
    """Return the section on the encodings with the largest drift in bfloat16."""
    head = (
        "## Which encodings have the largest drift\n\n"
        "The tables show the drift of computations in bfloat16, multiplied by 1,000. "
        "The table of gradients shows the larger of\ntwo drifts: the drift of the projections and that of the "
        "encoding's own parameters.\n"
    )
    encodings = {row["encoding"] for row in rows}
    parts = [head, "".join(text for name, text in REASONS.items() if name in encodings)]
    for title, keys in (("outputs", OUTPUTS[:1]), ("gradients", GRADIENTS[:2])):
        parts.append(_lines([title, "stack", "module", "weights alone", "autocast"], _ranked(rows, keys, most)))
    return "\n".join(parts)


def _ranked(rows: Sequence[Row], keys: Sequence[str], most: int) -> list[list[str]]:
    """Return the table lines of the `most` encodings with the largest drifts in the columns `keys`, and of `none`."""

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


def _table(rows: Sequence[Row], shown: tuple[str, str, str]) -> str:
    """Return a table with a row for each case, and a column for each precision.

    Args:
        shown: Names of the two numbers in a cell, and the format that joins them.
    """
    columns = ["positions", *map(str, PRECISIONS)]
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        line = cells.setdefault((_label(row), row["stack"]), {"positions": _number(row["positions"], 1)})
        line[row["precision"]] = _cell(row, shown)
    lines = [[*key, *(line[column] for column in columns)] for key, line in cells.items()]
    return _lines(["encoding", "stack", *columns], lines)


def _label(row: Row) -> str:
    return f"`{row['encoding']}`" + (f" `{row['options']}`" if row["options"] else "")


def _cell(row: Row, shown: tuple[str, str, str]) -> str:
    if not row["finite"]:
        return "**not finite**"
    unit = 1e6 if row["precision"] == "float32" else 1e3
    first, second, form = shown
    text = form.format(_number(row[first], unit), _number(row[second], unit))
    return text if row["near"] else f"**{text}, too far**"


def _number(value: float | None, unit: float) -> str:
    """Format `value * unit` without decimals if it is at least 10, otherwise with two digits; return `-` for None."""
    if value is None:
        return "-"
    return f"{value * unit:.0f}" if value * unit >= 10 else f"{value * unit:.2g}"


def _lines(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table with two columns of text, followed by columns of numbers."""
    align = ("left", "left", *["right"] * (len(head) - 2))
    return tabulate(rows, head, tablefmt="pipe", disable_numparse=True, colalign=align) + "\n"
