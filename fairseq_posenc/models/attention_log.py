"""Implement --pos-enc-log-interval: log each layer's largest logit, attention entropy and norm of encoding tables.

The numbers are metrics of fairseq, so that every --log-format, TensorBoard and Weights & Biases show them. Each number
covers all batches and all processes of one update, and log lines repeat the number until the next measured update.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..attention.statistics import LayerStatistics, measuring, values_of
from ..compat.patching import replace
from ..core.refusal import InputError

FLAG = "--pos-enc-log-interval"
#: Place of the numbers in a line of the log: after those of fairseq.
PRIORITY = 2000


def log_attention(interval: int) -> None:
    """Make fairseq's trainer measure the attention in every update whose number is a multiple of `interval`.

    Raises:
        ValueError: The interval is less than 1.
    """
    from fairseq.trainer import Trainer

    if interval < 1:
        raise InputError(f"{FLAG} {interval}: the number of updates must be at least 1. Leave it out to log nothing.")
    replace(Trainer, "train_step", _measured)


def _measured(original: Callable[..., Any], trainer: Any, *args: Any, **kwargs: Any) -> Any:
    interval = getattr(trainer.cfg.model, "pos_enc_log_interval", None)
    # With --amp, fairseq repeats an update whose gradients overflow inside of the first attempt.
    is_repeated = getattr(trainer, "_measures_attention", False)
    if interval is None or is_repeated or (trainer.get_num_updates() + 1) % interval:
        return original(trainer, *args, **kwargs)
    if trainer.is_fsdp:
        raise InputError(f"{FLAG} cannot read tables that --ddp-backend fully_sharded splits. Leave one of them out.")
    trainer._measures_attention = True
    try:
        with measuring(trainer.get_model()) as layers:
            output = original(trainer, *args, **kwargs)
    finally:
        trainer._measures_attention = False
    _join_processes(layers, trainer)
    latest: dict[str, float] = trainer.__dict__.setdefault("_attention_statistics", {})
    latest.update(values_of(layers))
    _log(latest)
    return output


def _join_processes(layers: list[LayerStatistics], trainer: Any) -> None:
    """Combine the numbers of all data-parallel processes."""
    from fairseq.distributed import utils

    if trainer.data_parallel_world_size == 1 or not layers:
        return
    largest = torch.stack([layer.largest for layer in layers])
    sums = torch.stack([torch.stack([layer.entropy, layer.rows]) for layer in layers])
    utils.all_reduce(largest, trainer.data_parallel_process_group, op="max")
    utils.all_reduce(sums, trainer.data_parallel_process_group)
    for layer, most, pair in zip(layers, largest, sums, strict=True):
        layer.largest, layer.entropy, layer.rows = most, pair[0], pair[1]


def _log(latest: dict[str, float]) -> None:
    """Add the numbers to the metrics of training.

    fairseq reads the values of derived metrics when it writes a log line. It neither averages these metrics nor stores
    them in checkpoints.
    """
    from fairseq.logging import metrics

    for name in latest:
        metrics.log_derived(name, partial(_latest, latest, name), priority=PRIORITY)


def _latest(latest: dict[str, float], name: str, meters: Any) -> float:
    return round(latest[name], 4)
