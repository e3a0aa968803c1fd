"""The arguments, with names resolved to what they name."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from .parts import EXTRA_PARTS, LEAST, PARTS, ROUNDS
from .settings import SHAPES, default_subjects, parsed_subjects, with_targets


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m fairseq_posenc bench",
        description="The cost of each encoding relative to the same layer without one, through fused attention.",
        epilog="exit status: 1 where a target does not hold. example: bench --quick --encodings shaw m4:clip=64",
    )
    add = made.add_argument
    add("--json", action="store_true", help="one list of flat objects on stdout and nothing else")
    add("--encodings", nargs="+", metavar="NAME[:OPTIONS]", help="default: all, and options with a target of their own")
    add("--shapes", metavar="NAME,...", help=f"of {', '.join(SHAPES)}; default: all; quick: base")
    add("--device", default="cpu", choices=("cpu", "cuda"), help="fp32 on a CPU, bf16 on a GPU")
    add("--quick", action="store_true", help="layers of what has a target, at most 20 minutes on two cores")
    add("--scaling", action="store_true", help="add the exponents of time and memory over lengths 128 to 4096")
    add("--peers", action="store_true", help="add other implementations, where installed")
    add("--translation", type=Path, metavar="DATA-BIN", help="add translation beside fairseq's transformer")
    add("--memory", dest="lm_memory", action="store_true", help="add memory of earlier segments, in decoders")
    add("--what", metavar="PART,...", help=f"of {', '.join([*PARTS, *EXTRA_PARTS])}; default: {', '.join(PARTS)}")
    add("--rounds", type=_count, metavar="N", help=f"default: {ROUNDS}; quick: from {LEAST}, as the time allows")
    add("--threads", type=_count, metavar="N", help="torch's threads; default: torch's")
    add("--output", type=Path, metavar="DIR", help="write bench.json, bench.md and bench.png there")
    return made


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Unknown names end the program, with the known ones."""
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
