"""`python -m fairseq_posenc figures`: draw the figures of the papers from checkpoints and data."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis import cosine, heat_map, lengths, mean_attention, patterns, rank
from ..analysis.style import Row, save
from ..analysis.trained import FigureError, Stack, load, told_apart
from ..compat.checkpoints import CheckpointError
from ..core.arguments import Parser
from ..core.refusal import described
from ..core.words import visible
from . import bounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Options = argparse.Namespace


class Picture(NamedTuple):
    """Hold a figure, its data as rows of a table, and the lines of text to print about it."""

    figure: Figure
    rows: Sequence[Row]
    report: Sequence[str] = ()


class Kind(NamedTuple):
    """Describe a kind of figure that the command can draw.

    Args:
        paper: Paper, and number of the figure or table in the paper.
        text: What the figure shows.
        reads: Options that affect this kind of figure, with their defaults; None for an option without a default.
        make: Function that yields the figures.
    """

    paper: str
    text: str
    reads: dict[str, Any]
    make: Callable[[Options], Iterator[Picture]]


def _stacks(options: Options) -> list[Stack]:
    if not options.checkpoint:
        raise FigureError(
            "--checkpoint: this figure needs a trained model. Name its checkpoint with --checkpoint FILE."
        )
    if len(options.data or []) > 1:
        raise FigureError(
            f"--data is given {len(options.data)} times, but this figure reads one folder. Name only one."
        )
    (data,) = options.data or [None]
    return told_apart([load(path, data, options.side) for path in options.checkpoint])


def _heat_map(options: Options) -> Iterator[Picture]:
    for stack in _stacks(options):
        for item in heat_map.data(stack, options.layer, options.head, options.columns):
            yield Picture(heat_map.draw([item]), heat_map.rows(item), [item.title])


def _mean_attention(options: Options) -> Iterator[Picture]:
    for stack in _stacks(options):
        item = mean_attention.data(stack, options.split, options.texts, options.layer, options.columns)
        yield Picture(mean_attention.draw(item), mean_attention.rows(item), mean_attention.report(item))


def _rank(options: Options) -> Iterator[Picture]:
    chosen = options.split, options.texts, options.layer, options.columns
    items = [rank.data(stack, *chosen) for stack in _stacks(options)]
    yield Picture(rank.draw(items), rank.rows(items), rank.report(items))


def _cosine(options: Options) -> Iterator[Picture]:
    items = [cosine.data(stack, options.columns) for stack in _stacks(options)]
    yield Picture(cosine.draw(items), cosine.rows(items), cosine.report(items))


def _patterns(options: Options) -> Iterator[Picture]:
    for stack in _stacks(options):
        item = patterns.data(stack, options.layer, options.columns, options.second_segment)
        yield Picture(patterns.draw(item), patterns.rows(item), patterns.report(item))


def _lengths(options: Options) -> Iterator[Picture]:
    if not options.data:
        raise FigureError("--data: this figure needs prepared data. Name its folder with --data DIR.")
    sets: dict[str, lengths.Lengths] = {}
    for folder in options.data:
        for name, each in lengths.lengths_of(folder, options.split).items():
            title = name if len(options.data) == 1 else f"{folder.name} {name}"
            if title in sets:
                raise FigureError(f"--data: two folders are named {folder.name}. Rename one of them.")
            sets[title] = lengths.data(each)
    yield Picture(lengths.draw(sets), lengths.rows(sets))


MODEL = {"checkpoint": None, "data": None, "side": None}
TEXT = {**MODEL, "split": "valid", "texts": 8}
KINDS = {
    "embedding-heat-map": Kind(
        "M1-M4, Figure 4",
        "Show the values that an encoding has learned for distances or positions.",
        {**MODEL, "layer": 1, "head": 1, "columns": 50},
        _heat_map,
    ),
    "mean-attention": Kind(
        "M1-M4, Figure 5",
        "Show the attention weights of a layer, averaged over heads and texts.",
        {**TEXT, "layer": 1, "columns": 50},
        _mean_attention,
    ),
    "rank": Kind(
        "DIET, Figures 2 and 8, Theorem 1",
        "Show the rank of the attention logits, and of their part that depends on positions only.",
        {**TEXT, "layer": 1, "columns": 128},
        _rank,
    ),
    "cosine": Kind(
        "DIET, Figure 5",
        "Show the cosine similarities between the position vectors at the input.",
        {**MODEL, "columns": None},
        _cosine,
    ),
    "patterns": Kind(
        "DIET, Figures 4, 6 and 7",
        "Show the part of each head's logits that depends on positions, and how well distances alone explain it.",
        {**MODEL, "layer": 1, "columns": 32, "second_segment": None},
        _patterns,
    ),
    "lengths": Kind(
        "LFHC and GCDF, Figures 3 and 4",
        "Show how long the texts are, and how often each distance occurs.",
        {"data": None, "split": "train"},
        _lengths,
    ),
}

EPILOG = """\
examples:
  python -m fairseq_posenc figures cosine --checkpoint learned.pt --output figures
  python -m fairseq_posenc figures rank --checkpoint learned.pt --checkpoint diet-abs.pt --output figures

Each figure is written as NAME.png and NAME.pdf, and its data as NAME.csv."""


def _parser() -> Parser:
    kinds = "\n".join(f"  {name:<19} {kind.text} ({kind.paper})" for name, kind in KINDS.items())
    parser = Parser(
        prog="python -m fairseq_posenc figures",
        description=f"Draw figures of the papers.\n\nfigures:\n{kinds}",
        epilog=EPILOG,
        argument_default=argparse.SUPPRESS,  # so that an option that the user leaves out is absent
    )
    parser.add_argument("name", choices=KINDS, metavar="NAME", help="Figure to draw, from the list above.")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder to write the files to.")
    add = parser.add_argument
    several = {"type": Path, "action": "append"}
    add("--checkpoint", **several, metavar="FILE", help="fairseq checkpoint; the flag may be repeated.")
    data = "Folder with the dictionary and the text (default: the folder of the training data)."
    add("--data", **several, metavar="DIR", help=f"{data} For the figure `lengths`, the flag may be repeated.")
    add("--side", choices=("encoder", "decoder"), help="Part of an encoder-decoder model to draw (default: encoder).")
    split = "Split of the data to read (default: train for the figure `lengths`, valid for all others)."
    add("--split", metavar="NAME", help=split)
    defaults = ", ".join(f"{name} {kind.reads['columns']}" for name, kind in KINDS.items() if kind.reads.get("columns"))
    numbers = {
        "texts": (1, "Number of texts to read (default: 8)."),
        "layer": (1, "Number of the layer, counted from 1 (default: 1)."),
        "head": (1, "Number of the head, counted from 1 (default: 1)."),
        "columns": (2, f"Number of tokens or distances to show (default: {defaults})."),
        "second-segment": (0, "Position of the first token of a second segment (default: there is only one segment)."),
    }
    for name, (least, text) in numbers.items():
        add(f"--{name}", type=bounded(least), metavar="N", help=text)
    return parser


def main(argv: Sequence[str]) -> int:
    """Draw the figure that the command line names. Return 0, or 1 after printing a one-line error."""
    parser = _parser()
    options = parser.parse_args(argv)
    kind = KINDS[options.name]
    unread = sorted(set(vars(options)) - set(kind.reads) - {"name", "output"})
    if unread:
        known = ", ".join(f"--{name.replace('_', '-')}" for name in kind.reads)
        flag = f"--{unread[0].replace('_', '-')}"
        parser.error(f"{flag} has no effect on {options.name}, which reads only {known}. Leave out {flag}.")
    for name, default in kind.reads.items():
        setattr(options, name, getattr(options, name, default))
    try:
        pictures = list(kind.make(options))
        for number, picture in enumerate(pictures, start=1):
            end = f"-{number}" if len(pictures) > 1 else ""
            paths = save(picture.figure, picture.rows, options.output, f"{options.name}{end}")
            print("\n".join([*picture.report, f"{paths[0]} (and {paths[1].suffix}, {paths[2].suffix})"]))
    except (FigureError, CheckpointError, OSError, ValueError) as error:
        print(f"figures: {visible(described(error))}", file=sys.stderr)
        return 1
    return 0
