"""Read the commands that a recipe would run."""

from __future__ import annotations

import shlex
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

from recipes.lib import runs

ROOT = Path(__file__).resolve().parents[1]


def run(recipe: str, *words: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a recipe to its end, whatever its exit status."""
    command = [ROOT / "recipes" / recipe / "run.sh", *words]
    return subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)


def settings(recipe: str, preset: str) -> dict[str, Any]:
    return runs.settings(run(recipe, "--preset", preset, "--settings").stdout)


def planned(recipe: str, *words: object, cwd: Path = ROOT) -> dict[str, list[str]]:
    """Return the command of each step of a dry run."""
    process = run(recipe, *words, "--output", "OUT", "--dry-run", cwd=cwd)
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    pairs = pairwise(lines)
    return {title[2:]: shlex.split(command) for title, command in pairs if title.startswith("# ")}


def values(command: list[str], flag: str) -> list[str]:
    """Return the words after the last occurrence of a flag, up to the next flag."""
    place = len(command) - command[::-1].index(flag)
    rest = [number for number, word in enumerate(command) if number >= place and word.startswith("--")]
    return command[place : rest[0] if rest else None]
