"""What the command line of every recipe does: look at the stages, print them, or run them and report."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from .choose import choose
from .options import parse
from .recipe import ROOT, Recipe, S
from .run import Run
from .settings import load
from .stages import Ledger, Stage
from .values import Refused


def main(recipe: Recipe[S], arguments: list[str]) -> int:
    try:
        options = parse(recipe, arguments)
        settings = load(recipe, options.preset, options.config, options.given)
        output = (options.output or ROOT / "results" / recipe.name).resolve()
        plan = recipe.plan(settings, output, shown(output))
        chosen = choose(plan.stages(), options.stage, options.stop_stage)
        ledger = Ledger(output / ".stages")
        if options.dry_run:
            return dry_run(recipe, chosen)
        if options.list:
            return list_stages(chosen, ledger)
        return Run(recipe, settings, plan, ledger, output, arguments).do(chosen, options.force)
    except Refused as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 2


def shown(output: Path) -> str:
    """The output folder as commands name it, from the root of the repository."""
    return os.path.relpath(output, ROOT)


def dry_run(recipe: Recipe[S], stages: list[Stage]) -> int:
    variables = " ".join(f"{name}={value}" for name, value in recipe.environment.items())
    print("# from the root of the repository" + (f", with {variables}" if variables else ""))
    print("\n".join(f"# {stage.name}\n{shlex.join(stage.command)}" for stage in stages))
    return 0


def list_stages(stages: list[Stage], ledger: Ledger) -> int:
    print("\n".join(f"{'done' if ledger.is_done(stage) else 'open'}  {stage.name}" for stage in stages))
    return 0
