"""What a check says, and how the answers are printed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclasses.dataclass(frozen=True)
class Check:
    """One answer: `found` is what is there, `mend` how to cure it (empty when nothing is to be done)."""

    name: str
    status: Status
    found: str
    mend: str = ""


def as_json(checks: Iterable[Check]) -> str:
    """One list of flat objects."""
    return json.dumps([dataclasses.asdict(check) for check in checks], indent=1)


def as_text(checks: Iterable[Check]) -> str:
    """A line a check, the cure below it, and a closing line with the counts."""
    checks = list(checks)
    lines = []
    for check in checks:
        lines.append(f"{check.status:<5}{check.name:<15}{check.found}")
        if check.mend:
            lines.append(f"{'':<20}-> {check.mend}")
    counts = {status: sum(check.status == status for check in checks) for status in ("ok", "warn", "fail")}
    return "\n".join([*lines, ", ".join(f"{count} {status}" for status, count in counts.items())])
