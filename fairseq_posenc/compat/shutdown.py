"""Prevent exit code 134 after 'done training', which occurs if a thread outlives Python (data/iterators.py:661).

fairseq reads batches ahead in a daemon thread. If training stops inside an epoch, that thread still runs when Python
shuts down. Python then ends it inside a C++ frame of torch, which calls `std::terminate`. With this fix the thread
stops when its iterator is deleted, and Python waits for it before shutting down.

fairseq-fixed also keeps the worker processes of --num-workers for the next epoch (`persistent_workers`). torch ends
such workers only when their queues are closed: it waits five seconds for each worker, kills it and leaves its folder
in /tmp. With this fix, workers end with their epoch, as in fairseq.
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

_SILENCE = 2.0  # seconds of waiting before a line says so
_PATIENCE = 60.0  # seconds to wait for the batch that the thread is reading; data loaders rarely need more
_running: weakref.WeakSet[Any] = weakref.WeakSet()


class _Stopped(BaseException):
    """Raised to end the thread that reads batches.

    This class is no subclass of `Exception`, because fairseq puts every `Exception` into the queue.
    """


class _StoppableQueue:
    """Wrap the queue of the thread that reads batches; after `stop`, the method `put` ends the thread."""

    def __init__(self, batches: queue.Queue[Any]) -> None:
        self.batches = batches
        self.stopped = threading.Event()

    def put(self, item: Any) -> None:
        if self.stopped.is_set():
            raise _Stopped
        self.batches.put(item)

    def stop(self) -> None:
        """Stop the thread without blocking.

        The queue is emptied, so that a `put` that waits for space can finish. The next `put` then ends the thread.
        """
        self.stopped.set()
        while True:
            try:
                self.batches.get_nowait()
            except queue.Empty:
                return


def mend() -> None:
    """Stop the thread of `--data-buffer-size` when its iterator is deleted, and before the interpreter exits."""
    from fairseq.data import iterators

    replace(iterators.BackgroundConsumer, "__init__", _with_stoppable_queue)
    replace(iterators.BackgroundConsumer, "run", _until_stopped)
    replace(iterators.BufferedIterator, "_create_consumer", _with_finalizer)
    replace(iterators.EpochBatchIterator, "__init__", _without_lasting_workers)
    replace(iterators.FrozenBatchSampler, "__init__", _with_weak_method)
    # Register after torch and multiprocessing, because exit handlers run in reverse order, and the thread needs the
    # worker processes until its batch is complete.
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
    # The thread refers to the queue and the data loader but not to this iterator, so the iterator can be deleted. The
    # finalizer does not wait: the garbage collector may call it in a thread that the reading thread waits for.
    weakref.finalize(iterator, iterator._consumer._queue.stop).atexit = False


def _without_lasting_workers(original: Callable[..., None], epochs: Any, *args: Any, **kwargs: Any) -> None:
    original(epochs, *args, **{**kwargs, "persistent_workers": False})


def _with_weak_method(original: Callable[..., None], sampler: Any, batches: Any, *args: Any, **kwargs: Any) -> None:
    """Let the sampler hold only a weak reference to its owner, so that the owner and its iterator can be deleted."""
    method = weakref.WeakMethod(batches)

    def ordered_batches(*args: Any, **kwargs: Any) -> Any:
        owned = method()
        assert owned is not None, "the sampler is used after the deletion of its owner"
        return owned(*args, **kwargs)

    original(sampler, ordered_batches, *args, **kwargs)


def _stop_all() -> None:
    """Stop all threads that read batches, and wait for them before Python exits."""
    threads = [thread for thread in list(_running) if thread.is_alive()]
    for thread in threads:
        thread._queue.stop()
    for thread in threads:
        thread.join(_SILENCE)
        if thread.is_alive():
            say_once(logger, "Waiting for the thread of fairseq that is reading the next batch.")
        thread.join(_PATIENCE)
        if thread.is_alive():
            logger.warning(
                f"The thread that reads the next batch did not end within {_PATIENCE:.0f} s. The exit code may be 134, "
                "although everything is saved. To run without this thread, set --data-buffer-size 0."
            )
