"""Run fairseq-train as one process of torchrun, or as one task of a Slurm job.

fairseq reads the variables of torchrun only if it sees more than one GPU. With at most one GPU, every process would
train alone and write the same checkpoints. In a Slurm job with one task per node, fairseq starts one process per GPU.
Therefore, this program gives every process its rank explicitly.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping


def place(variables: Mapping[str, str], first_host: Callable[[str], str]) -> list[str]:
    """Return the options that tell fairseq-train the rank of this process, or an empty list outside torchrun and Slurm.

    Args:
        variables: Environment variables of this process.
        first_host: Function that returns the first host of a list of nodes in Slurm's notation.
    """
    if "RANK" in variables and "WORLD_SIZE" in variables:
        return options(variables["WORLD_SIZE"], variables["RANK"], variables.get("LOCAL_RANK", "0"), "env://")
    if "SLURM_PROCID" in variables and "SLURM_NTASKS" in variables:
        nodes = variables.get("SLURM_STEP_NODELIST") or variables["SLURM_JOB_NODELIST"]
        meet = f"tcp://{first_host(nodes)}:{port(variables)}"
        # On some clusters a task sees its own GPU only.
        alone = "," not in variables.get("CUDA_VISIBLE_DEVICES", ",")
        device = "0" if alone else variables["SLURM_LOCALID"]
        return options(variables["SLURM_NTASKS"], variables["SLURM_PROCID"], device, meet)
    return []


def options(size: str, rank: str, device: str, meet: str) -> list[str]:
    """Return the options of fairseq-train for one process of a distributed training run."""
    place = ["--distributed-world-size", size, "--distributed-rank", rank, "--device-id", device]
    return [*place, "--distributed-init-method", meet, "--distributed-no-spawn"]


def port(variables: Mapping[str, str]) -> int:
    """Return a port that is the same for all tasks of a job step, and different for other steps and jobs."""
    step = variables.get("SLURM_STEP_ID", "0")
    return 20000 + (int(variables["SLURM_JOB_ID"]) * 37 + (int(step) if step.isdigit() else 0)) % 20000


def ask_slurm(nodes: str) -> str:
    """Return the first host of a list of nodes in Slurm's notation."""
    process = subprocess.run(["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True)
    return process.stdout.split()[0]


def main(arguments: list[str]) -> None:
    from fairseq_cli.train import cli_main

    sys.argv = [sys.argv[0], *arguments, *place(os.environ, ask_slurm)]
    cli_main()


if __name__ == "__main__":
    main(sys.argv[1:])
