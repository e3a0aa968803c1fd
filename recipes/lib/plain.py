"""Write the experiments of all recipes as plain shell: recipes/NAME/plain/PRESET.sh.

    python -m recipes.lib.plain

Each script holds the commands of the recipe's plan, in order, as a reader would type them. Nothing resumes there and
nothing runs side by side. `Recipe.plain` names the presets.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from .logs import log_of
from .package import write_whole
from .recipe import ROOT, Recipe
from .settings import load
from .stages import Stage

OUT = "@OUT@"  # stands for the output folder in planned commands; shlex leaves it as it is
THEIRS = Path("/path/to")  # where the planned commands have files that only the reader has
WIDTH = 110  # characters of a line
HEAD = """\
#!/usr/bin/env bash
# The recipe {name} with its preset {preset}, as the plain commands that recipes/{name}/run.sh would run.
# Usage: recipes/{name}/plain/{preset}.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# Generated: change the plan or the preset, then write this file anew by `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${{BASH_SOURCE[0]}}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export {variables}
OUT=${{1:-results/{name}-{preset}-plain}}
{theirs}mkdir -p "$OUT/logs"
"""


def recipes() -> list[Recipe[Any]]:
    """Return all recipes, by the order of their names."""
    modules = (f"recipes.{path.parent.name}.__main__" for path in sorted(ROOT.glob("recipes/*/__main__.py")))
    values = (value for module in modules for value in vars(importlib.import_module(module)).values())
    return [value for value in values if isinstance(value, Recipe)]


def scripts() -> dict[Path, str]:
    """Return the text of every script, by its path."""
    return {
        ROOT / "recipes" / recipe.name / "plain" / f"{preset}.sh": script(recipe, preset)
        for recipe in recipes()
        for preset in recipe.plain
    }


def script(recipe: Recipe[Any], preset: str) -> str:
    """Return the script of one preset; the smoke preset runs on a CPU, those of papers on one GPU."""
    theirs = recipe.plain[preset]
    given = {name: str(THEIRS / variable.lower()) for name, variable in theirs.items()}
    if "device" in {field.name for field in fields(recipe.settings)}:
        given["device"] = "cpu" if preset == "smoke" else "gpu"
    settings = load(recipe, preset, None, given)
    stages = recipe.plan(settings, ROOT / "results" / f"{recipe.name}-{preset}-plain", OUT).stages()
    variables = {"PYTHONPATH": '"$PWD${PYTHONPATH:+:$PYTHONPATH}"', **settings.variables()}
    head = HEAD.format(
        name=recipe.name,
        preset=preset,
        variables=" ".join(f"{name}={value}" for name, value in variables.items()),
        theirs="".join(
            f': "${{{variable}:?set it to what run.sh takes as --{name.replace("_", "-")}}}"\n'
            for name, variable in theirs.items()
        ),
    )
    results = " ".join(quoted(OUT + "/" + path.name, {}) for path in stages[-1].outputs)
    parts = [head, *(f"# {stage.name}\n{command(stage, theirs)}" for stage in stages), f"echo Done: {results}"]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def command(stage: Stage, theirs: Mapping[str, str]) -> str:
    """Return the command of a stage; what a training logs is kept, because its curve is drawn from it."""
    words = [quoted(word, theirs) for word in stage.command]
    if stage.kind == "train":
        words += ["2>&1", "|", "tee", quoted(str(log_of(stage, Path(OUT))), theirs)]
    return " \\\n    ".join(lines(words))


def lines(words: list[str]) -> Iterator[str]:
    """Yield the lines of a command. A line breaks before an option, so that its values stay beside it."""
    groups: list[str] = []
    for word in words:
        if not groups or word.startswith("-") or word == "2>&1":
            groups.append(word)
        else:
            groups[-1] += f" {word}"
    line = ""
    for group in groups:
        if line and len(line) + len(group) + 1 > WIDTH:
            yield line
            line = group
        else:
            line = f"{line} {group}".lstrip()
    yield line


def quoted(word: str, theirs: Mapping[str, str]) -> str:
    """Return a word for the shell, with variables for the output folder and for the reader's own files."""
    places = {OUT: "OUT", **{str(THEIRS / variable.lower()): variable for variable in theirs.values()}}
    if not any(place in word for place in places):
        return shlex.quote(word)
    for sign in '\\"$`':
        word = word.replace(sign, f"\\{sign}")
    for place, variable in places.items():
        word = word.replace(place, f"${variable}")
    return f'"{word}"'


def main() -> None:
    for path, text in scripts().items():
        write_whole(path, text)
        path.chmod(0o755)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
