"""`python -m fairseq_posenc drift`: measure how much half precision and autocast change the results of attention."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..core.quiet import warnings_only
from ..core.writing import write_whole
from ..encodings import specs
from .drift_cases import LENGTH, SEED, SHORTEST, Case, cases
from .drift_page import page

__all__ = ["Case", "cases", "faults", "main"]


def faults(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line of text for each row whose results are not finite or exceed the bounds of its precision."""
    return [
        f"{row['encoding']} {row['options']} ({row['stack']}, {row['precision']}): ".replace("  ", " ")
        + ("the drift from float64 exceeds its bound" if row["finite"] else "some results are not finite")
        for row in rows
        if not row["near"]
    ]


def main(argv: Sequence[str]) -> int:
    """Measure the drift of each encoding, print it, and write the output file.

    Return 1 if a drift exceeds its bound, if a result is not finite, or if writing fails, and 0 otherwise.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        _refuse(args)
        rows = _measured(args)
    except ValueError as error:
        parser.error(str(error))
    text = json.dumps(rows, indent=2) + "\n" if args.json else page(rows)
    print(text, end="")
    try:
        if args.output:
            write_whole(args.output, text)
    except OSError as error:
        print(f"drift: {error}", file=sys.stderr)
        return 1
    for fault in faults(rows):
        print(f"drift: {fault}", file=sys.stderr)
    return int(bool(faults(rows)))


def _refuse(args: argparse.Namespace) -> None:
    """Raise ValueError for arguments that would otherwise fail only after minutes."""
    if args.length < SHORTEST:
        raise ValueError(f"--length {args.length}: the length must be at least {SHORTEST}.")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: torch sees no GPU. Leave out the flag to use the CPU.")
    if args.output and (args.output.is_dir() or not args.output.parent.is_dir()):
        raise ValueError(
            f"--output {args.output}: this path is a folder, or its parent folder does not exist. Give the path of a "
            "file to write."
        )


def _measured(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of all cases, and print the name of each case on stderr when it starts."""
    rows: list[dict[str, Any]] = []
    with warnings_only(__package__):  # hide the log lines on the path of each attention
        todo = cases(args.encodings or specs(), args.length)
        for number, case in enumerate(todo, start=1):
            print(f"{number}/{len(todo)} {case}", file=sys.stderr)
            rows += case.rows(torch.device(args.device), args.seed)
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_posenc drift",
        description="Measure how much attention and its gradients differ from float64 in lower precisions and under\n"
        "autocast, for each encoding. Measuring all encodings takes some minutes.",
        epilog="examples:\n  %(prog)s --encodings shaw t5\n  %(prog)s --device cuda --json\n"
        "  %(prog)s --output docs/half-precision.md",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--encodings", nargs="+", metavar="NAME", help="Encodings to measure. Default: all.")
    parser.add_argument(
        "--json", action="store_true", help="Print the results on stdout as a JSON list and nothing else."
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="Device to measure on (default: %(default)s)."
    )
    parser.add_argument(
        "--length", type=int, default=LENGTH, metavar="N", help="Sequence length in tokens (default: %(default)s)."
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, metavar="N", help="Random seed for weights and inputs (default: %(default)s)."
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="File to which the printed results are also written."
    )
    return parser
