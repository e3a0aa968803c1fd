"""Run one process of a distributed training and save its weights: `-m integration.rank OUTPUT ARGUMENTS`."""

from __future__ import annotations

import sys
from typing import Any

import fairseq_cli.train
import torch
from fairseq.logging import metrics

from .support import Recorder


class Keeper(Recorder):
    """Save the losses and the parameters after each update."""

    def train_step(self, *args: Any, **named: Any) -> Any:
        output = super().train_step(*args, **named)
        logged = {name: x for name, x in metrics.get_smoothed_values("train_inner").items() if name.endswith("coder_1")}
        torch.save({"losses": self.losses, "model": self.get_model().state_dict(), "logged": logged}, OUTPUT)
        return output


if __name__ == "__main__":
    OUTPUT = sys.argv.pop(1)
    fairseq_cli.train.Trainer = Keeper
    fairseq_cli.train.cli_main()
