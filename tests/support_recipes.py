"""Run recipes as a user would, and show what their presets run, in a form that is the same on every machine.

`python tests/support_recipes.py --write [RECIPE...]` writes tests/recipes/golden/RECIPE/PRESET.txt again;
test_recipe_options.py compares these files with the recipes. Options that a preset needs, such as a checkpoint, stand
in tests/recipes/golden/RECIPE/arguments, one preset a line: `PRESET OPTIONS` (`*` means all presets of the recipe).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
TOY = ROOT / "tests" / "recipes" / "toy"
GOLDEN = ROOT / "tests" / "recipes" / "golden"
#: The PATH of a machine with one GPU that has bf16: the `nvidia-smi` of a folder answers for it.
WITH_GPU = f"{TOY / 'gpu'}:{os.environ['PATH']}"
#: The folders of all recipes, and of the toy recipe, by name.
RECIPES = {path.parent.name: path.parent for path in [*sorted(ROOT.glob("recipes/*/run.sh")), TOY / "run.sh"]}


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a recipe: that of the tests, without a choice of GPUs, and these variables."""
    kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return {**kept, **variables}


def run(recipe: Path | str, *words: object, cwd: Path = ROOT, **variables: str) -> CompletedProcess[str]:
    """Run a recipe, which is a folder or a name, to its end, whatever its exit status."""
    command = [str(RECIPES.get(str(recipe), Path(recipe)) / "run.sh"), *map(str, words)]
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


def called(program: Any, *words: object) -> None:
    """Call the `main` of a program of a recipe in this process."""
    with mock.patch.object(sys, "argv", [program.__name__, *map(str, words)]):
        program.main()


# -- dry runs


def settings(recipe: str, preset: str) -> dict[str, Any]:
    from recipes.lib import runs

    return runs.settings(run(recipe, "--preset", preset, "--settings").stdout)


def planned(printed: str) -> dict[str, list[str]]:
    """Return the command of each step that a dry run printed."""
    pairs = pairwise(printed.splitlines())
    return {title[2:]: shlex.split(command) for title, command in pairs if title.startswith("# ")}


def values(command: list[str], flag: str) -> list[str]:
    """Return the words after the last occurrence of a flag, up to the next flag."""
    place = len(command) - command[::-1].index(flag)
    rest = [number for number, word in enumerate(command) if number >= place and word.startswith("--")]
    return command[place : rest[0] if rest else None]


# -- golden texts


def presets(recipe: Path) -> list[str]:
    return sorted(path.stem for path in recipe.glob("conf/*.sh"))


def stored(recipe: Path, preset: str) -> Path:
    """Return the file with the golden text of a preset."""
    return GOLDEN / recipe.name / f"{preset}.txt"


def arguments(recipe: Path, preset: str) -> list[str]:
    """Return the options that a preset needs."""
    path = GOLDEN / recipe.name / "arguments"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [word for line in lines if line.split()[:1] in ([preset], ["*"]) for word in shlex.split(line)[1:]]


def text(recipe: Path, preset: str) -> str:
    """Return the seeds of a preset, and its commands for the first seed, with each flag on a line of its own.

    Raises:
        ValueError: The recipe refuses the preset; the message is its error.
    """
    seeds = next(line for line in _answer(recipe, preset, "--settings").splitlines() if line.startswith("seeds="))
    commands = _answer(recipe, preset, "--dry-run", f"--{seeds.partition(',')[0]}")
    return f"# {seeds}\n{commands}".replace(" --", " \\\n    --")


def _answer(recipe: Path, preset: str, *options: str) -> str:
    words = ["--preset", preset, *arguments(recipe, preset), *options]
    process = run(recipe, *words, PATH=WITH_GPU)
    if process.returncode:
        raise ValueError(f"{recipe.name} {shlex.join(words)}: {process.stderr}")
    return process.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", required=True, help="Write the golden texts.")
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="Names of recipes (default: all).")
    args = parser.parse_args()
    for recipe in [RECIPES[name] for name in args.recipes or RECIPES]:
        for path in (GOLDEN / recipe.name).glob("*.txt"):
            path.unlink()
        for preset in presets(recipe):
            stored(recipe, preset).parent.mkdir(parents=True, exist_ok=True)
            stored(recipe, preset).write_text(text(recipe, preset), encoding="utf-8")


if __name__ == "__main__":
    main()
