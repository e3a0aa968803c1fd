"""Measure what each encoding costs, relative to the same model without an encoding: `python -m fairseq_posenc bench`.

`arguments` parses the command line. `settings` describes what is measured, and `subjects` builds the steps that are
timed. `clock` and `measure` time the steps in turn, and repeat measurements that exceed their `targets`. `parts` lists
what can be measured: layers, and the parts in `memory`, `scaling`, `peers`, `translation` and `lm_memory`. `rows`,
`table` and `figure` show the results.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from ...core.quiet import warnings_only
from ...core.writing import write_whole
from . import arguments, figure, machine, parts, table
from .rows import Row

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Run the benchmark and print its results. Return 1 if a ratio is above its target, otherwise 0."""
    args = arguments.parsed(argv)
    machine.start_again_pinned(argv, os.environ)
    if args.threads:
        torch.set_num_threads(args.threads)
    facts = machine.facts(args.device)
    with warnings_only():  # fairseq sets the root logger to DEBUG, and torch.compile then logs every lock
        rows = parts.rows(args)
        flat = [row.flat(facts) for row in rows]
        print(json.dumps(flat, indent=1) if args.json else table.text(rows, facts))
        if args.output:
            write_whole(args.output / "bench.json", json.dumps(flat, indent=1) + "\n")
            write_whole(args.output / "bench.md", table.markdown(rows, facts))
            _draw(rows, args.output)
    missed = [row for row in rows if row.holds is False]
    for row in missed:
        print(f"bench: this ratio is above its target: {row}", file=sys.stderr)
    return int(bool(missed))


def _draw(rows: Sequence[Row], folder: Path) -> None:
    """Draw the figure, or print why it cannot be drawn. For example, matplotlib may not be installed."""
    try:
        if not figure.draw(rows, folder):
            print(
                "bench: drew no figure, because no layer was measured. Add the part `layer` to --parts.",
                file=sys.stderr,
            )
    except ImportError:
        print("bench: drew no figure, because matplotlib is missing. Run: pip install matplotlib", file=sys.stderr)
