"""Start fairseq so that refusals end in one line. Refuse several processes without GPUs: fairseq would start none and
exit with 0 (utils.py:382).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..core.refusal import InputError
from . import refusals
from .patching import replace


def mend() -> None:
    """Make fairseq raise an error if it would spawn no process, because it spawns at most one for each GPU."""
    from fairseq.distributed import utils

    replace(utils, "call_main", _of_some_processes)


def _of_some_processes(original: Callable[..., Any], cfg: Any, main: Callable[..., Any], **kwargs: Any) -> Any:
    with refusals.in_one_line():
        refusals.refuse_missing_data(cfg)
        _refuse_no_process(cfg)
        return original(cfg, main, **kwargs)


def _refuse_no_process(cfg: Any) -> None:
    distributed = cfg.distributed_training
    several = distributed.distributed_world_size > 1 and not cfg.common.tpu
    if several and not distributed.distributed_no_spawn and torch.cuda.device_count() == 0:
        raise InputError(
            f"--distributed-world-size {distributed.distributed_world_size}: there is no GPU, so fairseq would start "
            "no process and would exit without training. To train on CPUs, start each process yourself with "
            "--distributed-no-spawn --distributed-rank R --distributed-init-method tcp://HOST:PORT "
            "--distributed-backend gloo --ddp-backend legacy_ddp"
        )
