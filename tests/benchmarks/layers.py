"""Measure what each encoding costs in a layer, relative to the same layer without positions.

    python tests/benchmarks/layers.py --quick                       the rows with targets, on this CPU (`make bench`)
    python tests/benchmarks/layers.py --encodings shaw 'm4[clip=64]' --parts layer peers
    python tests/benchmarks/layers.py --encodings linformer none --widths small --sizes 4096x1
    python tests/benchmarks/layers.py --device cuda --compile 12    all encodings at users' sizes, in bfloat16

The exit status is 1 if a ratio exceeds its target. With --output, each result is stored at once, and a run that was
stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # because this file is a script, too

import torch

from fairseq_posenc.core.quiet import warnings_only
from fairseq_posenc.encodings import specs
from tests.benchmarks import clock, peers, steps, targets
from tests.benchmarks.clock import Rounds
from tests.benchmarks.peers import Peer
from tests.benchmarks.results import Results, machine
from tests.benchmarks.steps import Setting, Subject

#: Widths and heads of layers: BERT-base and a smaller one.
WIDTHS = {"base": (768, 12), "small": (512, 8)}
#: Default lengths and batch sizes of layers, by the type of the device.
SIZES = {"cpu": ((128, 16), (512, 4)), "cuda": ((128, 64), (512, 32), (2048, 8))}
#: Decoding: the length of the cache, and 4 sentences with a beam of 4.
DECODING = (512, 16)
#: Rounds of a measurement. With --quick, as many as fit into QUICK_SECONDS, but at least LEAST.
ROUNDS, LEAST, QUICK_SECONDS = 11, 2, 11 * 60
#: Largest number of subjects that share a baseline. On a GPU, the graphs of other subjects would delay a subject.
GROUP = {"cpu": 8, "cuda": 1}
#: How often a row over its target is measured again.
AGAIN = 3
#: Unless both thresholds are raised, glibc maps new memory for every large temporary tensor. Raising them lowers the
#: cost of explicit attention at n = 512 from 2.3 to 1.2 times that of fused attention. glibc reads them at its start.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
KEYS = ("encoding", "what", "mode", "width", "length", "batch", "dropout", "dtype")
COLUMNS = ("encoding", "what", "mode", "length", "ratio", "spread", "target", "milliseconds", "MiB")


class Work(NamedTuple):
    """Hold a subject and the setting in which it is measured."""

    subject: Subject | Peer
    setting: Setting

    def row(self) -> dict[str, Any]:
        """Return the fields that describe the measurement."""
        own = self.setting
        sizes = {"width": own.dim, "length": own.length, "batch": own.batch}
        others = {"dropout": own.dropout, "dtype": str(own.dtype).removeprefix("torch.")}
        return {"encoding": str(self.subject), "what": own.what, "mode": own.mode, **sizes, **others}


@dataclass
class Times:
    """Hold the seconds of a subject and of its baseline in each round."""

    own: list[float]
    baseline: list[float]

    @property
    def ratios(self) -> list[float]:
        """Return the ratio of each round."""
        return [own / baseline for own, baseline in zip(self.own, self.baseline, strict=True)]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table or JSON, and return 1 if a target is missed."""
    args = _parsed(argv)
    _start_again_pinned(args)
    results = Results(args.output, "layers", machine(args.device), KEYS)
    work = [one for one in planned(args) if not results.has(one.row())]
    if args.compile:
        compile_first(work, args.compile)
    with warnings_only():  # fairseq sets the root logger to DEBUG, and torch.compile then logs every lock
        measure(work, args, results)
    table = results.table(COLUMNS)
    print(json.dumps(results.rows, indent=1) if args.json else table)
    missed = [row for row in results.rows if row["holds"] is False]
    for row in missed:
        text = "{encoding}, {what} {mode}, n = {length}: {ratio:.3f} ± {spread:.3f}, target {target}"
        print(f"above its target: {text.format(**row)}", file=sys.stderr)
    slower = list(slower_than_peers(results.rows))
    for words in slower:
        print(f"slower: {words}", file=sys.stderr)
    return int(bool(missed or slower))


def slower_than_peers(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each of our layers that is slower than that of another package, beyond the noise."""
    same = ("what", "mode", "width", "length", "batch", "dropout", "dtype")
    for peer in peers.installed():
        for theirs in (row for row in rows if row["encoding"] == str(peer)):
            for ours in (row for row in rows if row["encoding"] == peer.ours):
                noise = targets.NOISE + ours["spread"] + theirs["spread"]
                if all(ours[key] == theirs[key] for key in same) and ours["ratio"] > theirs["ratio"] + noise:
                    where = "{what} {mode}, n = {length}".format(**ours)
                    yield f"{peer.ours}, {where}: {ours['ratio']:.3f}, but {peer} takes {theirs['ratio']:.3f}"


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    about, _, examples = (__doc__ or "").partition("\n\n")
    command = argparse.ArgumentParser(
        description=about, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = command.add_argument
    add("--encodings", nargs="+", metavar="NAME", help="Encodings to measure, such as shaw or 'm4[clip=64]'.")
    add("--parts", nargs="+", choices=tuple(PARTS), default=["layer"], help="Parts to measure. Default: layer.")
    add("--device", choices=tuple(SIZES), default="cpu", help="CPU (float32) or GPU (bfloat16).")
    add("--dtype", choices=("float32", "bfloat16", "float16"), help="Default: as --device says.")
    add("--widths", nargs="+", choices=tuple(WIDTHS), default=["base"], help="Sizes of the layers. Default: base.")
    add("--sizes", nargs="+", type=_size, metavar="NxB", help="Lengths and batches. Default: 128x16 512x4 on a CPU.")
    add("--modes", nargs="+", choices=("train", "infer"), default=["train", "infer"], help="Default: both.")
    add("--dropout", type=float, default=0.0, metavar="P", help="Attention dropout in training. Default: 0.")
    add("--rounds", type=int, default=ROUNDS, metavar="N", help=f"Rounds of each measurement. Default: {ROUNDS}.")
    add("--quick", action="store_true", help="Measure only the layers with targets, within 11 minutes.")
    add("--compile", type=int, metavar="N", help="Compile in N processes before anything is measured.")
    add("--json", action="store_true", help="Print one JSON list of flat objects and nothing else.")
    add("--output", type=Path, metavar="DIR", help="Folder for layers.jsonl and layers.md.")
    args = command.parse_args(argv)
    if args.device == "cuda" and not torch.cuda.is_available():
        command.error("--device cuda: torch sees no GPU. Leave out the flag to measure on the CPU.")
    args.sizes = args.sizes or SIZES[args.device]
    with_targets = list(targets.subjects())
    names = args.encodings or (with_targets if args.quick else dict.fromkeys([*specs(), *with_targets]))
    try:
        args.subjects = [Subject.of(name) for name in names]
    except ValueError as error:
        command.error(str(error))
    args.parts = ["layer", "decode", "memory"] if args.quick else args.parts
    args.command = list(sys.argv[1:] if argv is None else argv)
    args.dtype = getattr(torch, args.dtype or ("float32" if args.device == "cpu" else "bfloat16"))
    args.device = torch.device(args.device)
    return args


def _size(text: str) -> tuple[int, int]:
    """Parse a length and a batch size such as `512x4`."""
    length, _, batch = text.partition("x")
    if not (length.isdigit() and batch.isdigit() and int(length) and int(batch)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a length and a batch size. Write, for example, 512x4.")
    return int(length), int(batch)


def _start_again_pinned(args: argparse.Namespace) -> None:
    """Restart this script with glibc's thresholds, unless they are set or have no effect."""
    missing = {name: value for name, value in ALLOCATOR.items() if not os.environ.get(name)}
    is_script = Path(sys.argv[0]).resolve() == Path(__file__).resolve()
    if missing and is_script and args.device.type == "cpu" and platform.libc_ver()[0] == "glibc":
        os.execve(sys.executable, [sys.executable, __file__, *args.command], {**os.environ, **missing})


def planned(args: argparse.Namespace) -> Iterator[Work]:
    """Yield what to measure. Subjects with the same setting follow each other."""
    for part in args.parts:
        for width in args.widths:
            setting = Setting("layer", "train", 0, 0, *WIDTHS[width], args.device, args.dtype)
            work: Iterator[Work] = PARTS[part](setting, args)
            yield from (one for one in work if not args.quick or targets.target_of(*one) is not None)


def _sizes(setting: Setting, args: argparse.Namespace) -> Iterator[Setting]:
    for length, batch in args.sizes:
        for mode in args.modes:
            dropout = args.dropout if mode == "train" else 0.0
            yield replace(setting, length=length, batch=batch, mode=mode, dropout=dropout)


def _layers(setting: Setting, args: argparse.Namespace) -> Iterator[Work]:
    for size in _sizes(setting, args):
        pairs = [Work(subject, replace(size, causal=subject.causal())) for subject in args.subjects]
        yield from sorted(pairs, key=lambda pair: pair.setting.causal)


def _decoding(setting: Setting, args: argparse.Namespace) -> Iterator[Work]:
    length, batch = DECODING
    size = replace(setting, what="decode", mode="infer", length=length, batch=batch, causal=True)
    for subject in args.subjects:
        if subject.works(causal=True) and "compress" not in subject.hooks():
            yield Work(subject, size)


def _memory(setting: Setting, args: argparse.Namespace) -> Iterator[Work]:
    for length, batch in args.sizes:
        size = replace(setting, what="memory", length=length, batch=batch)
        yield from (Work(subject, replace(size, causal=subject.causal())) for subject in args.subjects)


def _peers(setting: Setting, args: argparse.Namespace) -> Iterator[Work]:
    """Yield the layers of other packages, and our layers with the same encodings."""
    found = peers.installed()
    for size in _sizes(setting, args):
        for subject in dict.fromkeys([*(Subject.of(peer.ours) for peer in found), *found]):
            yield Work(subject, size)


PARTS = {"layer": _layers, "decode": _decoding, "memory": _memory, "peers": _peers}


def step_of(work: Work) -> clock.Step:
    """Return the step to time."""
    module = peers if isinstance(work.subject, Peer) else steps
    return module.step_of(work.subject, work.setting)


def compile_first(work: Sequence[Work], processes: int) -> None:
    """Run each step once in one of several processes, which store what they compile in torch's cache."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for error in pool.map(_run_once, work):
            if error:
                print(error, file=sys.stderr)


def _run_once(work: Work) -> str:
    torch._dynamo.reset()
    try:
        step_of(work)()
    except Exception as error:  # noqa: BLE001 - the measurement stops with it
        return f"{work.subject}, {work.setting}: {error}"
    return ""


def measure(work: Sequence[Work], args: argparse.Namespace, results: Results) -> None:
    """Measure all groups, and rows over their targets again, up to three times."""
    until, groups = clock.now() + (QUICK_SECONDS if args.quick else math.inf), list(_groups(work))
    for number, group in enumerate(groups):
        print(f"{group[0].setting}: {', '.join(str(one.subject) for one in group)}", file=sys.stderr, flush=True)
        left = sum(map(_steps_of, groups[number:]))
        share = (until - clock.now()) * _steps_of(group) / left  # more rounds for one group leave the others theirs
        rounds = Rounds(LEAST if args.quick else args.rounds, args.rounds, clock.now() + 0.6 * share)
        for one, times in zip(group, _measured(group, rounds, clock.now() + share), strict=True):
            results.add(_row(one, times))


def _groups(work: Iterable[Work]) -> Iterator[list[Work]]:
    together: dict[Setting, list[Work]] = {}
    for one in work:
        together.setdefault(one.setting, []).append(one)
    for setting, members in together.items():
        size = 1 if setting.what == "memory" else GROUP[setting.device.type]
        yield from (members[i : i + size] for i in range(0, len(members), size))


def _steps_of(group: list[Work]) -> int:
    """Return how many steps a round of a group times; memory is measured in one step."""
    return len(group) + (group[0].setting.what != "memory")


def _measured(group: list[Work], rounds: Rounds, until: float) -> list[Times | int]:
    """Return the times of a group or, for memory, the bytes."""
    torch._dynamo.reset()
    if group[0].setting.what == "memory":
        return [_bytes(group[0])]
    times = _timed(group, rounds)
    for attempt in range(2, AGAIN + 2):
        over = [i for i, one in enumerate(group) if _over(one, times[i])]
        if not over or clock.now() > until:
            break
        more = _timed([group[i] for i in over], replace(rounds, most=attempt * rounds.most, until=until))
        for i, extra in zip(over, more, strict=True):
            times[i] = Times(times[i].own + extra.own, times[i].baseline + extra.baseline)
    return list(times)


def _timed(group: Sequence[Work], rounds: Rounds) -> list[Times]:
    setting = group[0].setting
    baseline = steps.step_of(None, setting)
    seconds = clock.interleaved([baseline, *map(step_of, group)], rounds, setting.device)
    first, *others = zip(*seconds, strict=True)
    return [Times(list(own), list(first)) for own in others]


def _bytes(work: Work) -> int:
    """Return the peak memory of the attention core, after one run that compiles and fills caches."""
    step = step_of(work)
    step()
    return steps.peak(step, work.setting.device)


def _over(work: Work, times: Times) -> bool:
    target = None if isinstance(work.subject, Peer) else targets.target_of(*work)
    return target is not None and statistics.median(times.ratios) > target + targets.NOISE


def _row(work: Work, measured: Times | int) -> dict[str, Any]:
    """Return the row of a measurement. Memory is relative to the explicit core without positions in float32."""
    setting = work.setting
    target = None if isinstance(work.subject, Peer) else targets.target_of(*work)
    if isinstance(measured, int):
        plain = _bytes(Work(Subject("none"), setting))
        ratio, spread, noise = measured / plain, 0.0, 0.0
        sizes = {"MiB": measured / setting.batch / 2**20, "milliseconds": None}
    else:
        ratio, spread, noise = statistics.median(measured.ratios), clock.spread(measured.ratios), targets.NOISE
        tokens = steps.TOKENS if setting.what == "decode" else 1
        sizes = {"MiB": None, "milliseconds": 1e3 * statistics.median(measured.own) / tokens}
    holds = None if target is None else ratio <= target + noise
    return {**work.row(), "ratio": ratio, "spread": spread, "target": target, "holds": holds, **sizes}


if __name__ == "__main__":
    sys.exit(main())
