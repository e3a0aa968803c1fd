"""Silence Hydra's warnings about fairseq, because users cannot change their cause."""

from __future__ import annotations

import warnings


def mend() -> None:
    """Hide Hydra's 20 lines of warnings about outdated calls in fairseq."""
    warnings.filterwarnings("ignore", category=UserWarning, module=r"hydra\.")
    warnings.filterwarnings("ignore", message=r"\s*'config' is validated against ConfigStore", category=UserWarning)
