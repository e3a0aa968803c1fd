"""Measure how time and memory grow with the length: fit the exponent of a power law to the measured values.

The layer has width 256 and 4 heads; the batch is one sequence. At short lengths, the parts that are linear in n
(projections, FFN) take a large share of the time. Therefore the measured exponents of time are smaller than the
theoretical exponents for large n.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from . import memory
from .measure import Measured, Plan, measure
from .rows import Row, timed
from .settings import Setting, Shape, Subject

LENGTHS = (128, 256, 512, 1024, 2048, 4096)
_ONE = tuple((length, 1) for length in LENGTHS)
SHAPE = Shape("scaling", 256, 4, _ONE, _ONE)
#: Largest memory of the core in bytes. Lengths that would probably need more are left out.
MOST = 3 * 2**30


def exponent(lengths: Sequence[int], values: Sequence[float]) -> float | None:
    """Return the slope of a line fitted to log(value) over log(length); None for fewer than two lengths."""
    if len(lengths) < 2:
        return None
    return statistics.linear_regression([*map(math.log, lengths)], [*map(math.log, values)]).slope


def rows(subjects: Sequence[Subject], device: torch.device, plan: Plan) -> Iterator[Row]:
    """Yield a row for each encoding, length and mode, then the rows with the exponents."""
    measured_rows: list[Row] = []
    fits = list(subjects)
    for length, batch in SHAPE.on(device):
        bytes_of = {subject: _memory(subject, length, batch, device, plan) for subject in fits}
        pairs = [
            (subject, Setting("layer", mode, SHAPE, length, batch, device, subject.causal()))
            for mode in ("train", "infer")
            for subject in fits
        ]
        measured_rows += [_row(result, bytes_of[result.subject]) for result in measure(pairs, plan)]
        fits = [subject for subject in fits if 4 * bytes_of[subject] <= MOST]  # twice the length, four times the memory
    yield from measured_rows
    yield from _exponents(measured_rows)


def _memory(subject: Subject, length: int, batch: int, device: torch.device, plan: Plan) -> int:
    setting = Setting("memory", "train", SHAPE, length, batch, device, subject.causal())
    plan.tell(f"{setting}: {subject}", 1)
    return memory.measured(subject, setting)


def _row(result: Measured, counted: int) -> Row:
    mib = counted / result.setting.batch / 2**20 if result.setting.mode == "train" else None
    return replace(timed(result), what="length", mib=None if mib is None else round(mib, 3))


def _exponents(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows with the exponents of the time in training and inference, and of the memory in training."""
    series: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        series[row.encoding, row.options, row.mode].append(row)
    for members in series.values():
        lengths = [row.length for row in members]
        blank = replace(
            members[-1], what="exponent", first=lengths[0], ratio=None, spread=None, milliseconds=None, mib=None
        )
        yield replace(blank, exponent=exponent(lengths, [row.milliseconds or 0.0 for row in members]))
        if members[0].mode == "train":
            yield replace(blank, mode="memory", exponent=exponent(lengths, [row.mib or 0.0 for row in members]))
