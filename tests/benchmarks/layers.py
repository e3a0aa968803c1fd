"""Measure what each encoding costs in a layer, relative to the same layer without positions.

    python tests/benchmarks/layers.py --quick                       the rows with targets, on this CPU (`make bench`)
    python tests/benchmarks/layers.py --encodings shaw 'm4[clip=64]' --parts layer peers
    python tests/benchmarks/layers.py --encodings linformer none --width small --sizes 4096x1
    python tests/benchmarks/layers.py --device cuda --compile 12    all encodings at users' sizes, in bfloat16

The exit status is 1 if a ratio exceeds its target. With --output, each result is stored at once, and a run that was
stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # because this file is a script, too

import torch

from fairseq_posenc.core.quiet import warnings_only
from fairseq_posenc.encodings import specs
from tests.benchmarks import peers, steps
from tests.benchmarks.peers import Peer
from tests.benchmarks.results import Results, parsed, parser
from tests.benchmarks.steps import Setting, Step

#: Widths and heads of layers: BERT-base and a smaller one.
WIDTHS = {"base": (768, 12), "small": (512, 8)}
#: Default lengths and batch sizes of layers, by the type of the device.
SIZES = {"cpu": ((128, 16), (512, 4)), "cuda": ((128, 64), (512, 32), (2048, 8))}
#: Decoding: the length of the cache, and 4 sentences with a beam of 4.
DECODING = (512, 16)
#: Rounds of a measurement. With --quick, as many as fit into QUICK_SECONDS, but at least LEAST.
ROUNDS, LEAST, QUICK_SECONDS = 11, 2, 11 * 60
#: Largest number of encodings that share a baseline. On a GPU, the graphs of others would delay an encoding.
GROUP = {"cpu": 8, "cuda": 1}
#: Steps that are timed together. A GPU works through a queue of operations, so that the time of launching them hardly
#: counts in training. With single steps, it would.
TOGETHER = {"cpu": 1, "cuda": 8}
#: How often a row over its target is measured again.
AGAIN = 3
#: Unless both thresholds are raised, glibc maps new memory for every large temporary tensor. Raising them lowers the
#: cost of explicit attention at n = 512 from 2.3 to 1.2 times that of fused attention. glibc reads them at its start.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
SAME = ("what", "mode", "width", "length", "batch", "dtype")
COLUMNS = ("encoding", "what", "mode", "length", "ratio", "spread", "target", "milliseconds", "MiB")
PARTS = ("layer", "decode", "memory", "peers")
TARGETS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("targets.toml").read_text(encoding="utf-8"))
#: The targets of each encoding that has some.
FAMILIES = {label: family for family in TARGETS["families"].values() for label in family["members"].split()}
#: Tests replace this clock.
now = time.perf_counter

#: The seconds of an encoding and of its baseline in each round.
Times = list[tuple[float, float]]


class Work(NamedTuple):
    """Hold what is measured, an encoding or another package's layer, and the setting in which it is measured."""

    subject: str | Peer
    setting: Setting

    def row(self) -> dict[str, Any]:
        """Return the fields that describe the measurement."""
        own = self.setting
        sizes = {"width": own.dim, "length": own.length, "batch": own.batch}
        dtype = str(own.dtype).removeprefix("torch.")
        return {"encoding": str(self.subject), "what": own.what, "mode": own.mode, **sizes, "dtype": dtype}

    def step(self) -> Step:
        """Return the step to measure."""
        if isinstance(self.subject, Peer):
            return peers.step_of(self.subject, self.setting)
        return steps.step_of(self.subject, self.setting)

    @property
    def target(self) -> float | None:
        """Return the largest ratio that meets the target of this measurement, or None if it has no target.

        There are targets for layers of the width 768. An encoding that is not listed may be content-free.
        """
        own, setting = FAMILIES.get(str(self.subject)), self.setting
        if isinstance(self.subject, Peer) or setting.dim != 768:
            return None
        if own is None and steps.hooks(self.subject) <= {"embed", "bias"}:
            own = TARGETS["families"]["content-free"]
        targets = (own or {}).get(setting.device.type, {})
        if setting.what != "layer":
            return targets.get(setting.what) if setting.length == 512 else None
        return targets.get(f"layer-{setting.length}", {}).get(setting.mode)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table or JSON, and return 1 if a target is missed."""
    args = _parsed(argv)
    _start_again_pinned(args)
    results = Results(args.output, "layers", args.device, ("encoding", *SAME))
    work = [one for one in planned(args) if not results.has(one.row())]
    if args.compile:
        with ProcessPoolExecutor(args.compile, mp_context=get_context("spawn")) as pool:
            list(pool.map(_compiled, work))
    with warnings_only():  # fairseq sets the root logger to DEBUG, and torch.compile then logs every lock
        measure(work, args, results)
    results.show(COLUMNS, args.json)
    text = "above its target: {encoding}, {what} {mode}, n = {length}: {ratio:.3f} ± {spread:.3f}, target {target}"
    problems = [text.format(**row) for row in results.rows if row["holds"] is False]
    problems += [f"slower: {words}" for words in slower_than_peers(results.rows)]
    for words in problems:
        print(words, file=sys.stderr)
    return int(bool(problems))


def slower_than_peers(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each of our layers that is slower than that of another package, beyond the noise."""
    for peer in peers.installed():
        for theirs in (row for row in rows if row["encoding"] == str(peer)):
            for ours in (row for row in rows if row["encoding"] == peer.ours):
                noise = TARGETS["noise"] + ours["spread"] + theirs["spread"]
                if all(ours[key] == theirs[key] for key in SAME) and ours["ratio"] > theirs["ratio"] + noise:
                    where = "{what} {mode}, n = {length}".format(**ours)
                    yield f"{peer.ours}, {where}: {ours['ratio']:.3f}, but {peer} takes {theirs['ratio']:.3f}"


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    command = parser(__doc__)
    add = command.add_argument
    add("--encodings", nargs="+", metavar="NAME", help="Encodings to measure, such as shaw or 'm4[clip=64]'.")
    add("--parts", nargs="+", choices=PARTS, default=["layer"], help="Parts to measure. Default: layer.")
    add("--width", choices=tuple(WIDTHS), default="base", help="Size of the layers. Default: base.")
    default = "Default: 128x16 512x4 on a CPU."
    add("--sizes", nargs="+", type=length_and_batch, metavar="NxB", help=f"Lengths and batch sizes. {default}")
    add("--modes", nargs="+", choices=("train", "infer"), default=["train", "infer"], help="Default: both.")
    add("--rounds", type=int, default=ROUNDS, metavar="N", help=f"Rounds of each measurement. Default: {ROUNDS}.")
    add("--quick", action="store_true", help="Measure only the layers with targets, within 11 minutes.")
    args = parsed(command, argv)
    names = args.encodings or (FAMILIES if args.quick else dict.fromkeys([*specs(), *FAMILIES]))
    try:
        args.encodings = [steps.checked(name) for name in names]
    except ValueError as error:
        command.error(str(error))
    args.parts = ["memory", "layer", "decode"] if args.quick else args.parts
    args.command = list(sys.argv[1:] if argv is None else argv)
    return args


def length_and_batch(text: str) -> tuple[int, int]:
    """Parse a length and a batch size such as `512x4`."""
    length, batch = text.split("x")
    return int(length), int(batch)


def _start_again_pinned(args: argparse.Namespace) -> None:
    """Restart this script with glibc's thresholds, unless they are set or have no effect."""
    missing = {name: value for name, value in ALLOCATOR.items() if not os.environ.get(name)}
    is_script = Path(sys.argv[0]).resolve() == Path(__file__).resolve()
    if missing and is_script and args.device == "cpu" and platform.libc_ver()[0] == "glibc":
        os.execve(sys.executable, [sys.executable, __file__, *args.command], {**os.environ, **missing})


def planned(args: argparse.Namespace) -> Iterator[Work]:
    """Yield what to measure."""
    for part in args.parts:
        others: list[Peer] = peers.installed() if part == "peers" else []
        labels = dict.fromkeys(steps.checked(peer.ours) for peer in others) if others else args.encodings
        for setting in _settings(part, args):
            for subject in (*labels, *others):
                causal = part == "decode" or (isinstance(subject, str) and not steps.works(subject, causal=False))
                one = Work(subject, replace(setting, causal=causal))
                works = isinstance(subject, Peer) or steps.works(subject, causal=causal)
                if works and (not args.quick or one.target is not None):
                    yield one


def _settings(part: str, args: argparse.Namespace) -> Iterator[Setting]:
    """Yield the settings of a part. Decoding has one size, and memory is that of training."""
    what = "layer" if part == "peers" else part
    modes = {"decode": ["infer"], "memory": ["train"]}.get(part, args.modes)
    dtype = torch.float32 if args.device == "cpu" else torch.bfloat16
    for length, batch in [DECODING] if part == "decode" else args.sizes or SIZES[args.device]:
        for mode in modes:
            yield Setting(what, mode, length, batch, *WIDTHS[args.width], torch.device(args.device), dtype)


def _compiled(work: Work) -> None:
    """Run a step once in a process of its own, which stores what it compiles in torch's cache."""
    torch._dynamo.reset()
    work.step()()


def measure(work: Sequence[Work], args: argparse.Namespace, results: Results) -> None:
    """Measure all groups of works that share a setting and a baseline, each in its share of the time."""
    together: dict[Setting, list[Work]] = {}
    for one in work:
        together.setdefault(one.setting, []).append(one)
    groups = []
    for setting, members in together.items():
        size = 1 if setting.what == "memory" else GROUP[args.device]
        groups += [members[i : i + size] for i in range(0, len(members), size)]
    until, least = (now() + QUICK_SECONDS, LEAST) if args.quick else (math.inf, args.rounds)
    for number, group in enumerate(groups):
        print(f"{group[0].setting}: {', '.join(str(one.subject) for one in group)}", file=sys.stderr, flush=True)
        torch._dynamo.reset()
        if group[0].setting.what == "memory":
            results.add(_memory(group[0]))
            continue
        share = (until - now()) / (len(groups) - number)
        for one, times in zip(group, _measured(group, least, args.rounds, share), strict=True):
            results.add(_row(one, times))


def _measured(group: Sequence[Work], least: int, most: int, share: float) -> list[Times]:
    """Return the times of a group. While there is time, works over their targets are measured again."""
    start = now()
    times = timed(group, least, most, start + 0.6 * share)
    for attempt in range(2, AGAIN + 2):
        over = [i for i, one in enumerate(group) if one.target and _ratio(times[i]) > one.target + TARGETS["noise"]]
        if not over or now() > start + share:
            break
        more = timed([group[i] for i in over], least, attempt * most, start + share)
        for i, extra in zip(over, more, strict=True):
            times[i] += extra
    return times


def timed(group: Sequence[Work], least: int, most: int, until: float) -> list[Times]:
    """Return the seconds of each work and of their baseline in each round.

    A round times each step once, so that other load on the machine slows all of them alike and hardly changes ratios.
    Each round begins with a different step, and after `least` rounds, none begins later than `until`. Before the first
    round, every step runs once without being timed, to compile and to fill its caches.
    """
    setting = group[0].setting
    all_steps = [steps.step_of(None, setting), *(one.step() for one in group)]
    for step in all_steps:
        _seconds(step, setting.device)
    times: list[Times] = [[] for _ in group]
    for done in range(most):
        if done >= least and now() > until:
            break
        order = [(i + done) % len(all_steps) for i in range(len(all_steps))]
        seconds = {i: _seconds(all_steps[i], setting.device) for i in order}
        for i, own in enumerate(times, start=1):
            own.append((seconds[i], seconds[0]))
    return times


def _seconds(step: Step, device: torch.device) -> float:
    """Return the mean duration of a step in seconds."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    start = now()
    for _ in range(TOGETHER[device.type]):
        step()
    wait()
    return (now() - start) / TOGETHER[device.type]


def _ratio(times: Times) -> float:
    return statistics.median(own / baseline for own, baseline in times)


def _row(work: Work, times: Times) -> dict[str, Any]:
    """Return the row of measured times. Its spread is half the interquartile range of the ratios."""
    ratios = torch.tensor([own / baseline for own, baseline in times])
    low, high = ratios.quantile(torch.tensor([0.25, 0.75])).tolist()
    tokens = steps.TOKENS if work.setting.what == "decode" else 1
    milliseconds = 1e3 * statistics.median(own for own, _ in times) / tokens
    return _judged(work, _ratio(times), TARGETS["noise"], spread=(high - low) / 2, milliseconds=milliseconds)


def _memory(work: Work) -> dict[str, Any]:
    """Return the row of the peak memory of the attention core, relative to the explicit core without positions."""

    def peak(one: Work) -> int:
        step = one.step()
        step()  # compiles and fills caches
        return steps.peak(step, one.setting.device)

    own, plain = peak(work), peak(Work("none", work.setting))
    return _judged(work, own / plain, 0.0, spread=0.0, MiB=own / work.setting.batch / 2**20)


def _judged(work: Work, ratio: float, noise: float, **facts: Any) -> dict[str, Any]:
    holds = None if work.target is None else ratio <= work.target + noise
    return {**work.row(), "ratio": ratio, "target": work.target, "holds": holds, **facts}


if __name__ == "__main__":
    sys.exit(main())
