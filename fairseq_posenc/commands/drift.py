"""`python -m fairseq_posenc drift`: measure how half precision and autocast change each encoding's results."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..core.options import written
from ..core.quiet import warnings_only
from ..core.writing import write_whole
from ..encodings import StackShape, get, names
from ..stack import Stack
from .drift_page import page
from .listing import on_meta
from .rounding import drawn, measured

#: Options that choose between readings of one method, that is, between ways to understand its paper.
READINGS = ("form", "reset")
LAYERS, HEADS, HEAD_DIM, LENGTH, SHORTEST, SEED = 2, 2, 64, 512, 8, 1


@dataclasses.dataclass(frozen=True)
class Case:
    """An encoding with its options, in an encoder or in a decoder."""

    encoding: str
    options: Mapping[str, Any]
    causal: bool
    length: int = LENGTH

    def __str__(self) -> str:
        return f"{self.encoding} {self.written} {self.stack}".replace("  ", " ")

    @property
    def written(self) -> str:
        """Return the options as --pos-enc-args takes them."""
        return ",".join(f"{name}={value}" for name, value in self.options.items())

    @property
    def stack(self) -> str:
        """Return `encoder` or `decoder`."""
        return "decoder" if self.causal else "encoder"

    @property
    def shape(self) -> StackShape:
        """Return the shape of the stack. Encoders have a [CLS], because some encodings treat it separately."""
        return StackShape(
            LAYERS, HEADS, HEADS * HEAD_DIM, self.length, causal=self.causal, length_flag="--length",
            has_cls=not self.causal,
        )  # fmt: skip

    def works(self) -> bool:
        """Return whether the encoding accepts these options in this stack."""
        return on_meta(self.encoding, dict(self.options), self.shape) is not None

    def built(self) -> Stack:
        """Build the stack with its initial weights."""
        return Stack(self.encoding, dict(self.options), self.shape, ffn=1)  # the FFN is never used

    def rows(self, device: torch.device, seed: int) -> list[dict[str, Any]]:
        """Return one flat row per precision."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            stack = drawn(self.built(), seed).to(device)
        facts = {"encoding": self.encoding, "options": self.written, "stack": self.stack, "length": self.length}
        setting = {"seed": seed, "device": _name(device), "torch": torch.__version__}
        return [{**facts, **row, **setting} for row in measured(stack, seed)]


def cases(encodings: Sequence[str], length: int = LENGTH) -> list[Case]:
    """Return each encoding with its default options and with each choice of its `READINGS`, in all possible stacks.

    Raises:
        ValueError: An encoding is unknown, or no stack of this length can have it.
    """
    all_cases: list[Case] = []
    for name in encodings:
        get(name)
        own_cases = [case for causal in (False, True) for case in _readings(Case(name, {}, causal, length))]
        if not own_cases:
            raise ValueError(f"--length {length}: {name} supports no stack of this length. Choose another length.")
        all_cases += own_cases
    return all_cases


def _readings(default: Case) -> list[Case]:
    """Return the default case and one per choice of `READINGS`; an empty list if the stack cannot have the encoding."""
    if not default.works():
        return []
    fields = dataclasses.fields(get(default.encoding).Options)
    readings = [choice for field in fields if field.name in READINGS for choice in _alternatives(field)]
    others = [choice for field in fields if field.name not in READINGS for choice in _alternatives(field)]
    accepted = [_accepted(default, reading, others) for reading in readings]
    return [default, *(case for case in accepted if case is not None)]


def _alternatives(field: dataclasses.Field[Any]) -> list[dict[str, Any]]:
    """Return an option with each choice that is not its default, or with its example if it has no choices."""
    choices, example = field.metadata["choices"], field.metadata["example"]
    values = [choice for choice in choices if choice != field.default] if choices else [example]
    return [{written(field): value} for value in values if value is not None]


def _accepted(default: Case, reading: dict[str, Any], others: list[dict[str, Any]]) -> Case | None:
    """Return the first case that works with `reading` and at most two elements of `others`; None if there is none.

    For example, the forms of rope also need scaling=yarn and a factor.
    """
    for more in itertools.chain.from_iterable(itertools.combinations(others, count) for count in range(3)):
        options = dict(itertools.chain(reading.items(), *(other.items() for other in more)))
        case = dataclasses.replace(default, options=options)
        if case.works():
            return case
    return None


def faults(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each row that is not finite or exceeds the bounds of its precision."""
    return [
        f"{row['encoding']} {row['options']} ({row['stack']}, {row['precision']}): ".replace("  ", " ")
        + ("the drift from float64 exceeds its bound" if row["finite"] else "the result is not finite")
        for row in rows
        if not row["near"]
    ]


def main(argv: Sequence[str]) -> int:
    """Measure the drift of each encoding, print it, and write the output file.

    Return 1 if a row exceeds its bound or is not finite, or if writing fails.
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
        raise ValueError(f"--output {args.output}: give a file in an existing folder.")


def _measured(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of all cases, and print the name of each case on stderr when it starts."""
    rows: list[dict[str, Any]] = []
    with warnings_only(__package__):  # hide the log lines on the path of each attention
        todo = cases(args.encodings or names(), args.length)
        for number, case in enumerate(todo, start=1):
            print(f"{number}/{len(todo)} {case}", file=sys.stderr)
            rows += case.rows(torch.device(args.device), args.seed)
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_posenc drift",
        description="Measure how much the attention of each encoding and its gradients differ from float64 in float16, "
        "bfloat16 and autocast. Measuring all encodings takes some minutes.",
        epilog="examples: drift --encodings shaw t5    drift --device cuda --json    "
        "drift --output docs/half-precision.md",
    )
    parser.add_argument("--encodings", nargs="+", metavar="NAME", help="Encodings to measure. Default: all.")
    parser.add_argument(
        "--json", action="store_true", help="Print one JSON list of flat objects on stdout and nothing else."
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="Device (default: %(default)s).")
    parser.add_argument(
        "--length", type=int, default=LENGTH, metavar="N", help="Sequence length in tokens (default: %(default)s)."
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, metavar="N", help="Random seed for weights and inputs (default: %(default)s)."
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="Also write the output to this file.")
    return parser


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({torch.backends.cpu.get_cpu_capability()})"  # the capability decides how half precision is multiplied
