"""List the settings and flags in which a run differs from a paper's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import Flags

#: Intervals of fairseq that matter only if the best checkpoint or several are used: they decide which ones exist.
INTERVALS = {"save-interval", "save-interval-updates", "validate-interval", "validate-interval-updates"}
#: Flags that do not change a score, or that belong to the batch size, which is compared as a whole.
FREE = {
    *("max-tokens", "log-interval", "num-workers", "data-buffer-size", "required-batch-size-multiple", "ddp-backend"),
    *("disable-validation", "max-tokens-valid", "batch-size-valid", "no-save-optimizer-state"),
    *("tensorboard-logdir", "wandb-project", "log-file"),
    *("no-progress-bar", "keep-best-checkpoints", "buffer-size", "batch-size", "quiet"),
}


def changed(preset: Flags, flags: Flags, *, intervals: bool = False) -> set[str]:
    """Return the names of the flags that differ from a preset. A flag that is false is treated as missing.

    Args:
        preset: Flags of the preset.
        flags: Flags of the run.
        intervals: Whether to also compare the flags that set how often a run validates and saves checkpoints. The
            frequency of saving matters if the best checkpoint or a mean of checkpoints is scored.
    """
    names = {*preset, *flags} - FREE - (set() if intervals else INTERVALS)
    return {name for name in names if preset.get(name, False) != flags.get(name, False)}


def of_flags(preset: Flags, flags: Flags, table: str = "train", *, intervals: bool = False) -> list[str]:
    """Describe the flags that differ from a preset, such as `--train.lr 0.1, not 0.2`."""
    return [
        f"--{table}.{name} {_shown(flags.get(name, False))}, not {_shown(preset.get(name, False))}"
        for name in sorted(changed(preset, flags, intervals=intervals))
    ]


def of_settings(preset: Mapping[str, Any], settings: object) -> list[str]:
    """Describe the settings that differ from a preset, such as `--epochs 2, not 3`.

    Args:
        preset: Values of the preset by setting name, with `_` instead of `-`.
        settings: The settings of the run.
    """
    values = {name: getattr(settings, name) for name in preset}
    return [
        f"--{name.replace('_', '-')} {_shown(value)}, not {_shown(preset[name])}"
        for name, value in values.items()
        if value != preset[name]
    ]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    return "unset" if value is False else f"{value:g}" if isinstance(value, float) else str(value)
