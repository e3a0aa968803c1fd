"""Run the data scripts in this process, in forks or in a shell, and read what they wrote."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

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

    def write(self, name: str, content: Any) -> Path:
        """Write bytes, text or JSON, and compress it if the name ends with .gz."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str | bytes) else json.dumps(content, ensure_ascii=False)
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" and isinstance(text, str) else data)
        return path


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


def kill_until_it_ends(main: Callable[[list[str]], int], words: Sequence[object]) -> int:
    """Run a script in forks until one ends, and return how many were killed.

    The first fork is killed when it is about to give its first complete file its name, the second at its second file,
    and so on. Each fork continues what the killed ones have left.
    """
    context = get_context("fork")
    for number in count(1):
        process = context.Process(target=_killed_at, args=(number, main, [str(word) for word in words]))
        process.start()
        wait([process.sentinel])  # its workers have it, too, so they have also ended
        process.join()
        if process.exitcode != -signal.SIGKILL:
            assert process.exitcode == 0
            break
    return number - 1


def _killed_at(number: int, main: Callable[[list[str]], int], words: list[str]) -> None:
    own, files, replace = os.getpid(), get_context("fork").Value("i", 0), os.replace

    def replace_or_die(source: Path, target: Path) -> None:
        with files.get_lock():
            files.value += 1
            if files.value == number:
                os.kill(own, signal.SIGKILL)
                signal.pause()  # a worker ends together with its main process
        replace(source, target)

    os.replace = replace_or_die  # type: ignore[assignment]
    sys.exit(main(words))
