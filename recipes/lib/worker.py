"""fairseq-train as one process of a torchrun, or one task of a Slurm job.

fairseq looks for torchrun's variables only when it sees more than one GPU; otherwise every process trains alone, and
all write the same checkpoints. In a Slurm job it counts the GPUs of a node that has one task. Here every process is
told what it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping


def place(variables: Mapping[str, str], first_host: Callable[[str], str]) -> list[str]:
    """The options that say which process this is; none outside torchrun and Slurm.

    Args:
        first_host: of Slurm's list of nodes.
    """
    if "RANK" in variables and "WORLD_SIZE" in variables:
        return options(variables["WORLD_SIZE"], variables["RANK"], variables.get("LOCAL_RANK", "0"), "env://")
    if "SLURM_PROCID" in variables and "SLURM_NTASKS" in variables:
        nodes = variables.get("SLURM_STEP_NODELIST") or variables["SLURM_JOB_NODELIST"]
        meet = f"tcp://{first_host(nodes)}:{port(variables)}"
        # Some clusters show a task its own GPU only.
        alone = "," not in variables.get("CUDA_VISIBLE_DEVICES", ",")
        device = "0" if alone else variables["SLURM_LOCALID"]
        return options(variables["SLURM_NTASKS"], variables["SLURM_PROCID"], device, meet)
    return []


def options(size: str, rank: str, device: str, meet: str) -> list[str]:
    place = ["--distributed-world-size", size, "--distributed-rank", rank, "--device-id", device]
    return [*place, "--distributed-init-method", meet, "--distributed-no-spawn"]


def port(variables: Mapping[str, str]) -> int:
    """Another one for each step of each job, the same for all its tasks."""
    step = variables.get("SLURM_STEP_ID", "0")
    return 20000 + (int(variables["SLURM_JOB_ID"]) * 37 + (int(step) if step.isdigit() else 0)) % 20000


def ask_slurm(nodes: str) -> str:
    found = subprocess.run(["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True)
    return found.stdout.split()[0]


def main(arguments: list[str]) -> None:
    from fairseq_cli.train import cli_main

    sys.argv = [sys.argv[0], *arguments, *place(os.environ, ask_slurm)]
    cli_main()


if __name__ == "__main__":
    main(sys.argv[1:])
