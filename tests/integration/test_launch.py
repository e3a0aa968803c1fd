"""Test recipes/lib/launch.py on a CPU: processes of torchrun train one model, and training in half precision works."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq_cli.train import cli_main

from recipes.lib.launch import Training, train_command
from recipes.lib.machine import executable

from . import support

ENCODING = ["--pos-enc", "shaw"]


def flags(data: Path, folder: Path, updates: int) -> list[str]:
    words = [*ENCODING, "--max-update", updates, "--save-dir", folder, "--no-epoch-checkpoints"]
    return support.command_line(data, *words)


def test_two_processes_of_torchrun_learn_what_one_learns(data: Path, tmp_path: Path) -> None:
    """Without launch.py, fairseq-train under torchrun would run two independent trainings."""
    how = Training(launch="torchrun", device="cpu", processes=2, batches=2)
    program, *words = train_command(flags(data, tmp_path, 3), how)
    done = support.run([executable(program), *words], cwd=support.ROOT)
    assert "training on 2 devices" in done.stdout + done.stderr
    together = load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert together["optimizer_history"][-1]["num_updates"] == 3
    alone = support.train(data, *ENCODING, "--update-freq", 2, "--max-update", 3)
    for name, tensor in alone.model.state_dict().items():
        torch.testing.assert_close(together["model"][name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_half_precision_trains_on_a_cpu(
    precision: str, dtype: torch.dtype, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = Training(device="cpu", precision=precision)  # type: ignore[arg-type]
    command = train_command(flags(data, tmp_path, 2), how)
    monkeypatch.setattr("sys.argv", list(command))
    cli_main()
    state = load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    # Checkpoints always hold float32. After training in half precision, half precision can hold their numbers exactly.
    for name, tensor in state["model"].items():
        assert torch.equal(tensor, tensor.to(dtype).to(tensor.dtype)), name
