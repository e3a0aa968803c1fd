"""fairseq's faults on this stack, mended: one file a fault, each logged when it first takes effect.

Imports fairseq only inside functions, so that the encodings work without it. A fault is mended where only one
outcome can be meant; everything else stays fairseq's.
"""

from __future__ import annotations

from importlib import import_module

from .checkpoints import CheckpointError, UnsafeCheckpointError, safe_load

__all__ = ["CheckpointError", "UnsafeCheckpointError", "apply", "safe_load"]

#: the files of this folder that mend a fault, each with a function `mend`
MENDS = "batching ngram numpy2 shutdown checkpoints copies broadcast command_line spawn task_states resuming fasta"


def apply() -> None:
    """Apply every mend; safe to call again."""
    for name in MENDS.split():
        import_module(f".{name}", __name__).mend()
