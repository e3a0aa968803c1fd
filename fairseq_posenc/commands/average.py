"""`python -m fairseq_posenc average`: average the parameters of several checkpoints.

The results equal those of fairseq's scripts/average_checkpoints.py, which fairseq's wheels do not contain. This command
works without fairseq.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..compat.checkpoints import CheckpointError, load_model
from ..core.arguments import Parser
from ..core.refusal import described
from ..core.words import visible
from ..core.writing import whole


def average_checkpoints(paths: Sequence[str | Path]) -> dict[str, Any]:
    """Return the first checkpoint, with its parameters replaced by the mean over all checkpoints.

    Tensors in half precision are summed in float32, and their mean stays float32. Means of integers are rounded down,
    as in fairseq.

    Raises:
        CheckpointError: There are no checkpoints, a file is named twice, the parameters differ in name or shape, or
            boolean tensors differ.
    """
    if not paths:
        raise CheckpointError("--inputs: there is no checkpoint to average. Name at least one file.")
    _refuse_repeated(paths)
    state = load_model(paths[0])
    total = {name: _wide(value).clone() for name, value in state["model"].items()}
    for path in paths[1:]:
        _add(total, load_model(path)["model"], path)
    state["model"] = {name: _divide(value, len(paths)) for name, value in total.items()}
    return state


def _refuse_repeated(paths: Sequence[str | Path]) -> None:
    """Raise CheckpointError if two paths name the same file, which would count twice in the mean."""
    files: dict[Path, str | Path] = {}
    for path in paths:
        file = Path(path).resolve()
        if file in files:
            same = "" if str(files[file]) == str(path) else f" (it is the same file as {files[file]})"
            raise CheckpointError(f"--inputs: {path} is named twice{same}. Name each checkpoint once.")
        files[file] = path


def _refuse_overwriting(output: Path, paths: Sequence[str | Path]) -> None:
    """Raise CheckpointError if the output is a folder or one of the inputs, which would be lost."""
    if output.is_dir():
        raise CheckpointError(f"--output {output} is a folder. Name a file.")
    same = next((path for path in paths if output.exists() and Path(path).exists() and output.samefile(path)), None)
    if same is not None:
        raise CheckpointError(f"--output {output}: this would replace the input {same}. Name another file.")


def _wide(value: Tensor) -> Tensor:
    return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value


def _add(total: dict[str, Tensor], model: dict[str, Tensor], path: str | Path) -> None:
    """Add the parameters of a model to `total`, in place."""
    differences = {"missing": sorted(total.keys() - model.keys()), "additional": sorted(model.keys() - total.keys())}
    if any(differences.values()):
        names = "; ".join(f"{len(names)} {kind}, such as {names[0]}" for kind, names in differences.items() if names)
        raise CheckpointError(
            f"{path}: the parameters differ from those of the first checkpoint ({names}). Average only checkpoints of "
            "one model."
        )
    for name, value in model.items():
        if value.shape != total[name].shape:
            shapes = f"{list(value.shape)}, but {list(total[name].shape)} in the first checkpoint"
            raise CheckpointError(f"{path}: {name} has the shape {shapes}. Average only checkpoints of one model.")
        if value.dtype != torch.bool:
            total[name] += _wide(value)
        elif not torch.equal(value, total[name]):
            raise CheckpointError(
                f"{path}: the boolean tensor {name} differs from the one in the first checkpoint, and boolean tensors "
                "cannot be averaged. Average only checkpoints of one training run."
            )


def _divide(value: Tensor, count: int) -> Tensor:
    if value.dtype == torch.bool:
        return value
    return value.div_(count) if value.is_floating_point() else value.floor_divide_(count)


def _by_number(folder: str | Path, by_update: bool) -> dict[int, Path]:
    """Return the checkpoints in a folder, keyed by the number of their epoch or update."""
    pattern = re.compile(r"checkpoint_\d+_(\d+)\.pt" if by_update else r"checkpoint(\d+)\.pt")
    return {int(match.group(1)): path for path in Path(folder).iterdir() if (match := pattern.fullmatch(path.name))}


def last_checkpoints(folder: str | Path, number: int, by_update: bool, upper_bound: int | None = None) -> list[Path]:
    """Return the `number` newest checkpoints of epochs (checkpointN.pt) or of updates (checkpoint_E_N.pt)."""
    checkpoints = _by_number(folder, by_update)
    numbers = sorted((n for n in checkpoints if upper_bound is None or n <= upper_bound), reverse=True)
    if number < 1 or len(numbers) < number:
        kind, name = ("updates", "checkpoint_E_U.pt") if by_update else ("epochs", "checkpointE.pt")
        within = "" if upper_bound is None else f" up to --checkpoint-upper-bound {upper_bound}"
        raise CheckpointError(
            f"{folder}: cannot average the checkpoints of the last {number} {kind}, because the folder has "
            f"{len(numbers)} files {name}{within}. Give a number from 1 to {len(numbers)}, or another folder."
        )
    return [checkpoints[n] for n in numbers[:number]]


def regular_checkpoints(folder: str | Path, number: int, every: int, upper_bound: int | None = None) -> list[Path]:
    """Return the checkpoints of the last `number` updates that are multiples of `every`, newest first.

    fairseq writes no checkpoint_E_N.pt for an update that ends an epoch. The checkpoint of the last update of the
    training is checkpoint_last.pt.

    Raises:
        CheckpointError: A checkpoint is missing. An older checkpoint in its place would change the mean.
    """
    last = Path(folder) / "checkpoint_last.pt"
    updates = int(load_model(last)["optimizer_history"][-1]["num_updates"])
    newest = (updates if upper_bound is None else min(updates, upper_bound)) // every * every
    needed = range(newest, newest - number * every, -every)
    checkpoints = _by_number(folder, by_update=True) | {updates: last}
    missing = [n for n in needed if n not in checkpoints]
    if missing:
        wrong = f"the checkpoints of these updates are missing: {', '.join(map(str, missing))}"
        raise CheckpointError(
            f"{folder}: {wrong} (fairseq writes no checkpoint_E_N.pt for an update that ends an epoch). Average fewer "
            "checkpoints."
        )
    return [checkpoints[n] for n in needed]


def _parser() -> Parser:
    parser = Parser(
        prog="python -m fairseq_posenc average",
        description="Average the parameters of several checkpoints of one model.",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--inputs", nargs="+", metavar="FILE", help="Checkpoints to average, or one folder.")
    source.add_argument("--checkpoint-dir", metavar="DIR", help="Folder that contains the checkpoints.")
    parser.add_argument(
        "--output", required=True, metavar="FILE", type=Path, help="File to write the averaged checkpoint to."
    )
    newest = parser.add_mutually_exclusive_group()
    newest.add_argument(
        "--num-epoch-checkpoints",
        type=int,
        metavar="N",
        help="Average the checkpoints of the last N epochs in a folder (files checkpointE.pt).",
    )
    newest.add_argument(
        "--num-update-checkpoints",
        type=int,
        metavar="N",
        help="Average the checkpoints of the last N saved updates in a folder (files checkpoint_E_U.pt).",
    )
    parser.add_argument(
        "--every",
        type=int,
        metavar="U",
        help="With --num-update-checkpoints: average only checkpoints whose number of updates is a multiple of "
        "U. All of these checkpoints must exist.",
    )
    parser.add_argument(
        "--checkpoint-upper-bound", type=int, metavar="N", help="Ignore checkpoints after epoch N or update N."
    )
    return parser


def _inputs(parser: argparse.ArgumentParser, args: argparse.Namespace) -> list[str | Path]:
    number = args.num_epoch_checkpoints if args.num_update_checkpoints is None else args.num_update_checkpoints
    if number is None:
        if args.checkpoint_dir or args.checkpoint_upper_bound is not None:
            parser.error(
                "--checkpoint-dir and --checkpoint-upper-bound need the number of checkpoints to average. Set this "
                "number with --num-epoch-checkpoints N or --num-update-checkpoints N."
            )
        if folder := next((path for path in args.inputs if Path(path).is_dir()), None):
            raise CheckpointError(
                f"--inputs {folder} is a folder. Say how many of its checkpoints to average with "
                "--num-epoch-checkpoints N or --num-update-checkpoints N, or name the files."
            )
        return list(args.inputs)
    folders = [args.checkpoint_dir] if args.checkpoint_dir else args.inputs
    if len(folders) != 1 or not Path(folders[0]).is_dir():
        parser.error(
            f"--num-epoch-checkpoints and --num-update-checkpoints need one folder, not {' '.join(folders)}. Name the "
            "folder with --checkpoint-dir."
        )
    by_update = args.num_update_checkpoints is not None
    if args.every is not None:
        if not by_update:
            parser.error("--every U needs --num-update-checkpoints N.")
        if min(args.every, number) < 1:
            parser.error(f"--every {args.every}, --num-update-checkpoints {number}: both must be at least 1.")
        return list(regular_checkpoints(folders[0], number, args.every, args.checkpoint_upper_bound))
    return list(last_checkpoints(folders[0], number, by_update, args.checkpoint_upper_bound))


def main(argv: list[str]) -> int:
    """Average the checkpoints that the command line names. Return 0, or 1 after printing a one-line error."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        paths = _inputs(parser, args)
        _refuse_overwriting(args.output, paths)
        state = average_checkpoints(paths)
        with whole(args.output) as partial:
            torch.save(state, partial)
    except (CheckpointError, OSError) as error:
        print(f"average: {visible(described(error))}", file=sys.stderr)
        return 1
    print(f"average: wrote {args.output}, the mean of {', '.join(str(path) for path in paths)}")
    return 0
