"""Print how a training diverged, such as `diverged at update 340, loss 7.3 (then not finite)`, or nothing.

python -m recipes.lib.divergence LOG
"""

from __future__ import annotations

import sys
from pathlib import Path

from fairseq_posenc.core.training_log import read_divergence


def text(log: Path) -> str:
    """Return how the training that wrote this log diverged, or an empty text if it did not."""
    divergence = read_divergence(log)
    return f"diverged at {divergence}" if divergence else ""


if __name__ == "__main__":
    print(text(Path(sys.argv[1])))
