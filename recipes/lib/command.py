"""Run the command line of a recipe: list its stages, print their commands, or run them and write the report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

from .choose import choose
from .options import parse
from .outputs import refuse_unusable
from .package import discard_output, visible
from .recipe import ROOT, Recipe, S, shown
from .run import Run
from .settings import load
from .stages import MARKERS, Ledger, Stage
from .values import Refused


def main(recipe: Recipe[S], arguments: list[str]) -> int:
    try:
        options = parse(recipe, arguments)
        settings = load(recipe, options.preset, options.config, options.settings)
        output = (options.output or ROOT / "results" / recipe.folder(settings)).resolve()
        for sign in ":,":
            if sign in str(output):
                raise Refused(f"--output {output}: fairseq would split this path at '{sign}'. Choose another folder.")
        refuse_unusable(output, recipe.name)
        plan = recipe.plan(settings, output, shown(output))
        chosen = choose(plan.stages(), options.stage, options.stop_stage)
        ledger = Ledger(output / MARKERS, shown(output))
        if options.dry_run:
            return dry_run(settings.variables(), plan.notes, chosen)
        if options.list:
            return list_stages(chosen, ledger)
        settings.refuse_missing()
        return Run(recipe, settings, plan, ledger, output, arguments).do(chosen, options.force)
    except Refused as refused:
        print(f"error: {visible(refused)}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # a reader such as `head` has seen enough
        return discard_output()


def dry_run(environment: Mapping[str, str], notes: tuple[str, ...], stages: list[Stage]) -> int:
    variables = " ".join(f"{name}={value}" for name, value in environment.items())
    environment_note = f", with these environment variables: {variables}" if variables else ""
    print(f"# Run these commands in the root of the repository{environment_note}")
    for note in notes:
        print(f"# {note}")
    print("\n".join(f"# {stage.name}\n{shlex.join(stage.command)}" for stage in stages), flush=True)
    return 0


def list_stages(stages: list[Stage], ledger: Ledger) -> int:
    print("\n".join(f"{'done' if ledger.is_done(stage) else 'open'}  {stage.name}" for stage in stages), flush=True)
    return 0
