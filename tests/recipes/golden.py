"""Show what the presets of the recipes run, in a form that is the same on every machine.

`python tests/recipes/golden.py --write [RECIPE...]` writes tests/recipes/golden/RECIPE/PRESET.txt again;
test_recipe_options.py compares these files with the recipes. Options that a preset needs, such as a checkpoint, stand
in tests/recipes/golden/RECIPE/arguments, one preset a line: `PRESET OPTIONS` (`*` means all presets of the recipe).
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "tests" / "recipes" / "toy"
GOLDEN = Path(__file__).parent / "golden"
#: The PATH of a machine with one GPU that has bf16: the `nvidia-smi` of a folder answers for it.
WITH_GPU = f"{TOY / 'gpu'}:{os.environ['PATH']}"


def recipes() -> list[Path]:
    """Return the folders of all recipes, and of the toy recipe."""
    return [*sorted(path.parent for path in ROOT.glob("recipes/*/run.sh")), TOY]


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


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a recipe: that of the tests, without a choice of GPUs, and these variables."""
    kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return {**kept, **variables}


def text(recipe: Path, preset: str) -> str:
    """Return the seeds of a preset, and its commands for the first seed, with each flag on a line of its own.

    Raises:
        ValueError: The recipe refuses the preset; the message is its error.
    """
    seeds = next(line for line in _answer(recipe, preset, "--settings").splitlines() if line.startswith("seeds="))
    commands = _answer(recipe, preset, "--dry-run", f"--{seeds.partition(',')[0]}")
    return f"# {seeds}\n{commands}".replace(" --", " \\\n    --")


def _answer(recipe: Path, preset: str, *options: str) -> str:
    command = [str(recipe / "run.sh"), "--preset", preset, *arguments(recipe, preset), *options]
    process = subprocess.run(command, cwd=ROOT, env=environment(PATH=WITH_GPU), capture_output=True, text=True)
    if process.returncode:
        raise ValueError(f"{shlex.join(command)}: {process.stderr}")
    return process.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", required=True, help="Write the golden texts.")
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="Names of recipes (default: all).")
    args = parser.parse_args()
    for recipe in recipes():
        if args.recipes and recipe.name not in args.recipes:
            continue
        for path in (GOLDEN / recipe.name).glob("*.txt"):
            path.unlink()
        for preset in presets(recipe):
            stored(recipe, preset).parent.mkdir(parents=True, exist_ok=True)
            stored(recipe, preset).write_text(text(recipe, preset), encoding="utf-8")


if __name__ == "__main__":
    main()
