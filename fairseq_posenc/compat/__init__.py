"""fairseq's faults on this stack, mended: one function a fault, each logged when it first takes effect.

Imports fairseq only inside functions, so that the encodings work without it. A fault is mended where only one
outcome can be meant; everything else stays fairseq's.
"""

from __future__ import annotations

from .checkpoints import CheckpointError, UnsafeCheckpointError, safe_load

__all__ = ["CheckpointError", "UnsafeCheckpointError", "apply", "safe_load"]


def apply() -> None:
    """Apply every mend; safe to call again."""
    from .batching import keep_tail_batch
    from .broadcast import broadcast_plain_objects
    from .checkpoints import load_safely
    from .command_line import read_options_as_meant, refuse_second_copy
    from .copies import copy_whole
    from .fasta import refuse_paths_that_shells_read
    from .ngram import block_ngrams
    from .numpy2 import restore_numpy_names
    from .resuming import finish_once, resume_exactly
    from .shutdown import stop_buffer_threads
    from .spawn import refuse_to_spawn_nothing
    from .task_states import ask_all_workers

    keep_tail_batch()
    block_ngrams()
    restore_numpy_names()
    stop_buffer_threads()
    load_safely()
    copy_whole()
    broadcast_plain_objects()
    read_options_as_meant()
    refuse_second_copy()
    refuse_to_spawn_nothing()
    ask_all_workers()
    resume_exactly()
    finish_once()
    refuse_paths_that_shells_read()
