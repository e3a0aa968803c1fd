"""Define the result of a check, and format all results."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclasses.dataclass(frozen=True)
class Check:
    """Hold the result of a check: `found` says what was found, and `mend` how to repair it (empty if all is well)."""

    name: str
    status: Status
    found: str
    mend: str = ""


def as_json(checks: Iterable[Check]) -> str:
    """Return the checks as a JSON list with one object for each check."""
    return json.dumps([dataclasses.asdict(check) for check in checks], indent=1)


def as_text(checks: Iterable[Check]) -> str:
    """Return a line for each check, with the repair below it, and a last line that counts the results by status."""
    checks = list(checks)
    lines = []
    for check in checks:
        lines.append(f"{check.status:<5}{check.name:<15}{check.found}")
        if check.mend:
            lines.append(f"{'':<20}-> {check.mend}")
    counts = {status: sum(check.status == status for check in checks) for status in ("ok", "warn", "fail")}
    return "\n".join([*lines, ", ".join(f"{count} {status}" for status, count in counts.items())])
