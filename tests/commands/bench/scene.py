"""Provide a simulated clock, and a layer so small that running it takes no time."""

from __future__ import annotations

import torch

from fairseq_posenc.commands.bench.settings import Setting, Shape

CPU = torch.device("cpu")
TINY = Shape("tiny", 16, 2, ((128, 2), (512, 1)), ((128, 2),), has_targets=True)


class Clock:
    """Simulate a clock: each reading is one second later than the last. Slow code moves the clock forward."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


def layer(mode: str = "train", length: int = 512) -> Setting:
    """Return the setting of a tiny layer that has targets."""
    return Setting("layer", mode, TINY, length, 1, CPU)
