"""Read the presets of the architectures from `config/model/*.yaml`, which Hydra reads too."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

FOLDER = Path(__file__).parents[1] / "config" / "model"


@functools.cache
def presets() -> dict[str, dict[str, Any]]:
    """Return the options that each architecture sets, and as `_name` the model; further options have their defaults."""
    return {path.stem: OmegaConf.to_container(OmegaConf.load(path)) for path in sorted(FOLDER.glob("*.yaml"))}
