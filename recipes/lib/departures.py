"""In what a run departs from a paper's protocol, as a preset has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import Flags

#: flags of fairseq that change no number but where the best or several checkpoints count: they decide which there are
INTERVALS = {"save-interval", "save-interval-updates", "validate-interval", "validate-interval-updates"}
#: those that change no number, or (batches) are looked at together
FREE = {
    *("max-tokens", "log-interval", "num-workers", "data-buffer-size", "required-batch-size-multiple", "ddp-backend"),
    *("disable-validation", "max-tokens-valid", "batch-size-valid", "no-save-optimizer-state"),
    *("tensorboard-logdir", "wandb-project", "log-file"),
    *("no-progress-bar", "keep-best-checkpoints", "buffer-size", "batch-size", "quiet"),
}


def changed(preset: Flags, flags: Flags, *, intervals: bool = False) -> set[str]:
    """Return the flags that differ from a preset's; a flag that is false counts as not given.

    Args:
        intervals: also compare how often checkpoints are saved, because the best one or the mean of several counts.
    """
    names = {*preset, *flags} - FREE - (set() if intervals else INTERVALS)
    return {name for name in names if preset.get(name, False) != flags.get(name, False)}


def of_flags(preset: Flags, flags: Flags, table: str = "train", *, intervals: bool = False) -> list[str]:
    """Return the same in words: `--train.lr 0.1, not 0.2`."""
    return [
        f"--{table}.{name} {_shown(flags.get(name, False))}, not {_shown(preset.get(name, False))}"
        for name in sorted(changed(preset, flags, intervals=intervals))
    ]


def of_settings(preset: Mapping[str, Any], settings: object) -> list[str]:
    """Return the settings that differ from a preset's, in words: `--epochs 2, not 3`.

    Args:
        preset: the names with `_`.
    """
    given = {name: getattr(settings, name) for name in preset}
    return [
        f"--{name.replace('_', '-')} {_shown(value)}, not {_shown(preset[name])}"
        for name, value in given.items()
        if value != preset[name]
    ]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    return "unset" if value is False else f"{value:g}" if isinstance(value, float) else str(value)
