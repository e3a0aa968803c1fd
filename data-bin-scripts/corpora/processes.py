"""Run work in several processes, which end together with the run that started them."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from typing import Any, TypeVar

from .errors import CorpusError

Part = TypeVar("Part")
Result = TypeVar("Result")

_work: Callable[[Any], Any]


def mapped(work: Callable[[Part], Result], parts: Iterable[Part], workers: int) -> Iterator[Result]:
    """Yield the result of `work` for each part, in order, while at most 2 * `workers` parts wait in memory.

    Raises:
        CorpusError: A process was killed.
    """
    if workers == 1:
        yield from map(work, parts)
        return
    waiting: deque[Future[Result]] = deque()
    # A forked process inherits the imported modules and `work`, and starts at once. It needs no thread of this process.
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
    die_with_run()


def _call(part: Any) -> Any:
    return _work(part)


def die_with_run() -> None:
    """Watch the parent process and exit when it ends, so that a killed run leaves no process that goes on writing.

    Call this function in the child process.
    """
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    run = parent_process()
    if run is not None:
        connection.wait([run.sentinel])
        os._exit(1)
