"""Log the update in which a loss or gradient is not finite. fairseq ends the training but does not log it.

The training ends in trainer.py:970. The recipes read the log line, for example `diverged | {"num_updates": 340, "loss":
7.3}`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from .patching import replace

logger = logging.getLogger("diverged")


def mend() -> None:
    """If non-finite values end a training, log the update and the mean loss since the last line of the log."""
    from fairseq.trainer import Trainer

    replace(Trainer, "train_step", _with_update)


def _with_update(original: Callable[..., Any], trainer: Any, *args: Any, **kwargs: Any) -> Any:
    from fairseq.logging import metrics

    try:
        return original(trainer, *args, **kwargs)
    except Exception as error:
        # fairseq then repeats the step to find the first NaN, which may fail and hide the first error.
        if not any(isinstance(found, FloatingPointError) for found in (error, error.__context__)):
            raise
        meter = metrics.get_meter("train_inner", "loss")
        loss = meter.smoothed_value if meter is not None and meter.count else None
        logger.error(json.dumps({"num_updates": trainer.get_num_updates() + 1, "loss": loss}))
        raise
