"""Read the options of both benchmarks, and store measurements as flat rows and as a table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate


def parser(about: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of both benchmarks; the docstring `about` ends with examples."""
    title, _, examples = (about or "").partition("\n\n")
    form = argparse.RawDescriptionHelpFormatter
    command = argparse.ArgumentParser(description=title, epilog=examples, formatter_class=form)
    add = command.add_argument
    add("--device", choices=("cpu", "cuda"), default="cpu", help="CPU (float32) or GPU (bfloat16).")
    add("--compile", type=int, metavar="N", help="Compile in N processes before anything is measured.")
    add("--json", action="store_true", help="Print one JSON list of flat objects and nothing else.")
    add("--output", type=Path, metavar="DIR", help="Folder for the results.")
    return command


def parsed(command: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    args = command.parse_args(argv)
    if args.device == "cuda" and not torch.cuda.is_available():
        command.error("--device cuda: torch sees no GPU. Leave out the flag to measure on the CPU.")
    return args


class Results:
    """Collect rows, and store each at once if there is a folder, so that a run that was stopped can go on.

    Args:
        folder: Folder for NAME.jsonl and NAME.md, or None.
        name: Name of the files, without extension.
        device: Device of the measurement. One of the facts about it, which become part of every row, is the load.
        keys: Fields that tell rows apart.
    """

    def __init__(self, folder: Path | None, name: str, device: str, keys: Sequence[str]) -> None:
        self.file, self.facts, self.keys = folder and folder / f"{name}.jsonl", machine(device), keys
        self.rows: list[dict[str, Any]] = []
        if self.file:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.touch()
            stored = map(json.loads, self.file.read_text(encoding="utf-8").splitlines())
            self.rows = list({tuple(row[key] for key in keys): row for row in stored}.values())

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row with the same keys and without an error was stored."""
        return any(all(old[key] == row[key] for key in self.keys) and not old.get("error") for old in self.rows)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row, or replace the one with the same keys, and store it."""
        self.rows = [old for old in self.rows if any(old[key] != row[key] for key in self.keys)]
        self.rows.append({**row, **self.facts})
        if self.file:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self.rows[-1]) + "\n")

    def show(self, columns: Sequence[str], as_json: bool) -> None:
        """Print the rows as JSON or as a Markdown table with the facts below, and write the table to the folder."""
        cells = [[row.get(column) for column in columns] for row in self.rows]
        facts = "; ".join(f"{name} {value}" for name, value in self.facts.items())
        text = f"{tabulate(cells, columns, 'github', floatfmt='.3f')}\n\nMeasured with {facts}.\n"
        if self.file:
            self.file.with_suffix(".md").write_text(text, encoding="utf-8")
        print(json.dumps(self.rows, indent=1) if as_json else text)


def machine(device: str) -> dict[str, Any]:
    """Return the facts about the machine and the software."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else f"CPU, {platform.machine()}",
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip(),
    }
