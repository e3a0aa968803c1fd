"""Train, save, decode and load data for 20 minutes in one process, and look for what is left over (`make soak`).

Each round trains a tiny translation model with another encoding, continues it from its checkpoint, decodes with
fairseq-generate and fairseq-interactive, and reads the corpus with two worker processes. Memory that grows from round
to round, files that stay open, processes that do not end and temporary files that remain are reported.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import io
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from scipy import stats

from tests.faults import table

MINUTES = 20.0
ENCODINGS = ("sinusoidal", "learned", "shaw", "t5", "rope", "m4", "xl", "deberta")
WARM_UP = 3 * len(ENCODINGS)  # rounds; imports and caches of torch and fairseq grow in the first ones
LEAK = 8.0  # KiB per round; a round builds each model, task and data set anew, and the smallest of them is larger
SECONDS_TO_END = 10  # that the threads and workers of a data loader may take after the last batch
NAME = "soak: rounds of training, checkpoints, decoding and loading in one process"


@dataclass(frozen=True)
class Left:
    """Say what the process holds after a round."""

    memory: float  # KiB of resident memory
    files: int  # open file descriptors
    children: int
    temporary: tuple[str, ...]  # files in the folder for temporary files

    @classmethod
    def now(cls, folder: Path) -> Left:
        settle()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # otherwise, free memory that malloc keeps would count
        process = psutil.Process()
        names = tuple(sorted(path.name for path in folder.iterdir()))
        return cls(process.memory_info().rss / 1024, process.num_fds(), len(process.children(recursive=True)), names)


def settle() -> None:
    """Wait for the threads that read batches and for their workers, which end a moment after the last batch."""
    end = time.monotonic() + SECONDS_TO_END
    gc.collect()
    while time.monotonic() < end and (threading.active_count() > 1 or multiprocessing.active_children()):
        time.sleep(0.01)


@dataclass(frozen=True)
class Slope:
    """Say by how many KiB memory grows per round, and the 95 % confidence interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, rounds: list[Left]) -> Slope:
        fit = stats.linregress(range(len(rounds)), [left.memory for left in rounds])
        margin = float(stats.t.ppf(0.975, len(rounds) - 2) * fit.stderr)
        return cls(float(fit.slope), float(fit.slope) - margin, float(fit.slope) + margin)


def soak(step: Callable[[int], object], seconds: float, warm_up: int, folder: Path) -> list[Left]:
    """Repeat a step, and return what each repetition after the warm-up leaves; at least three of them."""
    rounds: list[Left] = []
    end = time.monotonic() + seconds
    number = 0
    while len(rounds) < 3 or time.monotonic() < end:
        step(number)
        if number >= warm_up:
            rounds.append(Left.now(folder))
        number += 1
    return rounds


def faults(rounds: list[Left]) -> list[str]:
    """Return what the rounds leave over, in words; the list is empty if they leave nothing."""
    first, last, slope = rounds[0], rounds[-1], Slope.of(rounds)
    found = []
    if slope.low > LEAK:
        found.append(f"Memory grows by {slope.value:.1f} KiB per round.")
    if last.files > first.files:
        found.append(f"{last.files - first.files} more files are open than after the warm-up.")
    if last.children > first.children:
        found.append(f"{last.children - first.children} child processes are left.")
    if kept := new_files(rounds):
        found.append(f"Temporary files are left: {', '.join(kept[:5])}.")
    return found


def new_files(rounds: list[Left]) -> list[str]:
    """Return the temporary files that the warm-up did not leave; torch keeps a folder for compiled code."""
    return sorted(set(rounds[-1].temporary) - set(rounds[0].temporary))


# -- one round ----------------------------------------------------------------------------------------------


def one_round(number: int, data: Path) -> None:
    """Train, continue, decode and load with one of the encodings."""
    import fairseq_cli.generate
    import fairseq_cli.interactive
    from fairseq import options
    from integration import support

    folder = Path(tempfile.mkdtemp())
    encoding = ENCODINGS[number % len(ENCODINGS)]
    words = ["--pos-enc", encoding, "--save-dir", folder, "--valid-subset", "valid"]
    words += ["--num-workers", "1", "--data-buffer-size", "10"]  # fairseq's defaults
    for updates in (4, 8):  # the second training continues from checkpoint_last.pt
        support.train(data, *words, "--max-update", updates, "--save-interval-updates", "2")
    checkpoint = folder / "checkpoint_last.pt"
    assert (folder / "checkpoint_1_8.pt").exists(), sorted(folder.iterdir())
    decode = [data, "--user-dir", support.PLUGIN, "--path", checkpoint, "--cpu", "--beam", 2, "--max-len-b", 12]
    fairseq_cli.generate.main(support.parse(decode, options.get_generation_parser, arch="wav2vec2"))
    lines = folder / "lines.txt"
    lines.write_text("w1 w2 w3\nw4 w5\n", encoding="utf-8")
    typed = [*decode, "--input", lines, "--buffer-size", "2", "--batch-size", "2"]
    fairseq_cli.interactive.main(support.parse(typed, options.get_interactive_generation_parser, arch="wav2vec2"))
    load(data)
    shutil.rmtree(folder)


def load(data: Path) -> None:
    """Read the training set twice, with two worker processes and a buffer."""
    from integration import support

    _, task = support.built(data, "--pos-enc", "none")
    task.load_dataset("train")
    batches = task.get_batch_iterator(task.dataset("train"), max_tokens=120, num_workers=2, data_buffer_size=4)
    for _ in range(2):
        assert sum(len(batch["id"]) for batch in batches.next_epoch_itr()) == support.SIZES["train"]


def lines(rounds: list[Left], minutes: float) -> str:
    """Return the part of docs/reliability.md about the rounds."""
    slope, last = Slope.of(rounds), rounds[-1]
    return f"""One process for {minutes:g} minutes

`make soak` trains, saves, continues, decodes and loads data in one process for {minutes:g} minutes. The first {WARM_UP}
rounds are a warm-up and do not count. The table shows the results of the {len(rounds):,} rounds after the warm-up.

| what | result |
|---|---|
| growth of resident memory per round (95 % interval) | {slope.value:.2f} KiB ({slope.low:.2f} to {slope.high:.2f}) |
| resident memory after the last round | {last.memory / 1024:.0f} MiB |
| open files, more than after the warm-up | {last.files - rounds[0].files} |
| child processes left | {last.children} |
| temporary files left | {len(new_files(rounds))} |
"""


def main() -> int:
    """Repeat the rounds, and return 1 if they leave something over."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N", help="Minutes that the rounds take.")
    minutes = parser.parse_args().minutes
    started = time.monotonic()
    if table.done(NAME):
        return table.show([NAME], started)
    with tempfile.TemporaryDirectory() as outer:
        data, temporary = Path(outer) / "data", Path(outer) / "temporary"
        temporary.mkdir()
        tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
        from integration import support

        support.write_corpus(data)
        logging.disable(logging.CRITICAL)

        def step(number: int) -> None:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                one_round(number, data)
            print(f"round {number + 1}: {psutil.Process().memory_info().rss / 1048576:.1f} MiB", flush=True)

        rounds = soak(step, 60 * minutes, WARM_UP, temporary)
    for number in (0, -1):
        print(rounds[number], flush=True)
    found = faults(rounds)
    table.add("soak", lines(rounds, minutes))
    if found:
        print("\n".join(found), file=sys.stderr)
    table.record(NAME, len(rounds), 0 if found else len(rounds))
    return table.show([NAME], started)


if __name__ == "__main__":
    sys.exit(main())
