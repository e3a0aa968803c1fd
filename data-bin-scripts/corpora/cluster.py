"""Tasks on a cluster, by SLURM or by Ray. All machines see the same folders."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from datatrove.executor import RayPipelineExecutor, SlurmPipelineExecutor

from .errors import CorpusError

HERE = Path(__file__).resolve().parents[1]
#: seconds between two looks at the queue
POLL = float(os.environ.get("POSENC_SLURM_POLL", "10"))


class Slurm(SlurmPipelineExecutor):
    """datatrove's, with no job behind it that merges its statistics: the counts are in corpus.json."""

    def launch_merge_stats(self) -> None:
        pass

    def get_distributed_env(self, node_rank: int = -1) -> dict[str, str]:
        """Of one machine a task; datatrove would ask `scontrol` for the names of all."""
        names = ("node_ips", "cpus_per_task", "mem_per_cpu", "gpus_on_node")
        return {f"datatrove_{name}": "-1" for name in names} | {"datatrove_executor": "SLURM"}


def check_slurm(partition: str | None) -> None:
    """Raises:
    CorpusError: no SLURM here, or not said where to run.
    """
    if shutil.which("sbatch") is None:
        raise CorpusError("--executor slurm: no `sbatch` here; start it where jobs are submitted, or --executor local")
    if not partition:
        raise CorpusError("--executor slurm: --slurm-partition is wanted (sinfo lists the partitions)")


def check_ray() -> None:
    """Raises:
    CorpusError: no ray.
    """
    if importlib.util.find_spec("ray") is None:
        raise CorpusError(
            "--executor ray: ray is not installed, and not part of the recipes' environment: pip install ray, or "
            "--executor local"
        )


def environment() -> str:
    """The commands that give a job this environment."""
    paths = f"{Path(sys.executable).parent}:$PATH", f"{HERE}${{PYTHONPATH:+:$PYTHONPATH}}"
    return f'export PATH="{paths[0]}" PYTHONPATH="{paths[1]}"'


def wait(executor: Slurm, told: Callable[[], str | None], watch: Callable[[], object]) -> None:
    """Until all tasks are done, one has told a fault, or the job has left the queue."""
    while executor.job_id not in (None, -1) and executor.get_incomplete_ranks(skip_completed=True):
        queued = _in_queue(str(executor.job_id))
        if told() or not (queued or _late(executor)):
            break
        watch()
        time.sleep(POLL)
    if told() and executor.job_id not in (None, -1) and shutil.which("scancel"):
        subprocess.run(["scancel", str(executor.job_id)], check=False)


def _late(executor: Slurm) -> bool:
    """Whether the last tasks were done after all: a file system may tell it a while after the queue."""
    time.sleep(POLL)
    return not executor.get_incomplete_ranks(skip_completed=True)


def _in_queue(job: str) -> bool:
    """A job that squeue no longer knows is an error to it."""
    if shutil.which("squeue") is None:
        return False
    found = subprocess.run(["squeue", "-h", "-j", job], capture_output=True, text=True, check=False)
    return found.returncode == 0 and bool(found.stdout.strip())


def run_ray(executor: RayPipelineExecutor) -> None:
    """On the cluster that RAY_ADDRESS names, else on one that is started here."""
    import ray

    if not ray.is_initialized():
        path = f"{HERE}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        ray.init(runtime_env={"env_vars": {"PYTHONPATH": path}}, log_to_driver=False, logging_level="error")
    executor.run()
