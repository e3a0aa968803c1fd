"""Read logs that fairseq-train wrote with `--log-format json`.

This file imports the standard library only: recipes load it without the package, which needs torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

#: Text in the log of a training run whose loss or gradient is not finite: a line of the plugin, or fairseq's error.
NOT_FINITE = re.compile(r" \| diverged \| {|^(\[rank\d+\]: ?)?FloatingPointError", re.MULTILINE)
PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")
#: A loss counts as risen again if it is at least this multiple of its lowest value.
RISEN = 1.2
Points = list[tuple[int, float]]  # number of updates, and value (losses are in bits per piece)


class Curve(NamedTuple):
    """Hold the losses of a training run, and its median speed in words per second."""

    train: Points
    valid: Points
    speed: float | None


class Divergence(NamedTuple):
    """Describe how a training run diverged.

    Args:
        update: Update at which a loss or a gradient was not finite, or first update at which the loss was again as high
            as at the start. If the log does not name the update, `update` is the last one with a finite loss (or 0).
        loss: Mean of the last tenth of the losses or, if a loss or a gradient was not finite, the last finite loss.
            None means that no finite loss was logged.
        finite: Whether all losses and gradients were finite.
    """

    update: int
    loss: float | None
    finite: bool

    def __str__(self) -> str:
        loss = "unknown" if self.loss is None else f"{self.loss:.4g}"
        if self.finite:
            return f"update {self.update}, loss {loss} (it rose again)"
        return f"update {self.update}, loss {loss} (then not finite)"


def read_divergence(log: Path) -> Divergence | None:
    """Return how a training run diverged, or None if it did not diverge or has no log.

    A run has diverged if fairseq-train ended because a loss or a gradient was not finite. A run has also diverged if
    the mean of the last tenth of its logged losses is at least the first loss, and at least `RISEN` times the lowest
    loss.
    """
    if not log.is_file():
        return None
    losses = read_losses(log).train
    finite = [(update, loss) for update, loss in losses if isfinite(loss)]
    last_attempt = log.read_text(encoding="utf-8", errors="replace").rpartition("\n$ ")[2]
    if len(finite) < len(losses) or NOT_FINITE.search(last_attempt):
        update, loss = finite[-1] if finite else (0, None)
        reported = [facts for kind, facts in _lines(log) if kind == "diverged"]
        if reported:  # the plugin's line names the exact update
            update = int(reported[-1]["num_updates"])
            loss = loss if reported[-1]["loss"] is None else float(reported[-1]["loss"])
        return Divergence(update, loss, finite=False)
    return _rise(finite)


def _rise(losses: Points) -> Divergence | None:
    if len(losses) < 2:
        return None
    first, end = losses[0][1], losses[-max(1, len(losses) // 10) :]
    last, (lowest_update, lowest) = sum(loss for _, loss in end) / len(end), min(losses, key=lambda point: point[1])
    if last < first or last < RISEN * lowest:
        return None
    risen = (update for update, loss in losses if update > lowest_update and loss >= first)
    return Divergence(next(risen, losses[-1][0]), last, finite=True)


def read_losses(log: Path) -> Curve:
    """Return the losses in a log of fairseq-train.

    After a restart, fairseq repeats the updates since the last checkpoint and may log an update twice. Only the last
    loss of each update is returned.
    """
    train: dict[int, float] = {}
    valid: dict[int, float] = {}
    speeds: list[float] = []
    for kind, facts in _lines(log):
        if kind == "train_inner":
            train[int(facts["num_updates"])] = float(facts["loss"])
            speeds.append(float(facts["wps"]))
        elif kind == "valid":
            valid[int(facts["valid_num_updates"])] = float(facts["valid_loss"])
    middle = sorted(speeds)[len(speeds) // 2] if speeds else None
    return Curve(sorted(train.items()), sorted(valid.items()), middle)


def read_validations(log: Path, name: str) -> Points:
    """Return the value that each validation logged as `name`, with the number of updates at that time.

    Validations that did not log `name` are left out.
    """
    logged = [facts for kind, facts in _lines(log) if kind == "valid" and name in facts]
    return sorted({int(facts["valid_num_updates"]): float(facts[name]) for facts in logged}.items())


def read_parameters(log: Path) -> int | None:
    """Return the number of the model's parameters that fairseq-train logged, or None if there is no such line."""
    match = PARAMETERS.search(log.read_text(encoding="utf-8", errors="replace")) if log.is_file() else None
    return int(match[1].replace(",", "")) if match else None


def _lines(log: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        head, mark, tail = line.rpartition(" | {")
        if mark and line.endswith("}"):
            try:
                yield head.rpartition(" | ")[2], json.loads("{" + tail)
            except (ValueError, RecursionError):  # two processes wrote to the log at the same time
                continue
