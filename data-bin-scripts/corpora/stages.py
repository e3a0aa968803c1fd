"""Run the stages of the pipeline on the chosen executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from datatrove.executor import RayPipelineExecutor
from loguru import logger
from shared import free_bytes
from tqdm import tqdm

from . import cluster
from .errors import CorpusError
from .job import Job, Meter, done
from .local import Local

#: Updates the progress bar of a stage.
Watch = Callable[[], object]


@dataclass(frozen=True)
class Machines:
    """Hold the options that say where the tasks run; these options do not change the result."""

    executor: str
    workers: int
    slurm_partition: str | None = None
    slurm_time: str = "24:00:00"
    memory: int = 4  # GB per task
    slurm_arg: Sequence[str] = ()  # NAME=VALUE

    def check(self) -> None:
        if self.executor == "slurm":
            cluster.check_slurm(self.slurm_partition)
        if self.executor == "ray":
            cluster.check_ray()


@contextmanager
def shown(job: Job, stage: str) -> Iterator[Watch]:
    """Yield a function that updates the progress bar of a stage, and print a summary at the end."""
    started, unit = time.monotonic(), " documents"
    with tqdm(desc=stage, unit=unit, mininterval=1, dynamic_ncols=True, leave=False, disable=None) as bar:
        yield lambda: bar.update(done(job, stage) - bar.n)
    print(f"{stage}: {done(job, stage):,} documents, {time.monotonic() - started:.0f} s", flush=True)


@dataclass(frozen=True)
class Task:
    """Run a task of a stage when datatrove calls this object, and write errors to a file for the main process."""

    job: Job
    stage: str
    work: Callable[[Job, int, Meter], None]

    def __call__(self, data: object, rank: int = 0, world_size: int = 1) -> None:
        with self.job.reporting_errors(self.stage, rank):
            meter = Meter(self.job, self.stage, rank)
            self.work(self.job, rank, meter)
            meter.write()


def run(task: Task, tasks: int, machines: Machines) -> None:
    """Run all tasks of a stage that are not done.

    Raises:
        CorpusError: A task reported an error, or some tasks did not finish.
    """
    job, stage = task.job, task.stage
    logger.remove()  # hide datatrove's log; the tasks write their own logs
    common = {"pipeline": [task], "tasks": tasks, "logging_dir": str(job.logs(stage))}
    for report in (job.folder / "errors").glob(f"{stage}-*"):
        report.unlink()  # an error of an earlier run
    with shown(job, stage) as watch:
        executor = START[machines.executor](job, stage, common, machines, watch)
        if error := job.first_error(stage):
            raise CorpusError(error)
        if missing := executor.get_incomplete_ranks(skip_completed=True):
            raise CorpusError(
                f"{len(missing)} of {tasks} tasks of the stage {stage} did not finish (the first is {missing[0]}), and "
                f"{free_bytes(job.folder)} bytes are free in {job.folder}. See the logs in {job.logs(stage)}, "
                "and run the command again to continue."
            )


def _local(job: Job, stage: str, common: dict[str, object], machines: Machines, watch: Watch) -> Local:
    executor = Local(watch, workers=machines.workers, **common)
    executor.run()
    return executor


def _slurm(job: Job, stage: str, common: dict[str, object], machines: Machines, watch: Watch) -> cluster.Slurm:
    executor = cluster.Slurm(
        **common,
        time=machines.slurm_time,
        partition=machines.slurm_partition,
        workers=machines.workers,
        mem_per_cpu_gb=machines.memory,
        job_name=f"corpus-{stage}",
        qos="",
        env_command=cluster.environment(),
        sbatch_args=dict(argument.split("=", 1) for argument in machines.slurm_arg),
    )
    executor.run()
    cluster.wait(executor, lambda: job.first_error(stage), watch)
    return executor


def _ray(job: Job, stage: str, common: dict[str, object], machines: Machines, watch: Watch) -> RayPipelineExecutor:
    executor = RayPipelineExecutor(**common, workers=machines.workers, mem_per_cpu_gb=machines.memory)
    cluster.run_ray(executor)
    return executor


START = {"local": _local, "slurm": _slurm, "ray": _ray}
