"""Run tasks on a cluster with SLURM or Ray. All machines must see the same folders."""

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
#: seconds between two queries of the queue
POLL = float(os.environ.get("POSENC_SLURM_POLL", "10"))


class Slurm(SlurmPipelineExecutor):
    """Run datatrove's SLURM executor without its extra job that merges statistics; corpus.json has the counts."""

    def launch_merge_stats(self) -> None:
        pass

    def get_distributed_env(self, node_rank: int = -1) -> dict[str, str]:
        """Return the environment of a task on one machine; datatrove would call `scontrol` to list all machines."""
        names = ("node_ips", "cpus_per_task", "mem_per_cpu", "gpus_on_node")
        return {f"datatrove_{name}": "-1" for name in names} | {"datatrove_executor": "SLURM"}


def check_slurm(partition: str | None) -> None:
    """Check that jobs can be submitted to SLURM.

    Raises:
        CorpusError: SLURM is not installed here, or no partition is given.
    """
    if shutil.which("sbatch") is None:
        raise CorpusError(
            "--executor slurm: `sbatch` is not installed. Run the command on a machine that can submit SLURM jobs, or "
            "give --executor local."
        )
    if not partition:
        raise CorpusError("--executor slurm needs --slurm-partition NAME; `sinfo` lists the partitions.")


def check_ray() -> None:
    """Check that Ray is installed.

    Raises:
        CorpusError: Ray is not installed.
    """
    if importlib.util.find_spec("ray") is None:
        raise CorpusError(
            "--executor ray: ray is not installed, and it is not part of the recipes' environment. Run `pip install "
            "ray`, or give --executor local."
        )


def environment() -> str:
    """Return the shell commands that make a job use the Python environment of this process."""
    paths = f"{Path(sys.executable).parent}:$PATH", f"{HERE}${{PYTHONPATH:+:$PYTHONPATH}}"
    return f'export PATH="{paths[0]}" PYTHONPATH="{paths[1]}"'


def wait(executor: Slurm, first_error: Callable[[], str | None], watch: Callable[[], object]) -> None:
    """Wait until all tasks are done, a task has reported an error, or the job has left the queue.

    Args:
        first_error: Function that returns the error of a task, or None.
        watch: Function that updates the progress bar; it is called at each query of the queue.
    """
    while executor.job_id not in (None, -1) and executor.get_incomplete_ranks(skip_completed=True):
        queued = _in_queue(str(executor.job_id))
        if first_error() or not (queued or _late(executor)):
            break
        watch()
        time.sleep(POLL)
    if first_error() and executor.job_id not in (None, -1) and shutil.which("scancel"):
        subprocess.run(["scancel", str(executor.job_id)], check=False)


def _late(executor: Slurm) -> bool:
    """Wait, and return whether all tasks are done now; a shared file system may show results late."""
    time.sleep(POLL)
    return not executor.get_incomplete_ranks(skip_completed=True)


def _in_queue(job: str) -> bool:
    """Return whether the job is in the queue; squeue exits with an error for a job that has ended."""
    if shutil.which("squeue") is None:
        return False
    queue = subprocess.run(["squeue", "-h", "-j", job], capture_output=True, text=True, check=False)
    return queue.returncode == 0 and bool(queue.stdout.strip())


def run_ray(executor: RayPipelineExecutor) -> None:
    """Run the tasks on the Ray cluster that RAY_ADDRESS names, or start a Ray cluster on this machine."""
    import ray

    if not ray.is_initialized():
        path = f"{HERE}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        ray.init(runtime_env={"env_vars": {"PYTHONPATH": path}}, log_to_driver=False, logging_level="error")
    executor.run()
