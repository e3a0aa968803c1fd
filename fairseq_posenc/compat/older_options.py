"""Rename the options of checkpoints that older versions of this plugin wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rename(state: Any) -> None:
    """Write the current names of the model's options into the configuration of a checkpoint, in place.

    Until `--copy-mechanism` replaced `--no-copy`, models for question generation copied words with the gate.
    """
    if not isinstance(state, Mapping):
        return
    settings = state["cfg"].get("model") if isinstance(state.get("cfg"), Mapping) else state.get("args")
    options = settings if isinstance(settings, dict) else getattr(settings, "__dict__", {})
    if "no_copy" in options:
        options["copy_mechanism"] = "none" if options.pop("no_copy") else "gate"
