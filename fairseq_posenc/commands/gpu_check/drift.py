"""Measure the part `drift`: how far results in half precision and autocast are from float64 on the path of `auto`."""

from __future__ import annotations

from ...encodings import specs
from ..drift_cases import SEED, Case, cases
from .results import Row, Task
from .subjects import Sizes

KEPT = ("encoding", "options", "stack", "precision", "output_rms", "projections_rms", "tables_rms")


def tasks(sizes: Sizes) -> list[Task]:
    """Return one task for each case: an encoding with its options, in an encoder or a decoder."""
    chosen = dict.fromkeys(subject.encoding for subject in sizes.subjects()) if sizes.few else specs()
    return [Task(str(case), lambda case=case: _rows(case, sizes)) for case in cases(list(chosen), sizes.drift_length)]  # type: ignore[misc]


def _rows(case: Case, sizes: Sizes) -> list[Row]:
    rows = []
    for row in case.rows(sizes.device, SEED):
        ok = bool(row["near"])
        text = "" if ok else f"{row['precision']}: the drift from float64 exceeds its bound, or is not finite"
        rows.append({"ok": ok, "text": text, **{name: row[name] for name in KEPT}})
    return rows
