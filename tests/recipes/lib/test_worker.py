"""Test how a process of a training finds its rank; tests/integration/test_processes.py trains with several."""

from __future__ import annotations

import pytest

from recipes.lib.worker import place


def never(nodes: str) -> str:
    raise AssertionError(f"Slurm was asked for {nodes}")


def test_a_worker_reads_its_rank_from_torchrun():
    """The same holds inside of a Slurm allocation, where the variables of Slurm are set as well."""
    words = place({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, never)
    options = dict(zip(words[:-1:2], words[1::2], strict=True))
    assert options["--distributed-rank"] == "5"
    assert options["--distributed-world-size"] == "8"
    assert options["--device-id"] == "1"
    assert options["--distributed-init-method"] == "env://"
    assert words[-1] == "--distributed-no-spawn"
    assert place({}, never) == []


@pytest.mark.parametrize(
    ("visible", "device"), [({}, "3"), ({"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, "3"), ({"CUDA_VISIBLE_DEVICES": "2"}, "0")]
)
def test_a_worker_reads_its_rank_from_slurm(visible, device):
    task = {"SLURM_PROCID": "7", "SLURM_NTASKS": "8", "SLURM_LOCALID": "3", "SLURM_JOB_ID": "41", "SLURM_STEP_ID": "2"}
    nodes = {"SLURM_JOB_NODELIST": "gpu[1-4]", "SLURM_STEP_NODELIST": "gpu[1-2]"}
    asked = []
    words = place({**task, **nodes, **visible}, lambda nodes: asked.append(nodes) or "gpu1")
    options = dict(zip(words[:-1:2], words[1::2], strict=True))
    assert (options["--distributed-rank"], options["--distributed-world-size"]) == ("7", "8")
    assert options["--device-id"] == device
    assert asked == ["gpu[1-2]"]
    assert options["--distributed-init-method"].startswith("tcp://gpu1:2")
    for changed in ({"SLURM_STEP_ID": "3"}, {"SLURM_JOB_ID": "42"}):  # other steps and jobs meet elsewhere
        assert options["--distributed-init-method"] not in place({**task, **nodes, **changed}, lambda _: "gpu1")
