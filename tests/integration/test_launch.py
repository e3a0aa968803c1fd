"""Test recipes/lib/recipe.sh on a CPU: processes of torchrun train one model, and training in half precision works."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu

from . import support

pytestmark = pytest.mark.long
ENCODING = ["--pos-enc", "shaw"]


def trained(data: Path, folder: Path, updates: int, *options: str) -> tuple[dict[str, Any], str]:
    """Train with a recipe that has a single step, and return the last checkpoint and the log."""
    flags = support.command_line(data, *ENCODING, "--max-update", updates, "--no-epoch-checkpoints", "--save-dir", "x")
    head = f"#!/usr/bin/env bash\n# A.\nsource {support.ROOT}/recipes/lib/recipe.sh\npreset=smoke  # settings in conf\n"
    (folder / "conf").mkdir()
    (folder / "conf" / "smoke.sh").touch()
    (folder / "run.sh").write_text(f'{head}options "$@"\ntrain one {shlex.join(map(str, flags))}\n')
    command = ["bash", str(folder / "run.sh"), "--output", str(folder / "out"), "--device", "cpu", *options]
    subprocess.run(command, cwd=support.ROOT, check=True)
    state = load_checkpoint_to_cpu(str(folder / "out" / "checkpoints" / "one" / "checkpoint_last.pt"))
    return state, (folder / "out" / "logs" / "one.train.log").read_text()


def test_two_processes_of_torchrun_learn_what_one_learns(data: Path, tmp_path: Path) -> None:
    """Without worker.py, fairseq-train under torchrun would run two independent trainings."""
    together, log = trained(data, tmp_path, 3, "--launch", "torchrun", "--processes", "2", "--batches", "2")
    assert "training on 2 devices" in log
    assert together["optimizer_history"][-1]["num_updates"] == 3
    alone = support.train(data, *ENCODING, "--update-freq", 2, "--max-update", 3)
    for name, tensor in alone.model.state_dict().items():
        torch.testing.assert_close(together["model"][name], tensor, rtol=1e-4, atol=1e-5)
