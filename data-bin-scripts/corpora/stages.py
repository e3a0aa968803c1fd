"""The stages of the pipeline, each on the executor that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datatrove.executor import RayPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from loguru import logger

from . import cluster
from .errors import CorpusError
from .job import Job
from .local import Local
from .progress import Watch, shown


@dataclass(frozen=True)
class Machines:
    """Who runs the tasks; it decides no byte of what they write."""

    executor: str
    workers: int
    partition: str | None = None
    time: str = "24:00:00"
    memory: int = 4  # GB a task
    arguments: tuple[str, ...] = ()  # of sbatch, NAME=VALUE

    def check(self) -> None:
        if self.executor == "slurm":
            cluster.check_slurm(self.partition)
        if self.executor == "ray":
            cluster.check_ray()


def run(job: Job, stage: str, steps: Sequence[PipelineStep], tasks: int, machines: Machines) -> None:
    """All tasks of a stage that are not done.

    Raises:
        CorpusError: what a task told, or that some did not end.
    """
    logger.remove()  # it would fill the screen; the tasks have their logs
    common = {"pipeline": list(steps), "tasks": tasks, "logging_dir": str(job.logs(stage))}
    for left in (job.folder / "errors").glob(f"{stage}-*"):
        left.unlink()  # of an earlier run
    with shown(job, stage) as watch:
        executor = START[machines.executor](job, stage, common, machines, watch)
        if told := job.told(stage):
            raise CorpusError(told)
        if missing := executor.get_incomplete_ranks(skip_completed=True):
            raise CorpusError(
                f"{len(missing)} of {tasks} tasks of {stage} did not end (the first: {missing[0]}): see "
                f"{job.logs(stage)}, and run it again to go on"
            )


def _local(job: Job, stage: str, common: dict[str, object], machines: Machines, watch: Watch) -> Local:
    executor = Local(watch, workers=machines.workers, **common)
    executor.run()
    return executor


def _slurm(job: Job, stage: str, common: dict[str, object], machines: Machines, watch: Watch) -> cluster.Slurm:
    executor = cluster.Slurm(
        **common,
        time=machines.time,
        partition=machines.partition,
        workers=machines.workers,
        mem_per_cpu_gb=machines.memory,
        job_name=f"corpus-{stage}",
        qos="",
        env_command=cluster.environment(),
        sbatch_args=dict(argument.split("=", 1) for argument in machines.arguments),
    )
    executor.run()
    cluster.wait(executor, lambda: job.told(stage), watch)
    return executor


def _ray(job: Job, stage: str, common: dict[str, object], machines: Machines, watch: Watch) -> RayPipelineExecutor:
    executor = RayPipelineExecutor(**common, workers=machines.workers, mem_per_cpu_gb=machines.memory)
    cluster.run_ray(executor)
    return executor


START = {"local": _local, "slurm": _slurm, "ray": _ray}
