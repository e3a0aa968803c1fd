"""Read the runner's records about the stages of a run. Stages that were run by hand have no record."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import mean

from .recipe import Row
from .stages import MARKERS, marker_name, read_marker


def cost(output: Path, *stages: str) -> Row:
    """Return the mean duration of the stages in minutes, the command of the first stage and the commits of all stages.

    A value is None if the runner did not record it.

    Args:
        output: Folder of the run.
        stages: Names of the stages, such as `train:shaw`.
    """
    markers = [read_marker(output / MARKERS / f"{marker_name(stage)}.done") for stage in stages]
    recorded = [marker for marker in markers if marker]
    return {
        "minutes": round(mean(marker["seconds"] for marker in recorded) / 60, 1) if recorded else None,
        "command": markers[0].get("command"),
        "commit": " then ".join(dict.fromkeys(marker["commit"] for marker in recorded)) or None,
    }


def busy_minutes(output: Path) -> float | None:
    """Return for how many minutes at least one stage of a run was running, or None if nothing was recorded."""
    markers = [read_marker(path) for path in (output / MARKERS).glob("*.done")]
    return covered((marker["started"], marker["ended"]) for marker in markers) / 60 if markers else None


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the total time that the spans cover. Overlapping spans count once, and pauses do not count."""
    total, reached = 0.0, 0.0
    for started, ended in sorted(spans):
        total += max(0.0, ended - max(started, reached))
        reached = max(reached, ended)
    return total
