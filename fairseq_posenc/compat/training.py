"""Begin, continue and end a training as its command line says, and say why it ends.

If a training is resumed, fairseq makes one update before it checks whether the training has finished, counts --patience
from 0 again, and starts from zero if its checkpoint is missing.
"""

from __future__ import annotations

import filecmp
import json
import logging
import math
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.refusal import InputError, RefusedError
from .checkpoints import CheckpointError
from .patching import replace

logger = logging.getLogger(__name__)

_EARLY_STOP = "early_stop"  # key in the `extra_state` of a checkpoint
#: The recipes read the line of this logger, for example `diverged | {"num_updates": 340, "loss": 7.3}`.
_diverged = logging.getLogger("diverged")


class DivergedError(RefusedError, FloatingPointError):
    """Raised if a loss or a gradient is not finite; the message names the update."""


def mend() -> None:
    """Mend the begin, the checkpoints and the end of a training.

    If an update fails, fairseq repeats it to log the module with the first non-finite value. In the repetition, fairseq
    watches the gradients of all modules, which fails with StopIteration if an encoder returns a dictionary.
    """
    from fairseq import checkpoint_utils
    from fairseq.nan_detector import NanDetector
    from fairseq.trainer import Trainer

    replace(Trainer, "__init__", _with_precision)
    replace(Trainer, "save_checkpoint", _with_patience)
    replace(Trainer, "train_step", _with_update)
    replace(NanDetector, "add_hooks", _backward_at_leaves)
    replace(checkpoint_utils, "load_checkpoint", _before_training)
    replace(checkpoint_utils, "save_checkpoint", _asking_all_workers)


def _with_precision(original: Callable[..., None], trainer: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
    """Refuse precisions that the device cannot compute with: fairseq ignores --amp, and fails with --fp16."""
    import torch

    common = getattr(cfg, "common", cfg)  # old scripts give a flat namespace
    if common.cpu or not torch.cuda.is_available():
        if common.amp:
            raise InputError("--amp has no effect without a GPU. Leave it out, or give --bf16.")
        if common.fp16 and not (common.fp16_no_flatten_grads or common.memory_efficient_fp16):
            raise InputError("--fp16 needs a GPU. Give --cpu --fp16-no-flatten-grads or --bf16, or leave --fp16 out.")
    original(trainer, cfg, *args, **kwargs)


# -- the begin


def _before_training(original: Callable[..., Any], cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    """Load the checkpoint, restore the counter of --patience, and patch the function `train` of fairseq_cli.train.

    Every process reads the checkpoint. fairseq would send it from the first process to the others as a pickle, which
    torch refuses to load.
    """
    cfg.load_checkpoint_on_all_dp_ranks = True
    _refuse_missing_checkpoint(cfg, trainer)
    extra_state, epoch_itr = original(cfg, trainer, **kwargs)
    begins = not trainer.get_num_updates()  # true for new weights and --finetune-from-model
    counter = {} if begins or cfg.reset_meters else extra_state.get(_EARLY_STOP, {})
    for module in _train_modules():
        replace(module, "train", _unless_finished)
        vars(module.should_stop_early).clear()
        vars(module.should_stop_early).update({key: counter[key] for key in ("best", "num_runs") if key in counter})
    return extra_state, epoch_itr


def _refuse_missing_checkpoint(cfg: Any, trainer: Any) -> None:
    """Raise CheckpointError if training would start from zero because the checkpoint to continue from is missing.

    This is the file of --restore-file or --continue-once or, if --save-dir contains checkpoints, its
    checkpoint_last.pt. fairseq only logs that it found no checkpoint.

    If all checkpoints have the same content, a process was killed after it saved its first checkpoint and before it
    copied the file to checkpoint_last.pt. Then training continues from this checkpoint.
    """
    from fairseq.file_io import PathManager

    ending = f"{trainer.checkpoint_suffix}.pt"
    last = Path(cfg.save_dir) / f"checkpoint_last{ending}"
    flag, named = "--restore-file", cfg.restore_file.replace(".pt", ending)
    if cfg.restore_file == "checkpoint_last.pt":  # fairseq's default, which means `last`
        flag, named = "--continue-once", None if last.exists() else cfg.continue_once
    if named and not PathManager.isfile(named):
        raise CheckpointError(
            f"{flag} {named}: this file does not exist, so training would start from zero. Give the path of a "
            f"checkpoint, or leave {flag} out."
        )
    if named or last.exists() or cfg.no_last_checkpoints or cfg.no_save:
        return
    paths = sorted(last.parent.glob("checkpoint*.pt"), key=lambda path: path.stat().st_mtime_ns)
    if not paths:
        return
    if not trainer.checkpoint_suffix and all(filecmp.cmp(paths[-1], path, shallow=False) for path in paths):
        logger.info(f"{last} does not exist; training continues from {paths[-1]}, the only checkpoint.")
        cfg.restore_file, cfg.finetune_from_model = str(paths[-1]), None  # as fairseq continues from `last`
        return
    raise CheckpointError(
        f"{last} does not exist, so training would start from zero, but the folder has other checkpoints. To start "
        "from zero, give another --save-dir, or move the checkpoints away. To continue from the newest, run: "
        f"cp {shlex.quote(str(paths[-1]))} {shlex.quote(str(last))}"
    )


def _train_modules() -> Iterator[ModuleType]:
    """Yield the module fairseq_cli.train, which is called `__main__` under `python -m`, if it is imported.

    The module is not imported here, because importing it would configure logging.
    """
    for name in ("__main__", "fairseq_cli.train"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "should_stop_early"):
            yield module


# -- the checkpoints


def _with_patience(original: Callable[..., Any], trainer: Any, filename: str, extra_state: dict[str, Any]) -> Any:
    """Save the counter of --patience, which fairseq does not store."""
    for module in _train_modules():
        if trainer.cfg.checkpoint.patience > 0:
            extra_state = {**extra_state, _EARLY_STOP: dict(vars(module.should_stop_early))}
    return original(trainer, filename, extra_state)


def _asking_all_workers(original: Callable[..., Any], cfg: Any, trainer: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the task's method `before_save` in every process before a checkpoint is saved.

    fairseq reads the state from the task of process 0 only (checkpoint_utils.py:99). At that point the other processes
    have already left save_checkpoint, so nothing can be collected from them.
    """
    if hasattr(trainer.task, "before_save") and not cfg.no_save:
        trainer.task.before_save()
    return original(cfg, trainer, *args, **kwargs)


# -- the end


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
    in_vain = max((getattr(module.should_stop_early, "num_runs", 0) for module in _train_modules()), default=0)
    if 0 < patience <= in_vain:
        return f"the score did not improve in the last {in_vain} validations, and --patience is {patience}"
    return None


def _with_update(original: Callable[..., Any], trainer: Any, *args: Any, **kwargs: Any) -> Any:
    """If a loss or a gradient is not finite, log the update and the mean loss since the last line of the log."""
    from fairseq.logging import metrics

    try:
        return original(trainer, *args, **kwargs)
    except Exception as error:
        # fairseq then repeats the step to find the first NaN, which may fail and hide the first error.
        causes = [cause for cause in (error, error.__context__) if isinstance(cause, FloatingPointError)]
        if not causes:
            raise
        meter = metrics.get_meter("train_inner", "loss")
        loss = meter.smoothed_value if meter is not None and meter.count else None
        update = trainer.get_num_updates() + 1
        _diverged.error(json.dumps({"num_updates": update, "loss": loss}))
        raise DivergedError(
            f"The training diverged in update {update}: {str(causes[-1]).strip()}. Give a smaller --lr or more "
            "--warmup-updates, or clip gradients with --clip-norm."
        ) from error


def _backward_at_leaves(original: Callable[..., None], detector: Any, module: Any) -> None:
    """Leave modules with children unwatched, because torch cannot watch a module that returns a dictionary."""
    wanted = detector.backward
    detector.backward = wanted and next(module.children(), None) is None
    original(detector, module)
    detector.backward = wanted
