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
from . import bounded


def average_checkpoints(paths: Sequence[str | Path]) -> dict[str, Any]:
    """Return the first checkpoint, with its parameters replaced by the mean over all checkpoints.

    Tensors in half precision are summed in float32, and their mean stays float32. Means of integers are rounded down,
    as in fairseq.

    Raises:
        CheckpointError: A file is named twice, the parameters differ in name or shape, or boolean tensors differ.
    """
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
    shapes, expected = ({name: list(value.shape) for name, value in each.items()} for each in (model, total))
    different = [name for name in {**expected, **shapes} if shapes.get(name) != expected.get(name)]
    if different:
        name = different[0]
        here, first = (
            f"the shape {each[name]}" if name in each else "no such parameter" for each in (shapes, expected)
        )
        raise CheckpointError(
            f"{path}: {len(different)} of its parameters differ from those of the first checkpoint, such as {name}: "
            f"{here} here, {first} there. Average only checkpoints of one model."
        )
    for name, value in model.items():
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


def _by_number(folder: Path, by_update: bool) -> dict[int, Path]:
    """Return the checkpoints in a folder, keyed by the number of their epoch or update."""
    pattern = re.compile(r"checkpoint_\d+_(\d+)\.pt" if by_update else r"checkpoint(\d+)\.pt")
    return {int(match.group(1)): path for path in folder.iterdir() if (match := pattern.fullmatch(path.name))}


def last_checkpoints(folder: Path, number: int, by_update: bool, upper_bound: int | None = None) -> list[Path]:
    """Return the `number` newest checkpoints of epochs (checkpointN.pt) or of updates (checkpoint_E_N.pt)."""
    checkpoints = _by_number(folder, by_update)
    numbers = sorted((n for n in checkpoints if upper_bound is None or n <= upper_bound), reverse=True)
    if len(numbers) < number:
        kind, name = ("updates", "checkpoint_E_U.pt") if by_update else ("epochs", "checkpointE.pt")
        within = "" if upper_bound is None else f" up to --checkpoint-upper-bound {upper_bound}"
        raise CheckpointError(
            f"{folder}: cannot average the checkpoints of the last {number} {kind}, because the folder has "
            f"{len(numbers)} files {name}{within}. Give a smaller number, or another folder."
        )
    return [checkpoints[n] for n in numbers[:number]]


def regular_checkpoints(folder: Path, number: int, every: int, upper_bound: int | None = None) -> list[Path]:
    """Return the checkpoints of the last `number` updates that are multiples of `every`, newest first.

    fairseq writes no checkpoint_E_N.pt for an update that ends an epoch. The checkpoint of the last update of the
    training is checkpoint_last.pt.

    Raises:
        CheckpointError: A checkpoint is missing. An older checkpoint in its place would change the mean.
    """
    last = folder / "checkpoint_last.pt"
    updates = int(load_model(last)["optimizer_history"][-1]["num_updates"])
    newest = (updates if upper_bound is None else min(updates, upper_bound)) // every * every
    needed = range(newest, newest - number * every, -every)
    checkpoints = _by_number(folder, by_update=True) | {updates: last}
    if missing := [str(update) for update in needed if update not in checkpoints]:
        raise CheckpointError(
            f"{folder}: the checkpoints of these updates are missing: {', '.join(missing)} (fairseq writes no "
            "checkpoint_E_N.pt for an update that ends an epoch). Average fewer checkpoints."
        )
    return [checkpoints[update] for update in needed]


def _parser() -> Parser:
    parser = Parser(
        prog="python -m fairseq_posenc average",
        description="Average the parameters of several checkpoints of one model.",
    )
    add, number = parser.add_argument, bounded(1)
    add("--inputs", required=True, nargs="+", metavar="FILE", help="Checkpoints to average, or one folder with them.")
    add("--output", required=True, metavar="FILE", type=Path, help="File to write the averaged checkpoint to.")
    text = "With a folder: average the checkpoints of its last N epochs (files checkpointE.pt)."
    newest = parser.add_mutually_exclusive_group()
    newest.add_argument("--num-epoch-checkpoints", type=number, metavar="N", help=text)
    text = "With a folder: average the checkpoints of its last N saved updates (files checkpoint_E_U.pt)."
    newest.add_argument("--num-update-checkpoints", type=number, metavar="N", help=text)
    text = "With --num-update-checkpoints: average only checkpoints whose number of updates is a multiple of U. All of "
    add("--every", type=number, metavar="U", help=f"{text}these checkpoints must exist.")
    add("--checkpoint-upper-bound", type=int, metavar="N", help="Ignore checkpoints after epoch N or update N.")
    return parser


def _inputs(parser: argparse.ArgumentParser, args: argparse.Namespace) -> list[str | Path]:
    """Return the checkpoints that the command line names, or those of its folder.

    Raises:
        CheckpointError: --inputs names a folder without a number of checkpoints, or checkpoints are missing.
    """
    number, folder = args.num_update_checkpoints or args.num_epoch_checkpoints, Path(args.inputs[0])
    if args.every and not args.num_update_checkpoints:
        parser.error("--every U needs --num-update-checkpoints N.")
    if number is None and args.checkpoint_upper_bound is not None:
        parser.error("--checkpoint-upper-bound needs --num-epoch-checkpoints N or --num-update-checkpoints N.")
    if number and (len(args.inputs) > 1 or not folder.is_dir()):
        parser.error(f"The last {number} checkpoints can be averaged of one folder, not of {' '.join(args.inputs)}.")
    if number is None and folder.is_dir():
        raise CheckpointError(
            f"--inputs {folder} is a folder. Say how many of its checkpoints to average with --num-epoch-checkpoints N "
            "or --num-update-checkpoints N, or name the files."
        )
    if number is None:
        return list(args.inputs)
    if args.every:
        return list(regular_checkpoints(folder, number, args.every, args.checkpoint_upper_bound))
    by_update = args.num_update_checkpoints is not None
    return list(last_checkpoints(folder, number, by_update, args.checkpoint_upper_bound))


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
