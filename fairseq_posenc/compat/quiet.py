"""Silence what Hydra prints about fairseq, because users cannot change it."""

from __future__ import annotations

import warnings


def mend() -> None:
    """Hide Hydra's 20 lines about fairseq's old calls."""
    warnings.filterwarnings("ignore", category=UserWarning, module=r"hydra\.")
    warnings.filterwarnings("ignore", message=r"\s*'config' is validated against ConfigStore", category=UserWarning)
