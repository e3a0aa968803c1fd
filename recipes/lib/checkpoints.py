"""Load the model of a fairseq checkpoint, and read its number of updates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils


@dataclass
class Loaded:
    """Hold a model that is ready to be evaluated, with its configuration and fairseq task."""

    model: Any
    config: Any
    task: Any
    on_gpu: bool


def load(checkpoint: Path, overrides: dict[str, Any], *, cpu: bool) -> Loaded:
    """Load a checkpoint's model for evaluation, on a GPU if there is one and `cpu` is false."""
    models, config, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides)
    on_gpu = torch.cuda.is_available() and not cpu
    model = models[0].eval()
    return Loaded(model.cuda() if on_gpu else model, config, task, on_gpu)


def updates(checkpoint: Path) -> int:
    """Return the number of updates after which the checkpoint was saved."""
    state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))
    return int(state["optimizer_history"][-1]["num_updates"])
