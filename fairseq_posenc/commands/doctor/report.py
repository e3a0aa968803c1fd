"""Define the result of a check, and format all results."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclasses.dataclass(frozen=True)
class Check:
    """Hold the result of one check: `found` says what was found, `mend` how to repair it (empty: no repair needed)."""

    name: str
    status: Status
    found: str
    mend: str = ""


def as_json(checks: Iterable[Check]) -> str:
    """Return the checks as one JSON list of flat objects."""
    return json.dumps([dataclasses.asdict(check) for check in checks], indent=1)


def as_text(checks: Iterable[Check]) -> str:
    """Return one line per check, with the repair below it, and a last line with the counts."""
    checks = list(checks)
    lines = []
    for check in checks:
        lines.append(f"{check.status:<5}{check.name:<15}{check.found}")
        if check.mend:
            lines.append(f"{'':<20}-> {check.mend}")
    counts = {status: sum(check.status == status for check in checks) for status in ("ok", "warn", "fail")}
    return "\n".join([*lines, ", ".join(f"{count} {status}" for status, count in counts.items())])
