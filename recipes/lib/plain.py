"""Write the experiments of all recipes as plain shell scripts: recipes/NAME/plain/PRESET.sh.

    python -m recipes.lib.plain

Each script has the commands of the recipe's plan in order, in the form in which a reader would type them. The commands
run one after another, and an interrupted script starts again from the beginning. `Recipe.plain` lists the presets of a
recipe that have a script.
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
from .places import OWN_FILES
from .recipe import ROOT, Recipe
from .settings import load
from .stages import Stage

OUT = "@OUT@"  # stands for the output folder in planned commands; shlex leaves it as it is
WIDTH = 110  # characters of a line
HEAD = """\
#!/usr/bin/env bash
# This plain script has the commands that recipes/{name}/run.sh runs with the preset {preset}.
# Usage: recipes/{name}/plain/{preset}.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
{seeds}# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${{BASH_SOURCE[0]}}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export {variables}
OUT=${{1:-results/{name}-{preset}-plain}}
{own_files}mkdir -p "$OUT/logs"
"""


def recipes() -> list[Recipe[Any]]:
    """Return all recipes, ordered by name."""
    modules = (f"recipes.{path.parent.name}.__main__" for path in sorted(ROOT.glob("recipes/*/__main__.py")))
    values = (value for module in modules for value in vars(importlib.import_module(module)).values())
    return [value for value in values if isinstance(value, Recipe)]


def scripts() -> dict[Path, str]:
    """Return the text of every script, keyed by the path of the script."""
    return {
        ROOT / "recipes" / recipe.name / "plain" / f"{preset}.sh": script(recipe, preset)
        for recipe in recipes()
        for preset in recipe.plain
    }


def script(recipe: Recipe[Any], preset: str) -> str:
    """Return the script of a preset.

    The script of the preset `smoke` uses a CPU. All other scripts use a GPU, and only the first seed of the preset.
    """
    own_files = recipe.plain[preset]
    values = {name: str(OWN_FILES / variable.lower()) for name, variable in own_files.items()}
    if "device" in {field.name for field in fields(recipe.settings)}:
        values["device"] = "cpu" if preset == "smoke" else "gpu"
    seeds = load(recipe, preset, None, values).seeds
    shortened = preset != "smoke" and len(seeds) > 1
    if shortened:
        values["seeds"] = str(seeds[0])
    remark = f"# The preset trains each model with {len(seeds)} seeds; this script uses the first one only.\n"
    settings = load(recipe, preset, None, values)
    stages = recipe.plan(settings, ROOT / "results" / f"{recipe.name}-{preset}-plain", OUT).stages()
    variables = {"PYTHONPATH": '"$PWD${PYTHONPATH:+:$PYTHONPATH}"', **settings.variables()}
    head = HEAD.format(
        name=recipe.name,
        preset=preset,
        seeds=remark if shortened else "",
        variables=" ".join(f"{name}={value}" for name, value in variables.items()),
        own_files="".join(
            f': "${{{variable}:?set this variable to the value of --{name.replace("_", "-")} of run.sh}}"\n'
            for name, variable in own_files.items()
        ),
    )
    results = " ".join(quoted(OUT + "/" + path.name, {}) for path in stages[-1].outputs)
    parts = [head, *(f"# {stage.name}\n{command(stage, own_files)}" for stage in stages), f"echo Done: {results}"]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def command(stage: Stage, own_files: Mapping[str, str]) -> str:
    """Return the command of a stage.

    A training command also writes its log to a file, because the curves are drawn from this log.
    """
    words = [quoted(word, own_files) for word in stage.command]
    if stage.kind == "train":
        words += ["2>&1", "|", "tee", quoted(str(log_of(stage, Path(OUT))), own_files)]
    return " \\\n    ".join(lines(words))


def lines(words: list[str]) -> Iterator[str]:
    """Yield the lines of a command. Lines break before options, so that an option and its values share a line."""
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


def quoted(word: str, own_files: Mapping[str, str]) -> str:
    """Return a word quoted for the shell; variables replace the output folder and the reader's own files."""
    places = {OUT: "OUT", **{str(OWN_FILES / variable.lower()): variable for variable in own_files.values()}}
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
