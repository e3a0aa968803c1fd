"""Make a resumed training run identical to an uninterrupted one, in any epoch, and stop it at the limits of training.

fairseq restores the position in an epoch, but it builds other batches, because their seed depends on the epoch in which
the process started (tasks/fairseq_task.py:283). In later epochs, fairseq keeps the batches and the data workers of the
process's first epoch. Moreover, a resumed run makes one update before fairseq checks whether training has finished.
"""

from __future__ import annotations

import filecmp
import inspect
import logging
import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.refusal import InputError
from ..core.writing import whole
from . import checksums
from .checkpoints import CheckpointError, UnsafeCheckpointError, safe_load
from .patching import replace, say_once

logger = logging.getLogger(__name__)

_EARLY_STOP = "early_stop"  # key in the `extra_state` of a checkpoint
FLAG = "--restore-previous"
#: The same for processes that a command starts, and for Hydra, whose commands have no flags.
VARIABLE = "FAIRSEQ_POSENC_RESTORE_PREVIOUS"


def mend() -> None:
    """Let a resumed run use the same batches as an uninterrupted run.

    Also let a resumed run stop without an update if training has already finished, and store the counter of --patience
    in checkpoints.
    """
    from fairseq import checkpoint_utils
    from fairseq.data.iterators import EpochBatchIterator
    from fairseq.tasks import FairseqTask
    from fairseq.trainer import Trainer

    replace(FairseqTask, "get_batch_iterator", _as_in_epoch_1)
    replace(Trainer, "get_train_iterator", _with_its_seed)
    replace(EpochBatchIterator, "next_epoch_itr", _with_workers_of_the_epoch)
    replace(EpochBatchIterator, "_get_iterator_for_epoch", _with_its_batches_fixed)
    replace(Trainer, "save_checkpoint", _with_patience)
    replace(checkpoint_utils, "load_checkpoint", _before_training)


# -- batches


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
    is_forgotten = offset > 0 and not fix_batches_to_gpus and getattr(iterator, "_fix_batches", False)
    if is_forgotten:
        say_once(logger, "--fix-batches-to-gpus also applies to the resumed epoch; fairseq would ignore it there.")
    return original(iterator, epoch, shuffle, fix_batches_to_gpus or is_forgotten, offset)


def _with_workers_of_the_epoch(
    original: Callable[..., Any],
    iterator: Any,
    shuffle: bool = True,
    fix_batches_to_gpus: bool = False,
    set_dataset_epoch: bool = True,
) -> Any:
    """Start new data workers in each epoch of training.

    Each worker has its own copy of the data set. If a worker outlived its epoch, all epochs would have the masks of the
    first epoch, and --curriculum would never end. Validation reads the same data in all epochs, so it keeps its
    data loader.
    """
    if set_dataset_epoch and iterator._next_epoch_itr is None and iterator.dataloader is not None:
        if iterator.num_workers:
            say_once(logger, "Each epoch starts new data workers, so that masks differ from epoch to epoch.")
        iterator.dataloader = None
    return original(iterator, shuffle, fix_batches_to_gpus, set_dataset_epoch)


# -- the end


def _before_training(original: Callable[..., Any], cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    """Load the checkpoint, restore the counter of --patience, and patch the function `train` of fairseq_cli.train."""
    if os.environ.get(VARIABLE, "") in ("", "0"):
        _refuse_lost_checkpoint(cfg, trainer)
        extra_state, epoch_itr = original(cfg, trainer, **kwargs)
    else:
        with _from_previous(cfg, trainer):
            extra_state, epoch_itr = original(cfg, trainer, **kwargs)
    begins = not trainer.get_num_updates()  # true for new weights and --finetune-from-model
    counter = {} if begins or cfg.reset_meters else extra_state.get(_EARLY_STOP, {})
    if counter:
        say_once(logger, "--patience continues from the count in the checkpoint; fairseq would count from 0 again.")
    for module in _train_modules():
        replace(module, "train", _unless_finished)
        vars(module.should_stop_early).clear()
        vars(module.should_stop_early).update({key: counter[key] for key in ("best", "num_runs") if key in counter})
    return extra_state, epoch_itr


def add_flag(parser: Any) -> None:
    """Add the flag --restore-previous, which only training uses, to the parser of a command."""
    parser.add_argument(
        FLAG,
        action="store_true",
        help="If the checkpoint of --restore-file is damaged or missing, continue from the newest undamaged checkpoint "
        "in its folder. Default: end with an error that names this checkpoint.",
    )


@contextmanager
def _from_previous(cfg: Any, trainer: Any) -> Iterator[None]:
    """Inside a `with` block, let fairseq restore the newest undamaged checkpoint if the last one is unusable."""
    if trainer.checkpoint_suffix:
        raise InputError(f"{FLAG} cannot choose among checkpoints that are split into several files. Leave it out.")
    is_default = cfg.restore_file == "checkpoint_last.pt"
    wanted = Path(cfg.save_dir, cfg.restore_file) if is_default else Path(cfg.restore_file)
    other = None if _is_whole(wanted) else checksums.newest_undamaged(wanted.parent, besides=wanted)
    if other is None:
        _refuse_lost_checkpoint(cfg, trainer)
        yield
        return
    state = "is damaged" if wanted.exists() else "does not exist"
    logger.warning(f"{wanted} {state}, so training continues from {other}, the newest undamaged checkpoint beside it.")
    cfg.restore_file = str(other)
    try:
        yield
    finally:
        cfg.restore_file = "checkpoint_last.pt" if is_default else str(wanted)


def _is_whole(checkpoint: Path) -> bool:
    """Return whether a checkpoint exists and is undamaged.

    Raises:
        UnsafeCheckpointError: The checkpoint has no checksums, and could run code.
    """
    try:
        if not checksums.check(checkpoint):
            safe_load(checkpoint)  # a file in the old format has no checksums
    except UnsafeCheckpointError:
        raise
    except (checksums.DamagedError, CheckpointError, OSError):
        return False
    return True


def _refuse_lost_checkpoint(cfg: Any, trainer: Any) -> None:
    """Raise CheckpointError if training would start from zero, although --save-dir contains checkpoints.

    If all checkpoints have the same content, a process was killed after it saved its first checkpoint and before it
    copied the file to checkpoint_last.pt. Then this function copies the checkpoint to checkpoint_last.pt.
    """
    last = Path(cfg.save_dir) / f"checkpoint_last{trainer.checkpoint_suffix}.pt"
    is_default = cfg.restore_file == "checkpoint_last.pt" and not cfg.no_last_checkpoints and not cfg.no_save
    if not is_default or last.exists() or trainer.data_parallel_rank:
        return
    paths = sorted(last.parent.glob("checkpoint*.pt"))
    other = checksums.newest_undamaged(last.parent)
    if other is None:
        if paths:
            raise CheckpointError(
                f"{last} does not exist, so training would start from zero, but the folder has checkpoints, which are "
                f"all damaged: {', '.join(map(str, paths))}. If an undamaged copy exists elsewhere, copy it into the "
                "folder. To start from zero, give another --save-dir, or move the damaged checkpoints out of this one."
            )
        return
    if all(filecmp.cmp(other, path, shallow=False) for path in paths):
        logger.info(f"{last} does not exist; training continues from a copy of {other}, the only checkpoint.")
        with whole(last) as partial:
            shutil.copyfile(other, partial)
        return
    raise CheckpointError(
        f"{last} does not exist, so training would start from zero, but the folder has {other}. To start from zero, "
        f"give another --save-dir, or move the checkpoints away. To continue from {other}, give {FLAG}, or run: "
        f"cp {shlex.quote(str(other))} {shlex.quote(str(last))}"
    )


def _train_modules() -> Iterator[ModuleType]:
    """Yield the module fairseq_cli.train, which is called `__main__` under `python -m`, if it is imported.

    The module is not imported here, because importing it would configure logging.
    """
    for name in ("__main__", "fairseq_cli.train"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "should_stop_early"):
            yield module


def _unless_finished(original: Callable[..., Any], cfg: Any, trainer: Any, task: Any, epoch_itr: Any) -> Any:
    if reason := _reason_to_stop(cfg, trainer):
        logger.info(f"training has already finished: {reason}. To continue, raise this limit.")
        return [None], True
    return original(cfg, trainer, task, epoch_itr)


def _reason_to_stop(cfg: Any, trainer: Any) -> str | None:
    """Return which of fairseq's limits the training has reached, such as --max-update; None if it reached none."""
    updates, most = trainer.get_num_updates(), cfg.optimization.max_update or math.inf
    if not updates:
        return None
    if updates >= most:
        return f"it made {updates} updates, and --max-update is {most}"
    hours, most_hours = trainer._previous_training_time / 3600, cfg.optimization.stop_time_hours  # both in hours
    if 0 < most_hours < hours:
        return f"it took {hours:.2f} hours, and --stop-time-hours is {most_hours}"
    patience = cfg.checkpoint.patience
    for module in _train_modules():
        in_vain = getattr(module.should_stop_early, "num_runs", 0)
        if 0 < patience <= in_vain:
            return f"the score did not improve in the last {in_vain} validations, and --patience is {patience}"
    return None


def _with_patience(original: Callable[..., Any], trainer: Any, filename: str, extra_state: dict[str, Any]) -> Any:
    """Save the counter of --patience, which fairseq does not store."""
    for module in _train_modules():
        if trainer.cfg.checkpoint.patience > 0:
            extra_state = {**extra_state, _EARLY_STOP: dict(vars(module.should_stop_early))}
    return original(trainer, filename, extra_state)
