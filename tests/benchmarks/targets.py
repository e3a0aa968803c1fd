"""Read the targets of targets.toml: what each encoding may cost, relative to the same layer without positions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .steps import Setting, Subject

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
#: By how much a ratio may exceed its target on a shared machine.
NOISE: float = _DATA["noise"]
FAMILIES: Mapping[str, Mapping[str, Any]] = _DATA["families"]


def subjects() -> Iterator[str]:
    """Yield every encoding that has targets, with its options."""
    for family in FAMILIES.values():
        yield from family["members"].split()


def family_of(subject: Subject) -> Mapping[str, Any]:
    """Return the family whose targets apply to a subject; an encoding that is not listed may be content-free."""
    for family in FAMILIES.values():
        if str(subject) in family["members"].split():
            return family
    return FAMILIES["content-free"] if subject.hooks() <= {"embed", "bias"} else {}


def target_of(subject: Subject, setting: Setting) -> float | None:
    """Return the largest ratio that a measurement should have, or None if there is no target.

    There are targets for layers of the width 768 without dropout.
    """
    if setting.dim != 768 or setting.dropout:
        return None
    own = family_of(subject).get(setting.device.type, {})
    if setting.what != "layer":
        return own.get(setting.what) if setting.length == 512 else None
    return own.get(f"layer-{setting.length}", {}).get(setting.mode)
