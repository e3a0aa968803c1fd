"""Test the commands for training with several processes; tests/integration/test_launch.py runs them."""

from __future__ import annotations

import pytest

from recipes.lib import launch
from recipes.lib.launch import Training, effective_batch, identity, refuse_decided, train_command
from recipes.lib.values import Refused
from recipes.lib.worker import place

FLAGS = ["data-bin", "--max-tokens", "4000"]
TORCHRUN = "python -m torch.distributed.run"  # the script torchrun is missing where another Python's torch is linked


def command(**settings) -> str:
    return " ".join(train_command(FLAGS, Training(**{"device": "gpu", **settings})))


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, "fairseq-train data-bin --max-tokens 4000 --update-freq 1 --distributed-world-size 1"),
        (
            {"processes": 8, "batches": 16, "precision": "fp16"},
            f"{TORCHRUN} --nnodes 1 --nproc-per-node 8 --standalone -m recipes.lib.worker data-bin --max-tokens 4000 "
            "--update-freq 2 --fp16",
        ),
        (
            {"device": "cpu", "precision": "bf16"},
            "fairseq-train data-bin --max-tokens 4000 --update-freq 1 --cpu --bf16 "
            "--fp16-no-flatten-grads --distributed-world-size 1",
        ),
        (
            {"launch": "torchrun", "device": "cpu", "processes": 2, "batches": 2},
            f"{TORCHRUN} --nnodes 1 --nproc-per-node 2 --standalone -m recipes.lib.worker data-bin --max-tokens 4000 "
            "--update-freq 1 --cpu --distributed-backend gloo --ddp-backend legacy_ddp",
        ),
        (
            {"launch": "torchrun", "nodes": 2, "processes": 4, "batches": 8, "rendezvous": "first:29400"},
            f"{TORCHRUN} --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-id posenc "
            "--rdzv-endpoint first:29400 -m recipes.lib.worker data-bin --max-tokens 4000 --update-freq 1",
        ),
        (
            {"launch": "slurm", "nodes": 2, "processes": 4, "batches": 16, "precision": "amp"},
            "srun --nodes 2 --ntasks-per-node 4 --gpus-per-node 4 python -m recipes.lib.worker data-bin "
            "--max-tokens 4000 --update-freq 2 --amp",
        ),
        (
            {"launch": "slurm", "device": "cpu"},
            "srun --nodes 1 --ntasks-per-node 1 python -m recipes.lib.worker data-bin --max-tokens 4000 "
            "--update-freq 1 --cpu --distributed-backend gloo --ddp-backend legacy_ddp",
        ),
        (
            {"launch": "slurm", "device": "cpu", "processes": 2, "batches": 2, "threads": 4},
            "srun --nodes 1 --ntasks-per-node 2 --cpus-per-task 4 python -m recipes.lib.worker data-bin "
            "--max-tokens 4000 --update-freq 1 --cpu --distributed-backend gloo --ddp-backend legacy_ddp",
        ),
    ],
)
def test_the_command(settings, wanted):
    assert command(**settings) == wanted


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": 2, "batches": 2}, "--nodes 2: --launch local uses one machine"),
        ({"launch": "torchrun", "nodes": 2, "batches": 2}, "Give --rendezvous HOST:PORT"),
        ({"rendezvous": "first:29400"}, "only --launch torchrun with --nodes 2 or more"),
        ({"device": "cpu", "precision": "amp"}, "--precision amp: this precision needs a GPU"),
        ({"processes": 6, "batches": 16}, "6 processes cannot share 16 batches equally. Use 1, 2, 4, 8, 16"),
        ({"processes": 0}, "--processes 0: the value must be at least 1"),
        ({"batches": 0}, "--batches 0: the value must be at least 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(Refused, match=message):
        command(**settings)


def test_the_effective_batch_does_not_depend_on_the_processes():
    lines = [effective_batch(Training(processes=number, batches=16), 4000) for number in (1, 2, 8)]
    assert lines[2].endswith(": 8 processes x --update-freq 2 x --train.max-tokens 4,000 = at most 64,000 tokens")
    assert len({line.partition("=")[2] for line in lines}) == 1


def test_a_batch_of_one_process_is_not_a_product():
    assert effective_batch(Training(), 4000) == "Tokens per update: at most 4,000 (--train.max-tokens)"
    many = effective_batch(Training(nodes=2, processes=4, launch="torchrun", rendezvous="a:1", batches=8), 4000)
    assert many.startswith("Tokens per update: 2 nodes x 4 processes per node x --train.max-tokens 4,000 = ")


def test_auto_uses_a_gpu_if_there_is_one(monkeypatch):
    """Jobs for Slurm are submitted from machines without a GPU."""
    for gpus in ("", "NVIDIA H100"):
        monkeypatch.setattr(launch, "gpus", lambda gpus=gpus: tuple(gpus.splitlines()))
        assert Training().on_gpu == bool(gpus)
        assert Training(launch="slurm").on_gpu
        assert not Training(device="cpu").on_gpu


def test_the_identity_of_a_training_does_not_depend_on_its_processes():
    alone, many = (identity(FLAGS, Training(processes=number, batches=16)) for number in (1, 8))
    assert alone == many
    assert identity(FLAGS, Training(batches=8)) != alone
    assert identity(FLAGS, Training(batches=16, precision="bf16")) != alone


@pytest.mark.parametrize(
    ("flag", "instead"), [("update-freq", "--batches"), ("fp16", "--precision"), ("cpu", "--device")]
)
def test_a_flag_that_a_setting_decides_is_refused(flag, instead):
    refuse_decided(["lr"])
    with pytest.raises(Refused, match=f"--train.{flag}: .* use {instead}"):
        refuse_decided(["lr", flag])


def test_parallel_jobs_divide_the_gpus(monkeypatch):
    monkeypatch.setattr(launch, "gpus", lambda: ("NVIDIA H100",) * 4)
    assert Training(jobs=2, processes=2, batches=2).slots() == [
        {"CUDA_VISIBLE_DEVICES": "0,1"},
        {"CUDA_VISIBLE_DEVICES": "2,3"},
    ]
    assert Training(jobs=1, processes=4, batches=4).slots() == [{}]
    assert "1 of the 4 GPUs are used" in " ".join(launch.notes(Training(), ""))
    with pytest.raises(Refused, match="need 6 GPUs, but this machine has 4"):
        Training(jobs=3, processes=2, batches=2).slots()


def test_translation_runs_on_one_device_in_a_slurm_job_too():
    command = ["fairseq-generate", "data-bin"]
    slurm = launch.on_one_device(command, Training(launch="slurm"))
    assert slurm[:7] == ("srun", "--nodes", "1", "--ntasks", "1", "--gpus", "1")
    assert launch.on_one_device(command, Training(device="cpu")) == (*command, "--cpu")
    on_cpus = launch.on_one_device(command, Training(launch="slurm", device="cpu", threads=2))
    assert on_cpus == ("srun", "--nodes", "1", "--ntasks", "1", "--cpus-per-task", "2", *command, "--cpu")


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
    other = dict(zip(*[iter(place({**task, **nodes, "SLURM_STEP_ID": "3"}, lambda _: "gpu1")[:-1])] * 2, strict=True))
    assert options["--distributed-init-method"].startswith("tcp://gpu1:2")
    assert other["--distributed-init-method"] != options["--distributed-init-method"]
