"""Take the length limits of fairseq-generate, -interactive and -eval-lm from the checkpoint that they load.

fairseq takes the limits from the command line only, so a model of 3,000 positions refuses sentences of more than 1,024
tokens until all flags of the training are repeated (facebookresearch/fairseq#1853).
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from typing import Any

from .checkpoints import CheckpointError, safe_load, settings_of
from .patching import say_once

logger = logging.getLogger(__name__)

#: Options of tasks that refuse longer sequences. They are only raised: an encoding without a table may read more tokens
#: than in training.
_LONGEST = ("max_positions", "max_source_positions", "max_target_positions")
#: The length of blocks of text. fairseq-eval-lm leaves out blocks that are longer than the model allows.
_BLOCK = "tokens_per_sample"


def adopt(options: argparse.Namespace, words: Sequence[str]) -> None:
    """Change the limits in the options of a command that loads a checkpoint to those of the training.

    Limits that the command line gives, and limits that the task itself takes from the checkpoint, stay.

    Args:
        options: Parsed options.
        words: Words of the command line.
    """
    if not hasattr(options, "model_overrides"):  # the command does not load a checkpoint for evaluation
        return
    names = [name for name in (*_LONGEST, _BLOCK) if getattr(options, name, None) and not _is_given(name, words)]
    if not names or not options.path:
        return
    tasks = [_task(path) for path in options.path.split(os.pathsep)]
    for name in names:
        trained = max((task[name] for task in tasks if isinstance(task.get(name), int)), default=0)
        value = getattr(options, name)
        if trained > value or (name == _BLOCK and 0 < trained < value):
            say_once(logger, f"{_flag(name)} is {trained}, as in the training; fairseq would take {value}")
            setattr(options, name, trained)


def _task(path: str) -> dict[str, Any]:
    try:
        state = safe_load(path, mmap=True)
        return settings_of(state, "task")
    except (OSError, CheckpointError, AttributeError, KeyError, TypeError):
        return {}  # fairseq loads the file later, and reports what is wrong with it


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _is_given(name: str, words: Sequence[str]) -> bool:
    return any(word.partition("=")[0] == _flag(name) for word in words)
