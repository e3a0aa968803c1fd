"""Run the data scripts in this process or in a shell, and read what they wrote.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "data-bin-scripts"
#: Folder of published corpora, for the tests that read real text; they are skipped without it.
DATA = Path(os.environ.get("POSENC_DATA") or "not given")


class Ended(NamedTuple):
    status: int
    out: str
    error: str


class Runs:
    """Run the `main` of a script in this process, with its output in a folder."""

    def __init__(self, main: Callable[[list[str]], int], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.main, self.folder, self.output, self._capsys = main, folder, folder / "out", capsys

    def run(self, *words: object, output: Path | None = None) -> Ended:
        try:
            status = self.main([*map(str, words), "--output", str(output or self.output)])
        except SystemExit as error:
            status = int(str(error.code))
        return Ended(status, *self._capsys.readouterr())


def script(name: str, *words: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run prepare_NAME.sh in a folder, with this environment."""
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    command = map(str, [SCRIPTS / f"prepare_{name}.sh", *words])
    return subprocess.run([*command], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def hashes(folder: Path) -> dict[str, str]:
    """Return the hashes of all files in a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def symbols(prefix: Path, dictionary: Path) -> list[list[str]]:
    """Return the symbols of each item of PREFIX.bin, as fairseq reads them."""
    from fairseq.data import Dictionary, data_utils  # takes seconds, and not all tests need it

    known = Dictionary.load(str(dictionary))
    dataset = data_utils.load_indexed_dataset(str(prefix), known, "mmap")
    return [[known[number] for number in dataset[index].tolist()] for index in range(len(dataset))]


def is_begun(output: Path) -> bool:
    """Return whether a run for this output was ended in its work, so that another run continues it."""
    return output.with_name(f"{output.name}.partial").joinpath("identity.json").exists()


def kill_often(
    start: Callable[[], subprocess.Popen[str]],
    output: Path,
    moments: tuple[float, float],
    seed: int,
    ended: Callable[[], None],
) -> None:
    """Kill a run three times at random moments of its work, each time in the run that continues the killed one.

    Args:
        start: Function that starts the run.
        output: Folder that the run writes.
        moments: Earliest and latest moment of an idle machine, in seconds after the start. Moments are counted from
            the first output of a run, and come earlier after a run that ended before.
        seed: Seed of the moments.
        ended: Function that checks the output of a run that ended before its moment; such a moment is repeated.
    """
    generator, hits, longest = random.Random(seed), 0, moments[1] - moments[0]
    while hits < 3:
        process = start()
        while process.poll() is None and not is_begun(output):
            time.sleep(0.01)
        try:
            process.wait(generator.uniform(0, longest))
        except subprocess.TimeoutExpired:
            process.kill()
        if process.wait() not in (0, -signal.SIGKILL):
            raise RuntimeError(f"the run failed before it was killed: {process.stdout and process.stdout.read()}")
        if output.exists():
            longest /= 2
            ended()
            shutil.rmtree(output)
            shutil.rmtree(output.with_name(f"{output.name}.partial"), ignore_errors=True)  # if killed in its removal
        else:
            hits += is_begun(output)
