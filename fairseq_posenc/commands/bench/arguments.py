"""Parse the arguments, and replace names by the objects that they name."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from .parts import EXTRA_PARTS, LEAST, PARTS, ROUNDS
from .settings import SHAPES, default_subjects, parsed_subjects, with_targets


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m fairseq_posenc bench",
        description="Measure what each encoding costs relative to the same layer without one, with fused attention.",
        epilog="exit status: 1 where a target does not hold. example: bench --quick --encodings shaw m4:clip=64",
    )
    add = made.add_argument
    add("--json", action="store_true", help="Print one list of flat objects on stdout and nothing else.")
    add(
        "--encodings",
        nargs="+",
        metavar="NAME[:OPTIONS]",
        help="Encodings to measure. Default: all, and options with a target.",
    )
    add("--shapes", metavar="NAME,...", help=f"Layer sizes: {', '.join(SHAPES)}. Default: all; with --quick, base.")
    add("--device", default="cpu", choices=("cpu", "cuda"), help="Device: fp32 on a CPU, bf16 on a GPU.")
    add("--quick", action="store_true", help="Measure only layers with a target, in at most 20 minutes.")
    add("--scaling", action="store_true", help="Add the exponents of time and memory over lengths 128 to 4096.")
    add("--peers", action="store_true", help="Add other implementations that are installed.")
    add("--translation", type=Path, metavar="DATA-BIN", help="Add translation beside fairseq's transformer.")
    add("--memory", dest="lm_memory", action="store_true", help="Add decoders with memory of earlier segments.")
    add("--what", metavar="PART,...", help=f"Parts: {', '.join([*PARTS, *EXTRA_PARTS])}. Default: {', '.join(PARTS)}.")
    add(
        "--rounds",
        type=_count,
        metavar="N",
        help=f"Number of rounds. Default: {ROUNDS}; with --quick, from {LEAST} on.",
    )
    add("--threads", type=_count, metavar="N", help="Number of torch's threads. Default: torch's own.")
    add("--output", type=Path, metavar="DIR", help="Folder for bench.json, bench.md and bench.png.")
    return made


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. End the program at unknown names, with a list of the known ones."""
    made = parser()
    args = made.parse_args(argv)
    try:
        args.subjects = parsed_subjects(args.encodings) if args.encodings else default_subjects()
        shapes = _chosen("--shapes", args.shapes, SHAPES, ["base"] if args.quick else SHAPES)
        args.parts = _chosen("--what", args.what, [*PARTS, *EXTRA_PARTS], ["layer"] if args.quick else PARTS)
    except ValueError as error:
        made.error(str(error))
    args.parts += [part for part in EXTRA_PARTS if getattr(args, part.replace("-", "_")) and part not in args.parts]
    if "translation" in args.parts and not (args.translation and args.translation.is_dir()):
        made.error(f"--translation {args.translation}: not a folder that fairseq-preprocess made")
    if "translation" in args.parts and args.device == "cuda":
        made.error("--translation runs on the CPU only: leave out --device cuda")
    if args.device == "cuda" and not torch.cuda.is_available():
        made.error("--device cuda: torch sees no GPU here")
    if args.quick and not args.encodings:
        args.subjects = with_targets(args.subjects)
    args.shapes, args.device = [SHAPES[name] for name in shapes], torch.device(args.device)
    return args


def _chosen(flag: str, text: str | None, known: Iterable[str], default: Iterable[str]) -> list[str]:
    chosen = list(default) if text is None else [word.strip() for word in text.split(",")]
    unknown = [word for word in chosen if word not in known]
    if unknown:
        raise ValueError(f"{flag}: unknown {', '.join(map(repr, unknown))}; known: {', '.join(known)}")
    return chosen


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1, got {number}")
    return number
