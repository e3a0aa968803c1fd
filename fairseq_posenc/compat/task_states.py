"""Let the tasks of all worker processes contribute to the task state that a checkpoint stores."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from .patching import replace, say_once

logger = logging.getLogger(__name__)


def mend() -> None:
    """Call the task's method `before_save` in every worker before a checkpoint is saved.

    fairseq reads the state from the task of worker 0 only (checkpoint_utils.py:99). At that point the other workers
    have already left save_checkpoint, so nothing can be collected from them.
    """
    from fairseq import checkpoint_utils

    replace(checkpoint_utils, "save_checkpoint", _asking_all_workers)


def _asking_all_workers(original: Callable[..., Any], cfg: Any, trainer: Any, *args: Any, **kwargs: Any) -> Any:
    before = getattr(trainer.task, "before_save", None)
    if before is not None and not cfg.no_save:
        say_once(logger, "The tasks of all workers save their state; fairseq would save only the state of worker 0.")
        before()
    return original(cfg, trainer, *args, **kwargs)
