"""Fail unless the best encoding of the demo beats a model without positions (`none`), which must score above 0."""

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

from recipes.lib.runs import finished


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    parser.add_argument("--gap", type=float, required=True, metavar="X", help="Smallest difference in BLEU points.")
    options = parser.parse_args()
    scores: dict[str, list[float]] = defaultdict(list)
    for model in finished(options.run):
        scores[model.encoding].append(model.scores["BLEU"])
    bleu = {encoding: mean(values) for encoding, values in scores.items()}
    best, none = max(bleu, key=lambda name: bleu[name]), bleu.get("none", 0.0)
    if not 0 < none <= bleu[best] - options.gap:
        problem = f"The best encoding, {best}, has {bleu[best]:.1f} BLEU, and none has {none:.1f} BLEU (0: no score)"
        sys.exit(f"error: {problem}; the difference must be at least {options.gap:g}. Look for the cause in logs/.")


if __name__ == "__main__":
    main()
