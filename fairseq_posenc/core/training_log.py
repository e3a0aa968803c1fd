"""Read what fairseq-train logged with `--log-format json`.

This file imports the standard library only: recipes load it without the package, which needs torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Points = list[tuple[int, float]]  # number of updates, and value (losses are in bits per piece)


class Curve(NamedTuple):
    """The losses of a training run, and its median speed in words per second."""

    train: Points
    valid: Points
    speed: float | None


def read_losses(log: Path) -> Curve:
    """Return the losses in a log of fairseq-train.

    After a restart, fairseq repeats the updates since the last checkpoint, so that an update may be logged twice.
    Only the last loss of each update is returned.
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
    """Return the value that each validation logged as `name`, with its update. Skip validations without this value."""
    logged = [facts for kind, facts in _lines(log) if kind == "valid" and name in facts]
    return sorted({int(facts["valid_num_updates"]): float(facts[name]) for facts in logged}.items())


def _lines(log: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        head, mark, tail = line.rpartition(" | {")
        if mark and line.endswith("}"):
            try:
                yield head.rpartition(" | ")[2], json.loads("{" + tail)
            except ValueError:  # two processes wrote to the log at the same time
                continue
