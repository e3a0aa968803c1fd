"""A clock that does not depend on the machine, and a layer so small that it takes no time."""

from __future__ import annotations

import torch

from fairseq_posenc.commands.bench.settings import Setting, Shape

CPU = torch.device("cpu")
TINY = Shape("tiny", 16, 2, ((128, 2), (512, 1)), ((128, 2),), has_targets=True)


class Clock:
    """Every look at it is a second after the last; whoever is slow moves it on."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


def layer(mode: str = "train", length: int = 512) -> Setting:
    """A tiny layer, of which there are targets."""
    return Setting("layer", mode, TINY, length, 1, CPU)
