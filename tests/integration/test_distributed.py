"""Test training in two processes on a CPU (gloo), its resumption, and training in a spawned process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.logging import metrics

from . import ranks, support
from .ranks import assert_same, free_port

ENCODING = ["--pos-enc", "learned+t5", "--pos-enc-log-interval", "2"]


def two_processes(folder: Path, data: Path, *arguments: Any) -> list[dict[str, Any]]:
    """Run two processes, and return what each of them saved."""
    return ranks.two_processes(folder, support.command_line(data, *ENCODING, *arguments))


@pytest.fixture(scope="module")
def four_updates(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Return the folder with a checkpoint of update 2, and what both ranks saved after 4 updates."""
    folder = tmp_path_factory.mktemp("two")
    save = ["--save-dir", folder, "--save-interval-updates", 2, "--no-epoch-checkpoints"]
    return folder, two_processes(folder, data, "--max-update", 4, *save)


def test_both_processes_learn_the_same(four_updates: tuple[Path, list[dict[str, Any]]], data: Path) -> None:
    """Both also learn the same as one process with two batches per update."""
    _, (first, second) = four_updates
    assert first["losses"] == second["losses"]
    assert_same(first["model"], second["model"], rtol=0, atol=0)
    alone = support.train(data, *ENCODING, "--update-freq", 2, "--max-update", 4)
    assert first["losses"] == pytest.approx(alone.losses, rel=1e-5)
    assert_same(first["model"], alone.model.state_dict(), rtol=1e-4, atol=1e-5)
    logged = {name: metrics.get_smoothed_value("train_inner", name) for name in first["logged"]}
    assert len(logged) == 6  # the largest logit, the entropy and the norm of the encoder's and the decoder's layer 1
    assert first["logged"] == second["logged"] == pytest.approx(logged, abs=2e-4)


def test_two_processes_resume_exactly(
    four_updates: tuple[Path, list[dict[str, Any]]], data: Path, tmp_path: Path
) -> None:
    folder, (whole, _) = four_updates
    resume = ["--restore-file", folder / "checkpoint_1_2.pt", "--max-update", 4, "--save-dir", tmp_path]
    first, second = two_processes(tmp_path, data, *resume)
    assert first["losses"] == second["losses"] == whole["losses"][2:]
    assert_same(first["model"], whole["model"], rtol=0, atol=0)
    assert_same(second["model"], whole["model"], rtol=0, atol=0)


SPAWNING = """
import torch
torch.cuda.device_count = lambda: 1  # fairseq starts one process per GPU
if __name__ == "__main__":
    from fairseq_cli.train import cli_main
    cli_main()
"""


@pytest.mark.long
def test_a_spawned_worker_finds_the_plugin(data: Path, tmp_path: Path) -> None:
    """The child process receives the pickled configuration and imports everything again."""
    program = tmp_path / "spawning.py"
    program.write_text(SPAWNING)
    words = ["--distributed-init-method", f"tcp://127.0.0.1:{free_port()}", "--distributed-backend", "gloo"]
    words += ["--ddp-backend", "legacy_ddp", "--max-update", 2, "--save-dir", tmp_path, "--pos-enc", "rope"]
    command = [sys.executable, program, *support.command_line(data, *words)]
    done = support.run(command, package=False, cwd=tmp_path, forked=True)  # the worker is a new process
    assert "initialized host" in done.stdout + done.stderr  # logged by the child process
    state = load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert (state["cfg"]["model"]["pos_enc"], state["optimizer_history"][-1]["num_updates"]) == ("rope", 2)
