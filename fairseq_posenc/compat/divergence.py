"""End a training run whose loss or gradients are not finite with one line, and log the update.

fairseq's own error (trainer.py:970) does not name the update. The recipes read the log line, for example
`diverged | {"num_updates": 340, "loss": 7.3}`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.refusal import RefusedError
from . import checksums
from .patching import replace

logger = logging.getLogger("diverged")
#: Options of a model that name its encoding.
_ENCODING = tuple(f"pos_enc{stack}{args}" for stack in ("", "_encoder", "_decoder") for args in ("", "_args"))


class DivergedError(RefusedError, FloatingPointError):
    """Raised if a loss or a gradient is not finite; the message names the update, the encoding and a checkpoint."""


def mend() -> None:
    """If non-finite values end a training, log the update and the mean loss since the last line of the log.

    fairseq itself repeats the update, to log the module with the first non-finite value. In the repetition, fairseq
    watches the gradients of all modules, which fails with StopIteration if an encoder returns a dictionary. Therefore
    this function makes fairseq watch the gradients only of modules without children.
    """
    from fairseq.nan_detector import NanDetector
    from fairseq.trainer import Trainer

    replace(Trainer, "train_step", _with_update)
    replace(NanDetector, "add_hooks", _backward_at_leaves)


def _with_update(original: Callable[..., Any], trainer: Any, *args: Any, **kwargs: Any) -> Any:
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
        logger.error(json.dumps({"num_updates": update, "loss": loss}))
        raise DivergedError(_message(trainer.cfg, update, causes[-1])) from error


def _message(cfg: Any, update: int, cause: BaseException) -> str:
    options = ((name, getattr(cfg.model, name, None)) for name in _ENCODING)
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options if value)
    checkpoint = checksums.newest_undamaged(Path(cfg.checkpoint.save_dir))
    last = f"The last good checkpoint is {checkpoint}." if checkpoint else "No checkpoint had been saved before."
    text = f"The training{' with ' if flags else ''}{flags} diverged in update {update}: {str(cause).strip()}. {last}"
    return f"{text} Give a smaller --lr or more --warmup-updates, or clip gradients with --clip-norm."


def _backward_at_leaves(original: Callable[..., None], detector: Any, module: Any) -> None:
    """Leave modules with children unwatched, because torch cannot watch a module that returns a dictionary."""
    wanted = detector.backward
    detector.backward = wanted and next(module.children(), None) is None
    original(detector, module)
    detector.backward = wanted
