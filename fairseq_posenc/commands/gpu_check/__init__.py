"""`python -m fairseq_posenc gpu-check`: check and measure all encodings on a GPU, with torch and numpy only."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from ...core.quiet import warnings_only
from . import cost, drift, laws
from .page import page
from .results import Results, Task
from .subjects import Sizes

#: Seconds in which a part must end. The same command continues it.
LIMIT = 8 * 60
PARTS: dict[str, Callable[[Sizes], list[Task]]] = {"laws": laws.tasks, "drift": drift.tasks, "cost": cost.tasks}
#: Exit status if nothing failed, but the time was not enough for all parts.
UNFINISHED = 3


def main(argv: Sequence[str]) -> int:
    """Run the tasks that are not done. Return 1 if a task failed, and `UNFINISHED` if more runs are needed."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch sees no GPU. To try the command without a GPU, give --device cpu --quick.")
    device = torch.device(args.device)
    results = Results(args.output, device, quick=args.quick)
    sizes = Sizes.quick(device) if args.quick else Sizes.of(device)
    unfinished = []
    with warnings_only("fairseq_posenc"):
        for part in args.part or PARTS:
            unfinished += [part] if _run(part, PARTS[part](sizes), results) else []
            results.write(page(results))
    for row in results.failures:
        print(f"gpu-check: {row['part']}: {row['task']}: {row['text']}", file=sys.stderr)
    if unfinished:
        print(f"gpu-check: run the same command again to continue {', '.join(unfinished)}", file=sys.stderr)
    print(args.output / "gpu.md")
    return 1 if results.failures else UNFINISHED if unfinished else 0


def _run(part: str, tasks: Sequence[Task], results: Results) -> bool:
    """Run the tasks of a part that are not done. Return True if the time ran out before all tasks were run.

    A task starts only if the remaining time is at least the time of the longest task so far.
    """
    until, longest = time.monotonic() + LIMIT, 0.0
    for number, task in enumerate(tasks, start=1):
        if results.has(part, task.name):
            continue
        start = time.monotonic()
        if start + longest > until:
            return True
        print(f"{part} {number}/{len(tasks)} {task.name}", file=sys.stderr)
        torch._dynamo.reset()  # forget the kernels of other encodings, because torch limits their number
        results.add(part, task)
        longest = max(longest, time.monotonic() - start)
    return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_posenc gpu-check",
        description="Check and measure all encodings on a GPU. The part `laws` checks that the results of every\n"
        "attention path are close to those in float64. The part `drift` measures how far results in half\n"
        "precision are from float64, and the part `cost` measures time and memory. Each part stops before a case\n"
        "with which it would probably run for more than 8 minutes. If you run the same command again, it\n"
        "continues with the remaining cases and repeats failed ones. The results are written to DIR/gpu.md and\n"
        "DIR/gpu.json. The exit status is 1 if a case failed, and 3 if cases remain to be run.",
        epilog="examples:\n  %(prog)s --output results/gpu\n  %(prog)s --output results/gpu --part laws --quick",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder for the results.")
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="Part to run; the flag may be repeated (default: all parts)."
    )
    parser.add_argument("--quick", action="store_true", help="Check only a few encodings, with small sizes.")
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="Device to check (default: %(default)s)."
    )
    return parser
