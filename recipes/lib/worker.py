"""fairseq-train as one process of a torchrun.

fairseq looks for torchrun's variables only when it sees more than one GPU; otherwise every process trains alone,
and all write the same checkpoints. Here they are always told what they are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def place(variables: Mapping[str, str]) -> list[str]:
    """The options that say which process this is; none outside torchrun."""
    if "RANK" not in variables or "WORLD_SIZE" not in variables:
        return []
    return [
        "--distributed-world-size",
        variables["WORLD_SIZE"],
        "--distributed-rank",
        variables["RANK"],
        "--device-id",
        variables.get("LOCAL_RANK", "0"),
        "--distributed-init-method",
        "env://",
        "--distributed-no-spawn",
    ]


def main(arguments: list[str]) -> None:
    from fairseq_cli.train import cli_main

    sys.argv = [sys.argv[0], *arguments, *place(os.environ)]
    cli_main()


if __name__ == "__main__":
    main(sys.argv[1:])
