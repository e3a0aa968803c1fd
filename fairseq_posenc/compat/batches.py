"""Give a training all of its batches, the same ones if it was interrupted, and end what reads them.

fairseq drops the last batch of a data set without a message (data/data_utils.py:357). It restores the position in an
epoch, but it builds other batches, because their seed depends on the epoch in which the process started
(tasks/fairseq_task.py:283). In later epochs, fairseq keeps the data workers of the process's first epoch.

fairseq reads batches ahead in a daemon thread (data/iterators.py:661). If training stops inside an epoch, Python ends
that thread inside a C++ frame of torch, which calls `std::terminate`: the exit code is 134 after 'done training'.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import logging
import multiprocessing.util  # noqa: F401  (its exit handler must be registered before ours)
import queue
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .patching import replace, say_once

logger = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds to wait for the batch that the thread is reading; data loaders rarely need more


def mend() -> None:
    """Keep the last batch, resume with the batches of an uninterrupted training, and stop the reading thread.

    Every caller looks `batch_by_size` up in `data_utils` (data/fairseq_dataset.py:145), so it is enough to replace this
    function there.
    """
    from fairseq.data import data_utils, iterators
    from fairseq.tasks import FairseqTask
    from fairseq.trainer import Trainer

    replace(data_utils, "batch_by_size", _with_tail)
    replace(FairseqTask, "get_batch_iterator", _as_in_epoch_1)
    replace(Trainer, "get_train_iterator", _with_its_seed)
    replace(iterators.EpochBatchIterator, "next_epoch_itr", _with_workers_of_the_epoch)
    replace(iterators.EpochBatchIterator, "_get_iterator_for_epoch", _with_its_batches_fixed)
    replace(iterators.EpochBatchIterator, "__init__", _without_lasting_workers)
    # Register after torch and multiprocessing, because exit handlers run in reverse order, and the thread needs the
    # worker processes until its batch is complete.
    atexit.unregister(stop_reading)
    atexit.register(stop_reading)


# -- the last batch


def _with_tail(original: Callable[..., Any], indices: Any, *args: Any, **kwargs: Any) -> Any:
    """Keep the last batch if its size is not a multiple of --required-batch-size-multiple."""
    if not isinstance(indices, np.ndarray):
        indices = np.fromiter(indices, dtype=np.int64, count=-1)
    if len(indices) == 0:
        return []  # fairseq would raise an IndexError at b[-1]
    batches = original(indices, *args, **kwargs)
    given = inspect.signature(original).bind(indices, *args, **kwargs).arguments
    tail = indices[sum(len(batch) for batch in batches) :]
    # With fixed shapes (TPU, --num-batch-buckets), batches are not consecutive runs of indices, and none is dropped.
    if len(tail) == 0 or given.get("fixed_shapes") is not None:
        return batches
    say_once(
        logger,
        f"The last batch of {len(tail)} sentences is kept. fairseq would drop it, because its size is not a multiple "
        f"of --required-batch-size-multiple {given.get('required_batch_size_multiple')}.",
    )
    return [*batches, tail]


# -- the batches of a resumed training


def _as_in_epoch_1(original: Callable[..., Any], task: Any, *args: Any, **kwargs: Any) -> Any:
    """Use the seed of epoch 1 for batches that all epochs share, as an uninterrupted training run does."""
    call = inspect.signature(original).bind(task, *args, **kwargs)
    call.apply_defaults()
    arguments = call.arguments
    dataset, epoch = arguments["dataset"], arguments["epoch"]
    is_kept = not arguments["disable_iterator_cache"] and not arguments["update_epoch_batch_itr"]
    is_kept = is_kept and task.can_reuse_epoch_itr(dataset)
    if epoch == 1 or not is_kept or dataset in task.dataset_to_epoch_iter:
        return original(task, *args, **kwargs)
    say_once(logger, f"Epoch {epoch} resumes with the batches of epoch 1; fairseq would build other batches.")
    arguments["epoch"] = 1
    arguments["seed"] -= (epoch - 1) * getattr(task, "_seed_step", 0)
    iterator = original(*call.args, **call.kwargs)
    dataset.set_epoch(epoch)
    iterator.epoch = epoch
    return iterator


def _with_its_seed(original: Callable[..., Any], trainer: Any, *args: Any, **kwargs: Any) -> Any:
    """Record how much the seed increases per epoch, and pass --fix-batches-to-gpus on to a resumed epoch."""
    trainer.task._seed_step = int(trainer.cfg.dataset.update_ordered_indices_seed)
    iterator = original(trainer, *args, **kwargs)
    iterator._fix_batches = trainer.cfg.distributed_training.fix_batches_to_gpus
    return iterator


def _with_its_batches_fixed(
    original: Callable[..., Any],
    iterator: Any,
    epoch: int,
    shuffle: bool,
    fix_batches_to_gpus: bool = False,
    offset: int = 0,
) -> Any:
    """Apply --fix-batches-to-gpus to a resumed epoch, where fairseq ignores it (data/iterators.py:470)."""
    is_forgotten = offset > 0 and getattr(iterator, "_fix_batches", False)
    return original(iterator, epoch, shuffle, fix_batches_to_gpus or is_forgotten, offset)


def _with_workers_of_the_epoch(
    original: Callable[..., Any], iterator: Any, shuffle: bool = True, *args: Any, **kwargs: Any
) -> Any:
    """Start new data workers in each epoch of training.

    Each worker has its own copy of the data set. If a worker outlived its epoch, all epochs would have the masks of the
    first epoch, and --curriculum would never end. Validation reads the same data in all epochs, so it keeps its
    data loader.
    """
    given = inspect.signature(original).bind(iterator, shuffle, *args, **kwargs).arguments
    if given.get("set_dataset_epoch", True) and iterator._next_epoch_itr is None:
        iterator.dataloader = None
    return original(iterator, shuffle, *args, **kwargs)


def _without_lasting_workers(original: Callable[..., None], epochs: Any, *args: Any, **kwargs: Any) -> None:
    """End the workers with their epoch; fairseq-fixed keeps them, and torch then kills them after five seconds each."""
    original(epochs, *args, **{**kwargs, "persistent_workers": False})


# -- the thread that reads ahead


def stop_reading() -> None:
    """End all threads that read batches ahead, and wait for them. Python calls this function before it exits."""
    from fairseq.data.iterators import BackgroundConsumer

    threads = [thread for thread in threading.enumerate() if isinstance(thread, BackgroundConsumer)]
    for thread in threads:
        thread._queue.put = _end_thread
        with contextlib.suppress(queue.Empty):
            while True:  # make space, so that a `put` that waits for it can finish
                thread._queue.get_nowait()
    for thread in threads:
        thread.join(_PATIENCE)


def _end_thread(batch: Any) -> NoReturn:
    raise SystemExit  # fairseq puts every `Exception` into the queue, and a thread ends silently with this error
