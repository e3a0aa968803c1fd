"""The command line of the demo; `recipes/demo/run.sh` calls it in the right environment."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from pathlib import Path

from . import settings as conf
from .lock import only_one
from .plan import Plan, make_plan
from .runner import Failed, Runner, version_of
from .screen import Screen
from .stages import Ledger

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTION = """\
Trains a small translation model with several position encodings on sentences that need word order, and scores
it with sacrebleu. Run again it goes on where it was, and does nothing when all is done.
Results: results.md, bleu.png and results.json in the output folder; logs in its logs/."""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="recipes/demo/run.sh",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--preset", choices=conf.presets(), default="demo", help="settings: conf/PRESET.toml")
    parser.add_argument("--output", type=Path, metavar="DIR", help="default: results/demo in the repository")
    parser.add_argument("--encodings", metavar="A,B,C", help="instead of the preset's; `none` is always there")
    parser.add_argument("--seed", type=int, help="of the sentences and of the trainings")
    parser.add_argument("--list", action="store_true", help="list the stages and which are done")
    parser.add_argument("--dry-run", action="store_true", help="print every command, run none")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    settings = conf.load(options.preset, options.encodings, options.seed)
    output = (options.output or ROOT / "results" / "demo").resolve()
    plan = make_plan(settings, output, os.path.relpath(output, ROOT))
    ledger = Ledger(output / ".stages")
    if options.dry_run:
        return dry_run(plan)
    if options.list:
        return list_stages(plan, ledger)
    return run(plan, settings, output, ledger)


def dry_run(plan: Plan) -> int:
    print("# from the root of the repository, with OMP_NUM_THREADS=1")
    print("\n".join(f"# {stage.name}\n{shlex.join(stage.command)}" for stage in plan.stages()))
    return 0


def list_stages(plan: Plan, ledger: Ledger) -> int:
    print("\n".join(f"{'done' if ledger.is_done(stage) else 'open'}  {stage.name}" for stage in plan.stages()))
    return 0


def run(plan: Plan, settings: conf.Settings, output: Path, ledger: Ledger) -> int:
    screen = Screen()
    with only_one(output / ".lock", screen) as lock:
        if all(ledger.is_done(stage) for stage in plan.stages()):
            screen.line(f"Everything is done: {_shown(output / 'results.md')}")
            _tell_if_changed(plan, ledger, screen)
        else:
            started = time.monotonic()
            try:
                Runner(ROOT, output, ledger, screen, settings.jobs, lock).run(plan.phases())
            except Failed as failure:
                screen.line(str(failure))
                return 1
            except KeyboardInterrupt:
                screen.line("interrupted; run it again to go on from here")
                return 130
            minutes = (time.monotonic() - started) / 60
            screen.line(f"Done in {minutes:.1f} minutes: {_shown(output / 'results.md')}, bleu.png, results.json")
    return check(json.loads((output / "results.json").read_text(encoding="utf-8")), settings.least_gap)


def check(rows: list[dict[str, object]], least_gap: float) -> int:
    """The demo's claim: word order was needed, and the model without positions still translated."""
    bleu = {str(row["encoding"]): float(str(row["bleu"])) for row in rows}
    best = max(bleu, key=lambda name: bleu[name])
    none = bleu["none"]
    print("BLEU: " + ", ".join(f"{name} {score:.1f}" for name, score in sorted(bleu.items(), key=lambda x: -x[1])))
    if bleu[best] - none >= least_gap and (none > 0 or least_gap < 0):
        return 0
    print(
        f"error: the best encoding ({best}, {bleu[best]:.1f} BLEU) must be at least {least_gap} BLEU above "
        f"none ({none:.1f} BLEU), and none above 0; see logs/ beside results.md",
        file=sys.stderr,
    )
    return 1


def _tell_if_changed(plan: Plan, ledger: Ledger, screen: Screen) -> None:
    """The code is no input of a training: an edited comment need not train everything anew. But say so."""
    made = {ledger.read(chain[0]).get("commit") for chain in plan.chains.values()}
    if made != {version_of(ROOT)}:
        screen.line(f"It was trained with commit {', '.join(sorted(map(str, made)))}; `make clean demo` does it anew.")


def _shown(path: Path) -> str:
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
