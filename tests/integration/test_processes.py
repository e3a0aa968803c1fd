"""Test the plugin with fairseq's own programs, without the package on the path.

tests/compat/test_registration.py tests orders of imports.
"""

from __future__ import annotations

from pathlib import Path

from fairseq.checkpoint_utils import load_checkpoint_to_cpu

from . import support
from .support import PLUGIN


def test_fairseq_train_finds_the_plugin_and_does_not_train_again(data: Path, tmp_path: Path) -> None:
    """The programs run `python -m fairseq_cli.train`, whose module is `__main__`, and read ahead in a thread."""
    words = support.command_line(data, "--pos-enc", "shaw+alibi", "--max-update", 2, "--save-dir", tmp_path / "save")
    command = [*support.script("train"), *words, "--data-buffer-size", 10, "--log-format", "simple"]
    first, second = (support.run(command, package=False, cwd=tmp_path) for _ in range(2))
    assert "done training" in first.stdout + first.stderr
    assert "globally unique" not in first.stderr
    state = load_checkpoint_to_cpu(str(tmp_path / "save" / "checkpoint_last.pt"))
    assert state["optimizer_history"][-1]["num_updates"] == 2
    assert state["cfg"]["model"]["pos_enc"] == "shaw+alibi"
    assert "training has already finished: it made 2 updates, and --max-update is 2" in second.stdout + second.stderr


def test_fairseq_hydra_train_finds_the_plugin(data: Path, tmp_path: Path) -> None:
    """The values of the YAML file and of the overrides took effect."""
    words = ["--config-dir", PLUGIN / "config", "--config-name", "translation", f"common.user_dir={PLUGIN}"]
    words += [f"task.data={data}", "common.cpu=true", "optimization.max_update=2", "dataset.disable_validation=true"]
    words += ["dataset.max_tokens=120", f"hydra.run.dir={tmp_path}", f"checkpoint.save_dir={tmp_path / 'save'}"]
    words += ["model=posenc_transformer_tiny", "model.pos_enc=shaw", 'model.pos_enc_args="clip=3,values=false"']
    support.run([*support.script("hydra_train"), *words], package=False, cwd=tmp_path)
    state = load_checkpoint_to_cpu(str(tmp_path / "save" / "checkpoint_last.pt"))
    cfg = state["cfg"]
    assert (cfg["model"]["_name"], cfg["model"]["pos_enc"]) == ("posenc_transformer", "shaw")
    assert cfg["model"]["pos_enc_args"] == "clip=3,values=false"
    assert (cfg["model"]["encoder_embed_dim"], cfg["model"]["encoder_layers"]) == (64, 2)  # of model=
    assert cfg["model"]["share_all_embeddings"] is True  # of --config-name
    assert (cfg["lr_scheduler"]["_name"], cfg["lr_scheduler"]["warmup_updates"]) == ("inverse_sqrt", 400)
    tables = {name: tensor for name, tensor in state["model"].items() if ".pos." in name}
    assert tables
    assert all(tensor.shape[-2] == 2 * 3 + 1 for tensor in tables.values())
    assert not any("value" in name for name in tables)
