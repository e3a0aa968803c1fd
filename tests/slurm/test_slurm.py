"""Run a recipe on a real Slurm cluster, which `make test-slurm` starts."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
SMOKE = [ROOT / "recipes" / "lm_wikitext103" / "run.sh", "--preset", "smoke", "--launch", "slurm", "--device", "cpu"]
TRAINING = "train:learned.s1"  # the step that is interrupted
LONGER = [*SMOKE, "--train.max-update", 600, "--train.save-interval-updates", 50]
LONGER += ["--pos-enc", "learned", "--until", "train"]
# A job's own variables would make srun start the trainings inside this job. docs/cluster.md has the same line.
LEAVE_JOB = 'for name in "${!SLURM_@}"; do [[ $name == SLURM_CONF ]] || unset "$name"; done'


def finished_jobs() -> list[dict[str, str]]:
    """Return what Slurm recorded of the jobs that have ended: Name, JobState, StartTime, EndTime, ProcCnt and more."""
    lines = (Path(os.environ["SLURM_CONF"]).parent / "jobs.txt").read_text().splitlines()
    return [dict(word.split("=", 1) for word in line.split(" ") if "=" in word) for line in lines]


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true; the test's timeout ends what hangs."""
    while not condition():
        time.sleep(0.2)


def slurm(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the recipe in a batch job, which submits a job for every training run and every evaluation."""
    assert "SLURM_CONF" in os.environ, "no test cluster is running; start these tests with `make test-slurm`"
    folder = tmp_path_factory.mktemp("slurm")
    command = shlex.join(map(str, [*SMOKE, "--output", folder / "out", "--jobs", 2, "--processes", 2, "--batches", 2]))
    script = folder / "comparison.sh"
    script.write_text(f"#!/usr/bin/env bash\n{LEAVE_JOB}\nexec {command}\n")
    log = folder / "comparison.log"
    ended = subprocess.run(["sbatch", "--wait", "--output", str(log), str(script)], check=False)
    assert ended.returncode == 0, log.read_text()
    return folder / "out"


def test_a_recipe_in_a_batch_job_trains_with_two_tasks_and_several_jobs_at_once(output: Path) -> None:
    assert (output / "results.json").exists()
    jobs = {job["Name"]: job for job in finished_jobs()}
    trainings = [jobs[name] for name in ("train:xl.s1", TRAINING)]
    assert [(job["JobState"], job["ProcCnt"]) for job in trainings] == [("COMPLETED", "2")] * 2
    assert max(job["StartTime"] for job in trainings) < min(job["EndTime"] for job in trainings)
    assert jobs["evaluate:xl.s1"]["ProcCnt"] == "1"
    for name in ("xl.s1", "learned.s1"):
        assert "training on 2 devices" in (output / "logs" / f"{name}.train.log").read_text()


Attempt = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def attempt(output: Path) -> Iterator[Attempt]:
    """Yield a function that starts a longer training run in the folder of the first test."""
    processes: list[subprocess.Popen[str]] = []

    def start(**variables: str) -> subprocess.Popen[str]:
        command = [*map(str, LONGER), "--output", str(output)]
        env = {**os.environ, **variables}
        pipe = subprocess.PIPE
        processes.append(subprocess.Popen(command, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True))
        return processes[-1]

    yield start
    for process in processes:
        if process.poll() is None:
            process.terminate()
            process.wait()


def updates(event: str, log: Path) -> list[int]:
    """Return the updates at which checkpoints were loaded (event "Loaded") or saved (event "Saved")."""
    text = log.read_text() if log.exists() else ""
    return [int(number) for number in re.findall(rf"{event} checkpoint .* @ (\d+) updates", text)]


def test_a_training_run_goes_on_after_its_job_ended_early(output: Path, attempt: Attempt) -> None:
    """The job runs out of time, and then the recipe is stopped; the third attempt ends."""
    log = output / "logs" / "learned.s1.train.log"
    earlier_jobs = len(finished_jobs())

    def attempt_until_checkpoint(**variables: str) -> subprocess.Popen[str]:
        saved = len(updates("Saved", log))
        process = attempt(**variables)
        wait_until(lambda: len(updates("Saved", log)) > saved or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        return process

    process = attempt_until_checkpoint(SLURM_TIMELIMIT="1")
    slurm("scancel", "--signal", "STOP", "--name", TRAINING)  # so that waiting for the limit costs no processor time
    printed, _ = process.communicate()
    assert process.returncode == 1
    assert "DUE TO TIME LIMIT" in printed

    process = attempt_until_checkpoint()
    process.terminate()
    process.communicate()
    wait_until(lambda: not slurm("squeue", "--noheader", "--name", TRAINING))

    process = attempt()
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    states = [job["JobState"] for job in finished_jobs()[earlier_jobs:]]
    # The second job has failed, because its tasks were ended by the signal that srun had received from the recipe.
    assert states == ["TIMEOUT", "FAILED", "COMPLETED"]
    loaded = updates("Loaded", log)
    assert len(loaded) == 2
    assert 0 < loaded[0] < loaded[1] < 600
