"""Train, save, decode and load data many times in one process, and look for what is left over.

Memory that grows from round to round, files that stay open, processes that do not end and temporary files that remain
are failures. POSENC_SOAK_ROUNDS changes the number of rounds.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("fairseq")

import fairseq_cli.generate
import fairseq_cli.interactive
from fairseq import options
from integration import support
from scipy import stats

ENCODINGS = ("sinusoidal", "learned", "shaw", "t5", "rope", "m4", "xl", "deberta")
WARM_UP = 3 * len(ENCODINGS)  # rounds; imports and caches of torch and fairseq grow in the first ones
ROUNDS = int(os.environ.get("POSENC_SOAK_ROUNDS", 8 * len(ENCODINGS)))
PATIENCE = 120  # seconds until a thread or process counts as left over
LEAK = 8.0  # KiB per round; a round builds each model, task and data set anew, and the smallest of them is larger


#: What the planted leaks leave.
LEFT: list[Any] = []


@dataclass(frozen=True)
class Left:
    """Say what the process holds after a round."""

    memory: float  # KiB of resident memory
    files: int  # open file descriptors
    children: int
    temporary: frozenset[str]  # files in the folder for temporary files

    @classmethod
    def now(cls, folder: Path, threads: Collection[threading.Thread] = ()) -> Left:
        """Look at the process when all threads but these, and all workers, have ended."""
        gc.collect()
        for thread in threading.enumerate():  # those that read batches end a moment after the last batch
            if thread not in threads:
                thread.join(PATIENCE)
        for child in multiprocessing.active_children():
            child.join(PATIENCE)
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # otherwise, free memory that malloc keeps would count
        process = psutil.Process()
        names = frozenset(path.name for path in folder.iterdir())
        return cls(process.memory_info().rss / 1024, process.num_fds(), len(process.children(recursive=True)), names)


def faults(rounds: list[Left]) -> list[str]:
    """Return what the rounds leave over, in words."""
    first, last = rounds[0], rounds[-1]
    fit = stats.linregress(range(len(rounds)), [left.memory for left in rounds])
    margin = stats.t.ppf(0.975, len(rounds) - 2) * fit.stderr
    kinds = {
        f"Memory grows by {fit.slope:.1f} KiB per round.": fit.slope - margin > LEAK,
        f"{last.files - first.files} more files are open than after the first round.": last.files > first.files,
        f"{last.children - first.children} child processes are left.": last.children > first.children,
        f"Temporary files are left: {sorted(last.temporary - first.temporary)}.": last.temporary > first.temporary,
    }
    return [text for text, wrong in kinds.items() if wrong]


def one_round(data: Path, encoding: str) -> None:
    """Train, continue from the checkpoint, decode, and load data with two workers."""
    folder = Path(tempfile.mkdtemp())
    words = ["--pos-enc", encoding, "--save-dir", folder, "--valid-subset", "valid"]
    words += ["--num-workers", "1", "--data-buffer-size", "10"]  # fairseq's defaults
    for updates in (4, 8):
        support.train(data, *words, "--max-update", updates, "--save-interval-updates", "2")
    decode = [data, "--user-dir", support.PLUGIN, "--path", folder / "checkpoint_last.pt", "--cpu", "--beam", 2]
    fairseq_cli.generate.main(support.parse(decode, options.get_generation_parser, arch="wav2vec2"))
    (folder / "lines.txt").write_text("w1 w2 w3\nw4 w5\n", encoding="utf-8")
    typed = [*decode, "--input", folder / "lines.txt", "--buffer-size", "2", "--batch-size", "2"]
    fairseq_cli.interactive.main(support.parse(typed, options.get_interactive_generation_parser, arch="wav2vec2"))
    _, task = support.built(data, "--pos-enc", "none")
    task.load_dataset("train")
    epochs = task.get_batch_iterator(task.dataset("train"), max_tokens=120, num_workers=2, data_buffer_size=4)
    assert sum(len(batch["id"]) for batch in epochs.next_epoch_itr()) == support.SIZES["train"]
    shutil.rmtree(folder)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_rounds_of_training_and_decoding_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, temporary = support.write_corpus(tmp_path / "data"), tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    rounds, threads = [], threading.enumerate()
    for number in range(WARM_UP + ROUNDS):
        one_round(data, ENCODINGS[number % len(ENCODINGS)])
        rounds += [Left.now(temporary, threads)] if number >= WARM_UP else []
    assert faults(rounds) == []


@pytest.mark.parametrize(
    ("step", "word"),
    [
        (lambda folder: LEFT.append(b"x" * 4_000_000), "Memory grows"),
        (lambda folder: LEFT.append((folder / "file").open("w")), "more files"),
        (lambda folder: tempfile.mkdtemp(dir=folder), "Temporary"),
    ],
)
def test_a_planted_leak_is_found(step: Callable[[Path], Any], word: str, tmp_path: Path) -> None:
    gc.freeze()  # otherwise, each round collects the garbage of all tests before, which takes seconds
    rounds = [(step(tmp_path), Left.now(tmp_path, threading.enumerate()))[1] for _ in range(12)]
    gc.unfreeze()
    LEFT.clear()
    assert any(word in fault for fault in faults(rounds))
