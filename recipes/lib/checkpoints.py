"""What a checkpoint of fairseq's says of its training."""

from __future__ import annotations

from pathlib import Path

from fairseq import checkpoint_utils


def updates(checkpoint: Path) -> int:
    """How many made it."""
    state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))
    return int(state["optimizer_history"][-1]["num_updates"])
