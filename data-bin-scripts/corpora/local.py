"""Run tasks on this machine."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import connection, get_context, set_forkserver_preload
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import dill
from datatrove.executor import LocalPipelineExecutor

from .errors import CorpusError
from .processes import die_with_run


class Local(LocalPipelineExecutor):
    """Run datatrove's local executor with one process per task.

    datatrove's own pool waits forever for a task that was killed, for example because memory ran out. When a run is
    killed, the manager process of datatrove's pool stays alive.
    """

    def __init__(self, watch: Callable[[], object], **options: object) -> None:
        super().__init__(**options)
        self._watch = watch

    def run(self) -> None:
        """Run the tasks until all are done or one has failed.

        `Job.reporting_errors` writes the error of a task to a file.

        Raises:
            CorpusError: A task was killed.
        """
        self.save_executor_as_json()
        _preload()
        waiting, running, failed = self.get_incomplete_ranks(), dict[int, ForkServerProcess](), False
        try:
            while (waiting or running) and not failed:
                while waiting and len(running) < self.workers:
                    rank = waiting.pop(0)
                    running[rank] = self._start(rank)
                connection.wait([process.sentinel for process in running.values()], timeout=1)
                self._watch()
                for rank in [rank for rank, process in running.items() if not process.is_alive()]:
                    failed |= _failed(rank, running.pop(rank).exitcode)
        finally:
            for process in running.values():
                process.kill()
            for process in running.values():
                process.join()

    def _start(self, rank: int) -> ForkServerProcess:
        log = Path(self.logging_dir.resolve_paths(f"task_{rank:05d}.err"))
        process = get_context("forkserver").Process(target=_task, args=(dill.dumps(self), rank, log))
        process.start()
        return process

    def __getstate__(self) -> dict[str, object]:
        """Return the attributes to pickle: all except the progress bar, which stays in this process."""
        return {name: value for name, value in self.__dict__.items() if name != "_watch"}


def _preload() -> None:
    """Import the modules once in Python's fork server, so that tasks start quickly; set PYTHONPATH for the imports."""
    here, known = str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")
    if here not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, known]))
    set_forkserver_preload(["corpora.pipeline", "sentencepiece", "tokenizers"])


def _task(executor: bytes, rank: int, log: Path) -> None:
    """Run a task in its own process, with stderr written to the task's log."""
    die_with_run()
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), sys.stderr.fileno())
    loaded: Local = dill.loads(executor)
    loaded._run_for_rank(rank)


def _failed(rank: int, status: int | None) -> bool:
    if status is not None and status < 0:
        raise CorpusError(
            f"task {rank} was killed by {signal.Signals(-status).name}. SIGKILL often means that memory ran out. Run "
            "the command again, with fewer --workers, to continue."
        )
    return status != 0
