"""Run one process of a distributed training and save its weights: `-m integration.rank OUTPUT ARGUMENTS`."""

from __future__ import annotations

import sys
from typing import Any

import fairseq_cli.train
import torch

from .support import Recorder


class Keeper(Recorder):
    """Save the losses and the parameters after each update."""

    def train_step(self, *args: Any, **named: Any) -> Any:
        output = super().train_step(*args, **named)
        torch.save({"losses": self.losses, "model": self.get_model().state_dict()}, OUTPUT)
        return output


if __name__ == "__main__":
    OUTPUT = sys.argv.pop(1)
    fairseq_cli.train.Trainer = Keeper
    fairseq_cli.train.cli_main()
