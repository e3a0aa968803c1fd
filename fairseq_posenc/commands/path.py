"""`python -m fairseq_posenc path`: print the folder of the plugin, for --user-dir."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.arguments import Parser


def main(argv: Sequence[str]) -> int:
    """Print the folder of the plugin."""
    parser = Parser(
        prog="python -m fairseq_posenc path",
        description="Print the folder of the plugin, for --user-dir.",
        epilog='Example: fairseq-train data-bin --user-dir "$(python -m fairseq_posenc path)" ...',
    )
    parser.parse_args(argv)
    print(Path(__file__).resolve().parents[1])
    return 0
