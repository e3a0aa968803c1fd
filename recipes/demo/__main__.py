"""Define the demo as a recipe; `recipes/demo/run.sh` starts this module in the project's Python environment."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.recipe import Recipe, Row
from recipes.lib.stages import Stage

from .plan import make_plan
from .settings import CONF, Settings

DESCRIPTION = """\
Train small translation models with several position encodings, and score their translations with sacrebleu. The
sentences are invented, and their meaning depends on word order. To continue an interrupted run, start it again with the
same options. The output folder contains results.md, bleu.png, results.json and a folder with the logs."""


def results(settings: Settings, output: Path) -> list[Row]:
    """Return the rows that the stage `report` wrote."""
    rows: list[Row] = json.loads((output / "results.json").read_text(encoding="utf-8"))
    return rows


def tell(stage: Stage) -> str:
    """Return the BLEU that the screen shows after the stage `score`, or an empty text for other stages."""
    if stage.kind != "score":
        return ""
    return f" BLEU {json.loads(stage.outputs[0].read_text(encoding='utf-8'))['bleu']:.1f}"


def check(settings: Settings, output: Path) -> int:
    return claim(results(settings, output), settings.least_gap)


def claim(rows: list[Row], least_gap: float) -> int:
    """Return 0 if the demo shows that word order matters, otherwise print an error and return 1.

    The best encoding must score at least `least_gap` BLEU more than `none`, and `none` must score above 0.
    """
    bleu = {row["encoding"]: row["bleu"] or 0.0 for row in rows}  # 0 for an encoding whose training runs all diverged
    best = max(bleu, key=lambda name: bleu[name])
    none = bleu["none"]
    print("BLEU: " + ", ".join(f"{name} {score:.1f}" for name, score in sorted(bleu.items(), key=lambda x: -x[1])))
    if bleu[best] - none >= least_gap and (none > 0 or least_gap < 0):
        return 0
    print(
        f"error: the demo failed its check. The best encoding ({best}, {bleu[best]:.1f} BLEU) must score at least "
        f"{least_gap} BLEU more than `none` ({none:.1f} BLEU), and `none` must score above 0. Look for the cause in "
        "the subfolder logs/ of the output folder.",
        file=sys.stderr,
    )
    return 1


DEMO = Recipe(
    name="demo",
    description=DESCRIPTION,
    settings=Settings,
    conf=CONF,
    preset="demo",
    plan=make_plan,
    results=results,
    check=check,
    tell=tell,
    examples=(
        "--preset smoke --output /tmp/smoke",
        "--encodings shaw,rope --seed 2 --output results/seed-2",
        "--stage train:rope --stop-stage score:rope --force",
        "--train.lr 0.003 --dry-run",
    ),
    own_report="results.md",
    files=("bleu.png", "results.json"),
    anew="`make clean demo`",
    plain={"smoke": {}, "demo": {}},
)

if __name__ == "__main__":
    sys.exit(main(DEMO, sys.argv[1:]))
