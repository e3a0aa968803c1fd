"""Run recipes, as a user would."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from golden import ROOT, environment, recipes

NAMES = [recipe.name for recipe in recipes()]
RECIPES = {recipe.name: recipe for recipe in recipes()}


def run(recipe: Path, *words: object, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a recipe to its end, whatever its exit status."""
    command = [str(recipe / "run.sh"), *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=environment(**variables), capture_output=True, text=True)


def refused(recipe: Path, *words: object, **variables: str) -> str:
    """Return the one line with which a recipe refuses its options."""
    process = run(recipe, *words, **variables)
    assert process.returncode == 1, process.stdout
    assert process.stdout == ""
    [line] = process.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def ran(printed: str) -> list[str]:
    """Return the steps that a run started."""
    return re.findall(r"\] (\S+) \.\.\.$", printed, re.MULTILINE)
