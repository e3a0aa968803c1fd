"""Test training in two processes on a CPU (gloo), and fairseq's own programs without the package on the path.

tests/compat/test_registration.py tests orders of imports.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu

from . import masked_lm, support
from .cases import KINDS
from .support import PLUGIN, ROOT, logged, two_processes

CASES = support.table("trainings.toml", "two_processes")


@pytest.mark.parametrize("kind", CASES)
def test_two_processes_learn_what_one_learns_and_resume_exactly(
    kind: str, corpora: dict[Any, Path], tmp_path: Path
) -> None:
    """This includes the ends of epochs, where one process has one batch less."""
    module, stop = KINDS[kind], CASES[kind]["stop"]
    corpus = corpora[module]
    flags = [*CASES[kind]["options"].split(), "--max-update", stop + 2, "--no-epoch-checkpoints"]

    def two(folder: Path, *more: Any) -> list[dict[str, Any]]:
        return two_processes(folder, module.command_line(corpus, *flags, *more, "--save-dir", folder / "saved"))

    one = module.train(corpus, *flags, *CASES[kind]["alone"].split())
    expected = logged()
    assert len(expected) == (6 if kind == "translation" else 0)
    if module is masked_lm:
        counts = [int(batch["target"].ne(1).sum()) for batch in masked_lm.batches(one.task, "train", size=4)]
        assert len(counts) % 2, "one process should have one batch less"
        assert counts[:-1:2] != counts[1::2], "the two processes should differ in their numbers of masks"
    first, second = two(tmp_path / "whole", "--save-interval-updates", stop)
    assert len(first["losses"]) == stop + 2
    assert first["losses"] == second["losses"]
    torch.testing.assert_close(first["model"], second["model"], rtol=0, atol=0)
    assert first["losses"] == pytest.approx(one.losses, rel=1e-5)
    torch.testing.assert_close(first["model"], one.model.state_dict(), rtol=1e-4, atol=1e-5)
    assert first["logged"] == second["logged"] == pytest.approx(expected, abs=2e-4)
    (checkpoint,) = (tmp_path / "whole" / "saved").glob(f"checkpoint_*_{stop}.pt")
    for resumed, whole in zip(two(tmp_path / "resumed", "--restore-file", checkpoint), (first, second), strict=True):
        assert resumed["losses"] == whole["losses"][stop:]
        torch.testing.assert_close(resumed["model"], whole["model"], rtol=0, atol=0)


# -- programs of fairseq and of torch


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
    words = ["--distributed-init-method", f"file://{tmp_path}/processes", "--distributed-backend", "gloo"]
    words += ["--ddp-backend", "legacy_ddp", "--max-update", 2, "--save-dir", tmp_path, "--pos-enc", "rope"]
    command = [sys.executable, program, *support.command_line(data, *words)]
    done = support.run(command, package=False, cwd=tmp_path)
    assert "initialized host" in done.stdout + done.stderr  # logged by the child process
    state = load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert (state["cfg"]["model"]["pos_enc"], state["optimizer_history"][-1]["num_updates"]) == ("rope", 2)


#: A recipe that has a single step.
RECIPE = f"""#!/usr/bin/env bash
# A.
source {ROOT}/recipes/lib/recipe.sh
preset=smoke  # settings in conf
options "$@"
train one """


@pytest.mark.long
@pytest.mark.parametrize("path", ["explicit", "compiled"])
def test_two_processes_of_torchrun_learn_what_one_learns(path: str, data: Path, tmp_path: Path) -> None:
    """Without worker.py, fairseq-train under torchrun would run two independent trainings."""
    flags = ["--pos-enc", "shaw", "--lr", "1e-3", "--adam-eps", "1e-6", "--max-update", 3]
    words = support.command_line(data, *flags, "--pos-enc-path", path, "--no-epoch-checkpoints", "--save-dir", "x")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "smoke.sh").touch()
    (tmp_path / "run.sh").write_text(f"{RECIPE}{shlex.join(words)}\n")
    options = ["--output", tmp_path, "--device", "cpu", "--launch", "torchrun", "--processes", "2", "--batches", "2"]
    subprocess.run(["bash", tmp_path / "run.sh", *options], cwd=ROOT, check=True)
    assert "training on 2 devices" in (tmp_path / "logs" / "one.train.log").read_text()
    together = load_checkpoint_to_cpu(str(tmp_path / "checkpoints" / "one" / "checkpoint_last.pt"))
    assert together["optimizer_history"][-1]["num_updates"] == 3
    alone = support.train(data, *flags, "--update-freq", 2)
    for name, tensor in alone.model.state_dict().items():
        torch.testing.assert_close(together["model"][name], tensor, rtol=1e-4, atol=1e-5)
