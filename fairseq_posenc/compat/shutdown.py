"""Exit code 134 after 'done training': a daemon thread that outlives the interpreter (data/iterators.py:661).

fairseq reads batches ahead in a daemon thread. When training stops inside an epoch, that thread is still
there when Python finalises, which ends it inside a C++ frame of torch: `std::terminate`. Here the thread
can be stopped: it is when its iterator is dropped, and is waited for before Python finalises.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing.util  # noqa: F401  (its exit handler must be registered before ours)
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any

from .patching import replace, say_once

logger = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds for the batch that the thread is in the middle of; a data loader rarely needs more
_running: weakref.WeakSet[Any] = weakref.WeakSet()


class _Stopped(BaseException):
    """Ends the thread; no Exception, which fairseq would hand on through the queue."""


class _StoppableQueue:
    """The queue as the reading thread sees it: `put` ends the thread once it was told to stop."""

    def __init__(self, batches: queue.Queue[Any]) -> None:
        self.batches = batches
        self.stopped = threading.Event()

    def put(self, item: Any) -> None:
        if self.stopped.is_set():
            raise _Stopped
        self.batches.put(item)

    def stop(self) -> None:
        """Stop the thread without blocking: a `put` that waits for room gets it, and the next one sees the flag."""
        self.stopped.set()
        while True:
            try:
                self.batches.get_nowait()
            except queue.Empty:
                return


def mend() -> None:
    """Make the thread behind `--data-buffer-size` stop with its iterator, and before the interpreter does."""
    from fairseq.data import iterators

    replace(iterators.BackgroundConsumer, "__init__", _with_stoppable_queue)
    replace(iterators.BackgroundConsumer, "run", _until_stopped)
    replace(iterators.BufferedIterator, "_create_consumer", _with_finalizer)
    # After torch and multiprocessing have registered theirs: handlers run last in, first out, and the thread
    # needs the worker processes for as long as it is in the middle of a batch.
    atexit.unregister(_stop_all)
    atexit.register(_stop_all)


def _with_stoppable_queue(original: Callable[..., None], thread: Any, queue: Any, *args: Any, **kwargs: Any) -> None:
    original(thread, _StoppableQueue(queue), *args, **kwargs)
    _running.add(thread)


def _until_stopped(original: Callable[..., None], thread: Any) -> None:
    with contextlib.suppress(_Stopped):
        original(thread)


def _with_finalizer(original: Callable[..., None], iterator: Any) -> None:
    original(iterator)
    # The thread holds the queue and the data loader, not this iterator, so that this can happen. It does
    # not wait: the garbage collector may call it in a thread that the reading thread waits for.
    weakref.finalize(iterator, iterator._consumer._queue.stop).atexit = False


def _stop_all() -> None:
    """Stop every reading thread and wait for it; at exit."""
    threads = [thread for thread in list(_running) if thread.is_alive()]
    for thread in threads:
        thread._queue.stop()
    for thread in threads:
        say_once(logger, "waiting for the batches that fairseq was still reading ahead")
        thread.join(_PATIENCE)
        if thread.is_alive():
            logger.warning(
                f"a thread that reads batches did not end within {_PATIENCE:.0f} s; the exit code may be 134 "
                "although all is done and saved (--data-buffer-size 0 avoids the thread)"
            )
