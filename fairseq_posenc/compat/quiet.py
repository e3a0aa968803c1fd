"""Silence messages about fairseq's own code, because users cannot change their cause."""

from __future__ import annotations

import logging
import os
import warnings


def mend() -> None:
    """Hide warnings about outdated calls in fairseq: 20 lines from Hydra, and torch's warnings about autocast."""
    warnings.filterwarnings("ignore", category=UserWarning, module=r"hydra\.")
    warnings.filterwarnings("ignore", message=r"\s*'config' is validated against ConfigStore", category=UserWarning)
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"fairseq\.")


def in_command() -> None:
    """Hide debug messages in fairseq's commands, and a warning of torch on machines without a GPU.

    Importing fairseq sets the root logger to DEBUG (models/wav2vec/wav2vec2_classification.py:25), so the level INFO
    that fairseq-generate and fairseq-interactive ask for later has no effect. LOGLEVEL=DEBUG still shows the messages.
    """
    root = logging.getLogger()
    if root.level == logging.DEBUG and "LOGLEVEL" not in os.environ:
        root.setLevel(logging.INFO)
    # fairseq always asks for pinned memory (data/iterators.py:509), which needs a GPU.
    warnings.filterwarnings("ignore", message="'pin_memory' argument is set as true but no accelerator is found")
