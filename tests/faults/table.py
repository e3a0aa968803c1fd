"""Keep the results of `make torture` and its kin, and write their table to docs/reliability.md."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS, PAGE = ROOT / "results" / "reliability", ROOT / "docs" / "reliability.md"
HEAD = """# Reliability

Some damage is not noticed, because the format of the file has no checksums: wrong tokens in a `.bin` file of binarised
data; wrong letters or counts in a `dict.txt` that is still a valid dictionary; wrong weights in a checkpoint of torch's
old format, in a checkpoint written with `torch.serialization.set_crc32_options(False)`, and in a safetensors file whose
folder has no `SHA256SUMS`. The plugin logs a message when it loads a checkpoint without checksums. To find such damage,
run `sha256sum` when the files are new, keep its output, and compare the files with it later by `sha256sum --check`.

Losses are compared with stored ones (`tests/recipes/curves`), to four digits or three decimals, for the preset `smoke`
of every recipe; `PYTHONPATH=. python tests/support_curves.py` stores them again. Until now, this ran on one kind of
machine only: Linux on x86-64, two cores, torch 2.13 without a GPU. `tests/kept` keeps a small language model that later
versions must load and continue with the same text.

`make torture` tests the faults of this table and runs the tests that are marked `long`; each test is one trial. `make
versions` tests the core with the oldest and the newest torch (with torch 2.5, without `torch.compile` of a layer to a
single graph and `torch.export`). These commands, `make mutants` and `make soak` write this page. They continue after an
interruption, except `make soak`; to repeat finished trials, delete `results/reliability`.

| fault | trials | survived |
|---|---|---|
"""


def done(fault: str) -> bool:
    """Return whether an earlier run has made the trials of this fault, and all of them survived."""
    row = _row(fault)
    return row is not None and 0 < row["trials"] == row["survived"]


def record(fault: str, trials: int, survived: int) -> None:
    """Store the number of trials and of survived ones, and write the page."""
    path = _path(fault)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"fault": fault, "trials": trials, "survived": survived}), encoding="utf-8")
    partial.replace(path)
    print(f"{fault}: {survived} of {trials} survived", flush=True)
    write()


def show(faults: Iterable[str], started: float) -> int:
    """Print the rows of a command, and return its exit status: 1 if a trial of them did not survive or was not made.

    Args:
        faults: The faults of the command.
        started: What `time.monotonic()` returned at the start of the command.
    """
    faults = list(faults)
    print("| fault | trials | survived |\n|---|---|---|")
    for row in filter(None, map(_row, faults)):
        print(_line(row))
    print(f"This run took {(time.monotonic() - started) / 60:.1f} minutes.", flush=True)
    return int(not all(map(done, faults)))


def add(name: str, text: str) -> None:
    """Store a part of the page, a title and a text, and write the page with it below the table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    write()


def write() -> None:
    """Write the page: the rows and parts that are stored, and those of the page that are stored elsewhere."""
    top, *parts = PAGE.read_text(encoding="utf-8").split("\n## ")
    rows = {line.split(" | ")[0]: line for line in re.findall(r"^\| .+ \| [\d,]+ \| [\d,]+ \|$", top, re.MULTILINE)}
    for path in sorted(RESULTS.glob("*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        rows[f"| {row['fault']}"] = _line(row)
    texts = [path.read_text(encoding="utf-8") for path in sorted(RESULTS.glob("*.md"))]
    by_title = {part.partition("\n")[0]: part.strip() for part in [*parts, *texts]}
    lines = "".join(f"{rows[fault]}\n" for fault in sorted(rows))
    PAGE.write_text(HEAD + lines + "".join(f"\n## {by_title[title]}\n" for title in sorted(by_title)), encoding="utf-8")


def _line(row: dict[str, Any]) -> str:
    return f"| {row['fault']} | {row['trials']:,} | {row['survived']:,} |"


def _row(fault: str) -> dict[str, Any] | None:
    """Return the stored row of a fault, or None if its trials have not been made."""
    path = _path(fault)
    if not path.exists():
        return None
    row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return row


def _path(fault: str) -> Path:
    return RESULTS / f"{''.join(letter if letter.isalnum() else '-' for letter in fault)}.json"
