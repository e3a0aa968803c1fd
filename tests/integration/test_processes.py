"""Test the plugin with fairseq's own programs, with and without the package on Python's path.

The training runs in a new process, because the order of imports matters. The other programs run in forks.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from fairseq.checkpoint_utils import load_checkpoint_to_cpu

from . import support
from .support import PLUGIN


@pytest.mark.parametrize(
    "package", [False, pytest.param(True, marks=pytest.mark.long)], ids=["bare user-dir", "package and user-dir"]
)
def test_fairseq_train_finds_the_plugin(data: Path, tmp_path: Path, package: bool) -> None:
    """Training with worker processes stops within an epoch after two updates, and its checkpoint is complete."""
    words = support.command_line(data, "--pos-enc", "shaw+alibi", "--max-update", 2, "--save-dir", tmp_path / "save")
    more = ["--num-workers", "2", "--data-buffer-size", "10", "--log-format", "simple"]
    done = support.run([*support.script("train"), *words, *more], package=package, cwd=tmp_path)
    assert "done training" in done.stdout + done.stderr
    assert "globally unique" not in done.stderr
    state = load_checkpoint_to_cpu(str(tmp_path / "save" / "checkpoint_last.pt"))
    assert state["optimizer_history"][-1]["num_updates"] == 2
    assert state["cfg"]["model"]["pos_enc"] == "shaw+alibi"


def test_fairseq_interactive_finds_the_plugin(trained: Path, data: Path, tmp_path: Path) -> None:
    arguments = [data, "--user-dir", PLUGIN, "--path", trained / "checkpoint_last.pt", "--cpu", "--beam", "2"]
    arguments += ["--max-len-b", "12", "--buffer-size", "3", "--batch-size", "2"]
    lines = "w1 w2 w3\nw4\nw5 w6 w7 w8 w9\n"
    done = support.run(
        [*support.script("interactive"), *arguments], package=False, cwd=tmp_path, input=lines, forked=True
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines() if line[:2] == "D-"] == ["D-0", "D-1", "D-2"]


def hydra(data: Path, folder: Path, *overrides: str) -> dict[str, Any]:
    """Return the configuration in the checkpoint of fairseq-hydra-train."""
    words = ["--config-dir", PLUGIN / "config", "--config-name", "translation", f"common.user_dir={PLUGIN}"]
    words += [f"task.data={data}", "common.cpu=true", "optimization.max_update=2", "dataset.disable_validation=true"]
    words += ["dataset.max_tokens=120", f"hydra.run.dir={folder}", f"checkpoint.save_dir={folder / 'save'}"]
    support.run([*support.script("hydra_train"), *words, *overrides], package=False, cwd=folder, forked=True)
    return load_checkpoint_to_cpu(str(folder / "save" / "checkpoint_last.pt"))


def test_fairseq_hydra_train_finds_the_plugin(data: Path, tmp_path: Path) -> None:
    """The values of the YAML file and of the overrides took effect."""
    model = ["model=posenc_transformer_tiny", "model.pos_enc=shaw", 'model.pos_enc_args="clip=3,values=false"']
    state = hydra(data, tmp_path, *model)
    cfg = state["cfg"]
    assert cfg["criterion"]["_name"] == "label_smoothed_cross_entropy"
    assert math.isclose(cfg["criterion"]["label_smoothing"], 0.1)
    assert (cfg["model"]["_name"], cfg["model"]["pos_enc"]) == ("posenc_transformer", "shaw")
    assert cfg["model"]["pos_enc_args"] == "clip=3,values=false"
    assert cfg["model"]["share_all_embeddings"] is True
    assert (cfg["model"]["encoder_embed_dim"], cfg["model"]["encoder_layers"]) == (64, 2)
    assert cfg["optimizer"]["adam_betas"] == "(0.9, 0.98)"
    assert (cfg["lr_scheduler"]["_name"], cfg["lr_scheduler"]["warmup_updates"]) == ("inverse_sqrt", 400)
    tables = {name: tensor for name, tensor in state["model"].items() if ".pos." in name}
    assert tables
    assert all(tensor.shape[-2] == 2 * 3 + 1 for tensor in tables.values())
    assert not any("value" in name for name in tables)
