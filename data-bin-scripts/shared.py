"""Provide what all data scripts share: errors, worker processes, and output folders that a killed run continues."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

# These files of the package import the standard library only, so that `--help` answers at once.
from fairseq_posenc.core.locking import locked  # noqa: E402
from fairseq_posenc.core.reading import NotTextError, colon_problem, is_utf16, read_lines, read_utf8  # noqa: E402
from fairseq_posenc.core.reading import utf16_problem as utf16_problem  # noqa: E402
from fairseq_posenc.core.refusal import RefusedError  # noqa: E402
from fairseq_posenc.core.words import nearest, suggestion, visible, vocabulary_problem  # noqa: E402
from fairseq_posenc.core.writing import named_when_full, whole, whole_folder, write_whole  # noqa: E402

__all__ = ["NotTextError", "colon_problem", "is_utf16", "locked", "named_when_full", "nearest", "read_lines"]
__all__ += ["RefusedError", "read_utf8", "suggestion", "visible", "vocabulary_problem"]
__all__ += ["whole", "whole_folder", "write_whole"]

RECORD, _IDENTITY = "corpus.json", "identity.json"
Part = TypeVar("Part")
Result = TypeVar("Result")
_work: Callable[[Any], Any]


class CorpusError(RefusedError):
    """Report an error in the user's data or options; the message names the file, the line and what to do."""

    @classmethod
    def at(cls, path: Path, line: int, what: str) -> CorpusError:
        """Return an error that names a line of a file; lines count from 1."""
        return cls(f"{path}:{line}: {what}")


def digest(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def mapped(work: Callable[[Part], Result], parts: Iterable[Part], workers: int) -> Iterator[Result]:
    """Yield the result of `work` for each part, in order, while at most 2 * `workers` parts wait in memory.

    Raises:
        CorpusError: A process was killed.
    """
    if workers == 1:
        yield from map(work, parts)
        return
    waiting: deque[Future[Result]] = deque()
    # A forked process inherits the imported modules and `work`, and starts at once.
    with ProcessPoolExecutor(workers, get_context("fork"), _start, (work,)) as pool:
        try:
            for part in parts:
                waiting.append(pool.submit(_call, part))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            for future in waiting:
                yield future.result()
        except BrokenProcessPool:
            what = "a process was killed, perhaps for lack of memory. Run the command again with fewer workers."
            raise CorpusError(f"--workers {workers}: {what}") from None
        finally:
            pool.shutdown(cancel_futures=True)


def _start(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the main process, however it ends


def _call(part: Any) -> Any:
    return _work(part)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, or an empty dict if there is no such file.

    Raises:
        CorpusError: The file is damaged.
    """
    try:
        content = json.loads(read_utf8(path)) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path} is not valid JSON ({error}). Fetch or write the file again.") from None
    if not isinstance(content, dict):
        raise CorpusError(f"{path} is not a JSON object. Fetch or write the file again.")
    return content


def make(output: Path, identity: dict[str, Any], work: Callable[[Path], Path]) -> bool:
    """Write a folder in DIR.partial, which a later run with the same identity continues, and rename it at the end.

    Args:
        identity: The options, files and versions that determine the output; corpus.json in the output contains them.
        work: Function that fills DIR.partial and returns the subfolder that becomes the output.
    Returns:
        True if the output was written, False if it was already complete.
    Raises:
        CorpusError: The path exists and holds other output, another run is writing it, or `work` failed.
    """
    identity = json.loads(json.dumps(identity))  # as it will be read: tuples become lists
    if output.exists():
        if read_json(output / RECORD).get("identity") == identity:
            print(f"{output} is already complete", flush=True)
            return False
        raise CorpusError(
            f"{output} exists, but was not made from this text with these options. Move it, or choose another --output."
        )
    folder = output.with_name(f"{output.name}.partial")
    if folder.exists() and not (folder / "lock").exists():
        raise CorpusError(f"{folder} exists, and this program did not write it. Move it.")
    folder.mkdir(parents=True, exist_ok=True)
    busy = f"{folder} is in use by another run. Wait until the other run ends, or choose another --output."
    with locked(folder / "lock", 0, CorpusError(busy)), named_when_full(folder):
        _begin(folder, identity)
        os.replace(work(folder), output)
        shutil.rmtree(folder)
    return True


def _begin(folder: Path, identity: dict[str, Any]) -> None:
    """Keep the files of an interrupted run with the same identity; remove those of any other run."""
    if (earlier := read_json(folder / _IDENTITY)) == identity:
        print(f"{folder}: continuing the interrupted run", flush=True)
        return
    if earlier:
        print(f"{folder}: starting anew, because the text, the options or the libraries have changed", flush=True)
    for path in folder.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_whole(folder / _IDENTITY, json.dumps(identity))
