"""Keep the losses of the recipes' smoke presets in tests/recipes/curves, and compare new runs with them.

`python tests/support_curves.py` runs all recipes with preset smoke and writes the files; names of recipes as arguments
limit it to these. With `--output DIR`, runs that lie in DIR are continued, and finished ones are only read.

The log of fairseq rounds losses to three decimals. Losses from 1 are therefore compared to four digits, and losses
below 1 to three decimals, which are three digits or fewer.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "tests" / "recipes" / "curves"
RECIPES = sorted(path.parent.name for path in (ROOT / "recipes").glob("*/run.sh"))
#: Digits to which losses are compared, and decimals that fairseq logs. By rounding, the last one may differ by one.
DIGITS, DECIMALS = 4, 3

Curves = dict[str, dict[str, list[list[float]]]]


def read(output: Path) -> Curves:
    """Return the losses of all training runs in the output folder of a recipe, by the names of their logs."""
    from fairseq_posenc.core.training_log import read_losses

    curves: Curves = {}
    for log in sorted(output.glob("logs/*.train.log")):
        curve, epochs = read_losses(log), _epochs(log)
        if curve.valid or epochs:
            points = {"train": curve.train, "epoch": epochs, "valid": curve.valid}
            curves[log.stem] = {kind: [[*point] for point in found] for kind, found in points.items()}
    return curves


def _epochs(log: Path) -> list[tuple[int, float]]:
    """Return the mean training loss of each epoch, with the number of updates at its end."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    facts = [json.loads(line.split(" | train | ")[1]) for line in lines if " | train | {" in line]
    return [(int(fact["train_num_updates"]), float(fact["train_loss"])) for fact in facts]


def stored(recipe: str) -> Curves:
    """Return the losses that are kept for a recipe."""
    curves: Curves = json.loads((STORED / f"{recipe}.json").read_text(encoding="utf-8"))
    return curves


def differences(ours: Curves, kept: Curves) -> list[str]:
    """Return a line for each loss that differs in four digits or three decimals, and for each only one side has."""
    mine, theirs = _flat(ours), _flat(kept)
    alone = [f"{point}: only in one of the runs" for point in sorted(mine.keys() ^ theirs.keys())]
    both = sorted(mine.keys() & theirs.keys())
    return alone + [
        f"{point}: {mine[point]} instead of {theirs[point]}"
        for point in both
        if not abs(mine[point] - theirs[point]) < 1.01 * last_digit(theirs[point])
    ]


def last_digit(loss: float) -> float:
    """Return the value of one in the last digit that is compared: the fourth digit, but at least the third decimal."""
    return 10.0 ** max(math.floor(math.log10(loss)) + 1 - DIGITS, -DECIMALS)


def _flat(curves: Curves) -> dict[str, float]:
    return {
        f"{name}, {kind} loss of update {update:.0f}": loss
        for name, kinds in curves.items()
        for kind, points in kinds.items()
        for update, loss in points
    }


def check(recipe: str, output: Path, *logs: str) -> None:
    """Raise AssertionError if the losses of a run with preset smoke are not those that are kept.

    Args:
        logs: Names of the logs that the run has, if it leaves out some encodings; none means all.
    """
    kept = stored(recipe)
    found = differences(read(output), {name: kept[name] for name in logs or kept})
    assert not found, f"{recipe}: {len(found)} losses are not those of tests/recipes/curves: {'; '.join(found[:5])}"


def write(recipe: str, output: Path) -> None:
    """Run a recipe with preset smoke, unless `output` has the finished run, and store its losses."""
    run(recipe, output)
    store(recipe, read(output))


def run(recipe: str, output: Path) -> None:
    """Run a recipe with preset smoke, unless `output` has the finished run."""
    command = [f"recipes/{recipe}/run.sh", "--preset", "smoke", "--threads", "1", "--output", str(output)]
    subprocess.run(command, cwd=ROOT, check=True)


def store(recipe: str, curves: Curves) -> None:
    """Write the losses of a recipe, with a line for each training run."""
    lines = [f"{json.dumps(name)}: {json.dumps(kinds)}" for name, kinds in curves.items()]
    STORED.mkdir(exist_ok=True)
    (STORED / f"{recipe}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"wrote {STORED / recipe}.json")


def main() -> None:
    """Store the losses of the recipes that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", metavar="NAME", help="Recipes to run. Default: all.")
    parser.add_argument("--output", type=Path, metavar="DIR", help="Folder for the runs. Default: a temporary folder.")
    args = parser.parse_args()
    if unknown := set(args.recipes) - set(RECIPES):
        parser.error(f"unknown recipes: {', '.join(sorted(unknown))}. Choose from {', '.join(RECIPES)}.")
    with tempfile.TemporaryDirectory() as folder:
        for recipe in args.recipes or RECIPES:
            write(recipe, (args.output or Path(folder)) / recipe)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
