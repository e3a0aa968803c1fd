"""Keep the losses of the recipes' smoke presets in tests/recipes/curves, and compare new runs with them.

`python tests/support_curves.py [RECIPE...]` runs the recipes with preset smoke (default: all) and writes the files.

The log of fairseq rounds losses to three decimals. Losses from 1 are therefore compared to four digits, and losses
below 1 to three decimals, which are three digits or fewer.
"""

from __future__ import annotations

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

Losses = dict[str, float]


def read(output: Path) -> Losses:
    """Return the losses of all training runs in the output folder of a recipe, by log, kind and update."""
    from fairseq_posenc.core.training_log import read_losses

    losses: Losses = {}
    for log in sorted(output.glob("logs/*.train.log")):
        curve = read_losses(log)
        points = {"train": curve.train, "epoch": _epochs(log), "valid": curve.valid}
        if curve.valid or points["epoch"]:
            for kind, own in points.items():
                losses |= {f"{log.stem}, {kind} loss of update {update:.0f}": loss for update, loss in own}
    return losses


def _epochs(log: Path) -> list[tuple[int, float]]:
    """Return the mean training loss of each epoch, with the number of updates at its end."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    facts = [json.loads(line.split(" | train | ")[1]) for line in lines if " | train | {" in line]
    return [(int(fact["train_num_updates"]), float(fact["train_loss"])) for fact in facts]


def stored(recipe: str) -> Losses:
    """Return the losses that are kept for a recipe."""
    losses: Losses = json.loads((STORED / f"{recipe}.json").read_text(encoding="utf-8"))
    return losses


def differences(ours: Losses, kept: Losses) -> list[str]:
    """Return a line for each loss that differs in four digits or three decimals, and for each only one side has."""
    alone = [f"{point}: only in one of the runs" for point in sorted(ours.keys() ^ kept.keys())]
    return alone + [
        f"{point}: {ours[point]} instead of {kept[point]}"
        for point in sorted(ours.keys() & kept.keys())
        if not abs(ours[point] - kept[point]) < 1.01 * last_digit(kept[point])
    ]


def last_digit(loss: float) -> float:
    """Return the value of one in the last digit that is compared: the fourth digit, but at least the third decimal."""
    return 10.0 ** max(math.floor(math.log10(loss)) + 1 - DIGITS, -DECIMALS)


def check(recipe: str, output: Path) -> None:
    """Raise AssertionError if the losses of a run with preset smoke are not those that are kept."""
    found = differences(read(output), stored(recipe))
    assert not found, f"{recipe}: {len(found)} losses are not those of tests/recipes/curves: {'; '.join(found[:5])}"


def main() -> None:
    """Store the losses of the recipes that the command line names."""
    for recipe in sys.argv[1:] or RECIPES:
        with tempfile.TemporaryDirectory() as output:
            command = [ROOT / "recipes" / recipe / "run.sh", "--preset", "smoke", "--threads", "1", "--output", output]
            subprocess.run(command, cwd=ROOT, check=True)
            path = STORED / f"{recipe}.json"
            path.write_text(json.dumps(read(Path(output)), indent=1) + "\n", encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
