"""List the settings and flags in which a run differs from the preset that reproduces a paper's table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

Settings = Mapping[str, str | list[str]]
#: Settings that do not change a score, or that the rows of the table show.
FREE_SETTINGS = {
    *("recipe", "preset", "output", "pos_enc", "jobs", "launch", "processes", "nodes", "rendezvous"),
    *("device", "threads", "until", "batches", "seeds", "raw", "workers"),
}
#: Flags that do not change a score. The batch size is compared as a whole.
FREE_FLAGS = {
    *("log-interval", "num-workers", "data-buffer-size", "required-batch-size-multiple", "ddp-backend"),
    *("disable-validation", "max-tokens-valid", "batch-size-valid", "no-save-optimizer-state", "quiet"),
    *("tensorboard-logdir", "wandb-project", "log-file", "no-progress-bar", "keep-best-checkpoints", "buffer-size"),
}
BATCH = ("max-tokens", "batch-size")
#: They matter only if the best checkpoint or a mean of checkpoints is scored, because they decide which ones exist.
INTERVALS = {"save-interval", "save-interval-updates", "validate-interval", "validate-interval-updates"}


def flags(words: Sequence[str]) -> dict[str, str]:
    """Return the flags in a list of words and their values. As for argparse, the last of two equal flags counts."""
    values: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word[2:]
            values[name] = ""
        else:
            values[name] = f"{values.get(name, '')} {word}".strip()
    return {name: value or "true" for name, value in values.items()}


def differences(ours: Settings, preset: Settings, same: Collection[str] = ()) -> list[str]:
    """Describe what differs from the preset, such as `--train.lr 0.1, not 0.2` or `1 seed, not 5`.

    Args:
        same: Names of further settings and flags that do not count.
    """
    skipped = {*FREE_FLAGS, *BATCH, *same}
    found = []
    for name, value in preset.items():
        own, option = ours.get(name, ""), f"--{name.replace('_', '-')}"
        if isinstance(value, list):
            mine, theirs = flags(_words(own)), flags(value)
            changed = sorted(
                flag for flag in {*mine, *theirs} - skipped if not _equal(mine.get(flag), theirs.get(flag))
            )
            found += [_text(f"{option}.{flag}", mine.get(flag), theirs.get(flag)) for flag in changed]
        elif name not in FREE_SETTINGS and option[2:] not in same and not _equal(own, value):
            found.append(_text(option, own, value))
    counts = [len(str(each.get("seeds", "")).split(",")) for each in (ours, preset)]
    if counts[0] != counts[1]:
        found.append(f"{counts[0]} seed{'s' * (counts[0] > 1)}, not {counts[1]}")
    batches = [batch(each) for each in (ours, preset)]
    return found if batches[0] == batches[1] else [*found, f"{_shown(batches[0])} per update, not {_shown(batches[1])}"]


def batch(settings: Settings) -> dict[str, float]:
    """Return the size of an update: the number of batches times the number of tokens and sentences of a batch."""
    values, batches = flags(_words(settings.get("train", []))), float(str(settings.get("batches", 1)))
    units = dict(zip(BATCH, ("tokens", "sentences"), strict=True))
    return {units[name]: float(values[name]) * batches for name in BATCH if name in values}


def _shown(sizes: Mapping[str, float]) -> str:
    return " and ".join(f"{size:,.0f} {unit}" for unit, size in sizes.items()) or "an unknown size"


def _words(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else []


def _equal(one: object, other: object) -> bool:
    try:
        return float(str(one)) == float(str(other))
    except ValueError:
        return one == other


def _text(option: str, ours: object, theirs: object) -> str:
    return f"{option} {ours or 'unset'}, not {theirs or 'unset'}"
