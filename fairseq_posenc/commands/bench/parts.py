"""Run the parts of the benchmark: by default layers, padded layers, models, decoding and memory."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tqdm import tqdm

from . import lm_memory, memory, peers, scaling, targets, translation
from . import measure as measuring
from .measure import Plan
from .rows import Row, timed
from .settings import Setting, Shape, Subject
from .subjects import step_of

PARTS = ("layer", "padded", "model", "decode", "memory")
EXTRA_PARTS = ("scaling", "peers", "translation", "lm-memory")
#: Rounds of the first pass. With `--quick` it has LEAST to MOST rounds, as many as fit into QUICK_SECONDS.
ROUNDS, LEAST, MOST, QUICK_SECONDS = 11, 2, 15, 17 * 60
#: Length and batch size of whole models on a CPU, where a step of 12 layers takes seconds.
ON_CPU = ((512, 1),)
#: Length at which the memory of the prototypes was counted, and so the only one with targets.
MEMORY_LENGTH = 512

Tell = Callable[[str, int], None]
Pair = tuple[Subject, Setting]


def rows(args: Namespace) -> list[Row]:
    """Run the parts that the command line names, and return their rows."""
    parts: dict[str, Callable[[Namespace, Tell], Iterable[Row]]] = {
        "layer": lambda args, tell: _timed(_layers(args), args, tell),
        "padded": lambda args, tell: _timed(_layers(args, padded=True), args, tell),
        "model": lambda args, tell: _timed(_layers(args, "model"), args, tell),
        "decode": _decoding_beside_fairseq,
        "memory": _memory,
        "scaling": lambda args, tell: scaling.rows(args.subjects, args.device, plan_of(args, tell)),
        "peers": lambda args, tell: peers.rows(args.shapes, args.device, plan_of(args, tell)),
        "translation": lambda args, tell: translation.rows(
            args.subjects, args.translation, args.device, plan_of(args, tell)
        ),
        "lm-memory": lambda args, tell: lm_memory.rows(args.subjects, args.device, plan_of(args, tell)),
    }
    with tqdm(file=sys.stderr, unit="group", dynamic_ncols=True, leave=False) as bar:

        def tell(description: str, left: int) -> None:
            """Show in the progress bar that a group begins, and that `left` groups remain, including this one."""
            bar.update(bool(bar.desc))
            bar.total = bar.n + left
            bar.set_description(description)

        return [row for part in args.parts for row in parts[part](args, tell)]


def plan_of(args: Namespace, tell: Tell) -> Plan:
    """Return a plan with `--rounds` rounds.

    With `--quick` and without `--rounds`, return a plan with as many rounds as fit into `QUICK_SECONDS`.
    """
    if args.quick and not args.rounds:
        return Plan(LEAST, MOST, QUICK_SECONDS, step_of, tell)
    rounds = args.rounds or ROUNDS
    return Plan(rounds, rounds, math.inf, step_of, tell)


def _timed(pairs: Iterable[Pair], args: Namespace, tell: Tell) -> Iterator[Row]:
    return map(timed, measuring.measure(list(pairs), plan_of(args, tell)))


def _layers(args: Namespace, what: str = "layer", *, padded: bool = False) -> Iterator[Pair]:
    """Yield pairs of an encoding and the setting in which a layer or model with the encoding is measured.

    Encodings with the same setting follow each other and share a baseline.
    """
    for shape, (length, batch) in _sizes(args, what):
        for mode in ("train", "infer"):
            for subject in args.subjects:
                layers = shape.layers if what == "model" else 1
                where = (shape, length, batch, args.device, subject.causal(), padded, layers)
                yield subject, Setting(what, mode, *where)


def _decoding(args: Namespace) -> Iterator[Pair]:
    able = [subject for subject in args.subjects if subject.decodes()]
    for shape in args.shapes:
        for length in peers.DECODING_LENGTHS:
            for subject in able:
                yield subject, Setting("decode", "infer", shape, length, peers.DECODING_BATCH, args.device, causal=True)


def _decoding_beside_fairseq(args: Namespace, tell: Tell) -> list[Row]:
    """Measure decoding and, if fairseq is installed, fairseq's layer, whose cost is the upper limit of our targets."""
    pairs = list(_decoding(args))
    stock = [] if peers.FAIRSEQ.origin.missing() else [peers.FAIRSEQ]
    pairs += [(peer, setting) for peer in stock for setting in dict.fromkeys(setting for _, setting in pairs)]
    results = measuring.measure(pairs, replace(plan_of(args, tell), build=peers.step_of_peer))
    rows = [timed(result, peer=peers.label(result.subject)) for result in results]
    limits = {(row.shape, row.length): row.ratio for row in rows if row.peer and row.ratio is not None}
    return [_at_most(row, limits.get((row.shape, row.length))) for row in rows]


def _at_most(row: Row, limit: float | None) -> Row:
    """Return the row with the cost of fairseq's layer, `limit`, as its target, unless its own target is lower.

    DeBERTa keeps its target.
    """
    if limit is None or row.peer or row.encoding == "deberta" or row.length != targets.DECODING_LENGTH:
        return row
    return replace(row, target=min(limit, row.target or limit))


def _memory(args: Namespace, tell: Tell) -> Iterator[Row]:
    for shape, (length, batch) in _sizes(args):
        if length == MEMORY_LENGTH:
            pairs = [
                (subject, Setting("memory", "train", shape, length, batch, args.device, subject.causal()))
                for subject in args.subjects
            ]
            yield from memory.rows(pairs, tell)


def _sizes(args: Namespace, what: str = "layer") -> Iterator[tuple[Shape, tuple[int, int]]]:
    for shape in args.shapes:
        on_cpu = what == "model" and args.device.type == "cpu"
        for size in ON_CPU if on_cpu else shape.on(args.device):
            yield shape, size
