"""Fix faults of fairseq, many of which occur with current versions of Python, torch and numpy.

docs/fairseq-corrections.md lists the faults. A fault is fixed only where there is no doubt about what fairseq should
do; everything else stays as in fairseq. The files of this package import fairseq only inside functions, so that the
encodings work without fairseq.
"""

from __future__ import annotations

from importlib import import_module

from .checkpoints import CheckpointError, UnsafeCheckpointError, safe_load

__all__ = ["CheckpointError", "UnsafeCheckpointError", "apply", "safe_load"]

#: files of this folder that fix faults, each with a function `mend`
MENDS = ("batches", "checkpoints", "commands", "data", "generation", "literals", "saving", "training")


def apply() -> None:
    """Apply every fix; a second call has no effect."""
    for name in MENDS:
        import_module(f".{name}", __name__).mend()
