"""Fix faults of fairseq, many of which occur with current versions of Python, torch and numpy.

Each fault is fixed in a file of its own, and most fixes are logged when they first take effect. A fault is fixed only
where there is no doubt about what fairseq should do; everything else stays as in fairseq. The files of this package
import fairseq only inside functions, so that the encodings work without fairseq.
"""

from __future__ import annotations

from importlib import import_module

from .checkpoints import CheckpointError, UnsafeCheckpointError, safe_load

__all__ = ["CheckpointError", "UnsafeCheckpointError", "apply", "safe_load"]

#: files of this folder that fix a fault, each with a function `mend`
MENDS = """
batching lengths ngram numpy2 shutdown checkpoints saving broadcast command_line spawn task_states resuming fasta
divergence refusals quiet dictionaries data_files text_lines pairs diverse_beam unknown_words output_lengths
"""


def apply() -> None:
    """Apply every fix; a second call has no effect."""
    for name in MENDS.split():
        import_module(f".{name}", __name__).mend()
