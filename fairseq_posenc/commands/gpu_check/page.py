"""Write the page gpu.md of `gpu-check` from the rows of its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..peer_layers import ORIGINS
from .cost import peer_names
from .results import Results, Row

UNMEASURED = "not measured on a GPU"
NOT_RUN = "This part was not run."


def page(results: Results) -> str:
    """Return the Markdown of all parts."""
    setting = ", ".join(f"{name} {value}" for name, value in results.setting.items())
    parts = ["# GPU check", f"{setting}.", "## Failures", _failures(results.failures)]
    parts += ["## Laws", *_laws(results.of("laws")), "## Drift from float64", *_drift(results.of("drift"))]
    parts += ["## Cost", *_cost(results.of("cost")), _left_out()]
    return "\n\n".join([*parts, "## Refused", _refused(results.rows)]) + "\n"


def _failures(rows: Sequence[Row]) -> str:
    return "\n".join(f"- {row['part']}: {row['task']}: {row['text']}" for row in rows) or "None."


def _refused(rows: Sequence[Row]) -> str:
    """Return the reasons why cases were refused, and the cases with each reason."""
    names = dict[str, list[str]]()
    for row in rows:
        if "refused" in row:
            names.setdefault(row["refused"], []).append(row["task"])
    return (
        "\n".join(f"- {reason} ({len(tasks)} cases: {', '.join(tasks)})" for reason, tasks in names.items()) or "None."
    )


def _left_out() -> str:
    """Return the layers of other packages that cannot be measured here, with the reasons, on one line."""
    reasons = dict[str, list[str]]()
    for name in peer_names():
        if missing := ORIGINS[name].missing():
            reasons.setdefault(missing, []).append(name)
    listed = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
    return f"Layers of other packages that were not measured: {listed or 'none'}."


def _laws(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table that shows how many cases pass each check of the part `laws`, with one column per precision."""
    if not rows:
        yield NOT_RUN
        return
    rows = [row for row in rows if "refused" not in row]
    precisions = list(dict.fromkeys(row["precision"] for row in rows if "precision" in row))
    lines = []
    for law in dict.fromkeys(row["law"] for row in rows if "law" in row):
        own = [[row["ok"] for row in rows if row.get("law") == law and row["precision"] == one] for one in precisions]
        lines.append([law, *(f"{sum(ok)} of {len(ok)}" for ok in own)])
    yield (
        "Number of cases that pass each check. A case is an encoding, with its default options or with `clip`, in an "
        "encoder or in a decoder."
    )
    yield _table(["law", *precisions], lines)


def _drift(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table with the drifts (relative rms) of outputs, gradients of projections and gradients of tables."""
    done = [row for row in rows if "precision" in row]
    if not done:
        yield NOT_RUN
        return
    names = ("encoding", "options", "stack", "precision", "output_rms", "projections_rms", "tables_rms")
    yield _table(names, [[_cell(row[name]) for name in names] for row in done])


def _cost(rows: Sequence[Row]) -> Iterator[str]:
    """Yield one table per mode and length: time and memory relative to a layer without positions."""
    done = [row for row in rows if "ratio" in row]
    if not done:
        yield NOT_RUN
    for mode, length in dict.fromkeys((row["mode"], row["length"]) for row in done):
        own = [row for row in done if (row["mode"], row["length"]) == (mode, length)]
        lines = [
            [row["encoding"], row["options"], row["path"], _cell(row["ratio"]), _cell(row["ms"]), _memory(row)]
            for row in own
        ]
        yield f"### {mode}, n = {length}, {own[0]['batch']} samples"
        yield _table(["encoding", "options", "path", "time", "ms", "memory"], lines)


def _memory(row: Row) -> str:
    return UNMEASURED if row["memory"] is None else _cell(row["memory"])


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
