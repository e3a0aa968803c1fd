"""Parse the arguments of the benchmark, and replace names by the encodings and sizes that they stand for."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from .parts import EXTRA_PARTS, LEAST, PARTS, ROUNDS
from .settings import SHAPES, default_subjects, parsed_subjects, with_targets


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command = argparse.ArgumentParser(
        prog="python -m fairseq_posenc bench",
        description="Measure the cost of each encoding, relative to the same layer without an encoding.",
        epilog="The exit status is 1 if a ratio exceeds its target. Example: "
        "%(prog)s --quick --encodings shaw m4:clip=64",
    )
    add = command.add_argument
    add("--json", action="store_true", help="Print one JSON list of flat objects on stdout and nothing else.")
    add(
        "--encodings",
        nargs="+",
        metavar="NAME[:OPTIONS]",
        help="Encodings to measure. Default: all encodings with their default options, and some with other "
        "options for which the project has set a cost target.",
    )
    add(
        "--shapes",
        metavar="A,B",
        help=f"Layer sizes to measure: {', '.join(SHAPES)}. Default: all; with --quick, base.",
    )
    add(
        "--device",
        default="cpu",
        choices=("cpu", "cuda"),
        help="Device to measure on: CPU (float32) or GPU (bfloat16).",
    )
    add("--quick", action="store_true", help="Measure only the layers for which the project has set a cost target.")
    add("--scaling", action="store_true", help="Also measure how time and memory grow from length 128 to 4096.")
    add(
        "--peers", action="store_true", help="Also measure the position encodings of other packages that are installed."
    )
    add(
        "--translation",
        type=Path,
        metavar="DIR",
        help="Also measure translation models, on data in this output folder of fairseq-preprocess.",
    )
    add(
        "--memory",
        dest="lm_memory",
        action="store_true",
        help="Also measure decoders with a memory of earlier segments.",
    )
    add(
        "--parts",
        metavar="A,B",
        help=f"Parts to measure: {', '.join([*PARTS, *EXTRA_PARTS])}. Default: {', '.join(PARTS)}.",
    )
    add(
        "--rounds",
        type=_count,
        metavar="N",
        help=f"Number of rounds; each round times every layer once. Default: {ROUNDS}; with --quick, at least {LEAST}.",
    )
    add(
        "--threads",
        type=_count,
        metavar="N",
        help="Number of CPU threads; with 1, bench measures CPU time instead of elapsed time. Default: the number that "
        "torch chooses.",
    )
    add("--output", type=Path, metavar="DIR", help="Folder to write bench.json, bench.md and the figure bench.png to.")
    return command


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. If a name is unknown, end the program with a list of the known names."""
    command = parser()
    args = command.parse_args(argv)
    try:
        args.subjects = parsed_subjects(args.encodings) if args.encodings else default_subjects()
        shapes = _chosen("--shapes", args.shapes, SHAPES, ["base"] if args.quick else SHAPES)
        args.parts = _chosen("--parts", args.parts, [*PARTS, *EXTRA_PARTS], ["layer"] if args.quick else PARTS)
    except ValueError as error:
        command.error(str(error))
    args.parts += [part for part in EXTRA_PARTS if getattr(args, part.replace("-", "_")) and part not in args.parts]
    if "translation" in args.parts and not (args.translation and args.translation.is_dir()):
        wrong = f"{args.translation} is not a folder" if args.translation else "no folder is given"
        command.error(f"--translation: {wrong}. Give the output folder of fairseq-preprocess.")
    if "translation" in args.parts and args.device == "cuda":
        command.error("--translation: translation is measured on the CPU only. Leave out --device cuda.")
    if args.device == "cuda" and not torch.cuda.is_available():
        command.error("--device cuda: torch sees no GPU. Leave out the flag to use the CPU.")
    if args.quick and not args.encodings:
        args.subjects = with_targets(args.subjects)
    args.shapes, args.device = [SHAPES[name] for name in shapes], torch.device(args.device)
    return args


def _chosen(flag: str, text: str | None, known: Iterable[str], default: Iterable[str]) -> list[str]:
    chosen = list(default) if text is None else [word.strip() for word in text.split(",")]
    unknown = [word for word in chosen if word not in known]
    if unknown:
        raise ValueError(f"{flag}: {', '.join(map(repr, unknown))} is unknown. Choose from {', '.join(known)}.")
    return chosen


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"the number must be at least 1, not {number}")
    return number
