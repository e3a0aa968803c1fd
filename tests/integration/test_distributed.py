"""Test training in two processes on a CPU (gloo), its resumption, and training in a spawned process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.logging import metrics

from . import lm, masked_lm, support
from .ranks import free_port, two_processes

#: The learning rate is small, because Adam turns rounding errors of gradients near 0 into whole steps.
SMALL_STEPS = ["--lr", "1e-3", "--adam-eps", "1e-6"]
#: Batches are not shuffled, so that a batch of eight samples contains the next two batches of four.
WORDS = [*SMALL_STEPS, "--curriculum", 99, "--pos-enc", "shaw", "--mask-whole-words", "--subwords", "sentencepiece"]
#: By kind of model: the options of two processes, those by which one process sees the same batches, and the update
#: after which training resumes: in epoch 2, with the memory of each process, and with masks.
KINDS: dict[str, Any] = {
    "translation": (support, "--pos-enc learned+t5 --pos-enc-log-interval 2 --max-tokens 300", "--update-freq 2", 5),
    "language model": (
        lm,
        [*SMALL_STEPS, "--pos-enc", "xl", "--batch-size", lm.STREAMS // 2],
        f"--batch-size {lm.STREAMS}",
        3,
    ),
    "masked": (masked_lm, [*WORDS, "--batch-size", 4], "--batch-size 8", 15),
}
#: What --pos-enc-log-interval logs about layer 1 of the encoder and of the decoder.
STATISTICS = [f"{name}_{side}coder_1" for name in ("largest_logit", "entropy", "table_norm") for side in ("en", "de")]


@pytest.fixture(scope="module")
def ragged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a masked corpus with an odd number of batches, whose halves differ in their numbers of masks."""
    folder = masked_lm.write_corpus(tmp_path_factory.mktemp("ragged") / "data-bin", seed=4)
    _, task = masked_lm.built(folder, *WORDS)
    counts = [int(batch["target"].ne(1).sum()) for batch in masked_lm.batches(task, "train", size=4)]
    assert len(counts) % 2
    assert sum(first != second for first, second in zip(counts[::2], counts[1::2], strict=False)) > 2
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_learn_what_one_learns_and_resume_exactly(
    kind: str, corpora: dict[Any, Path], ragged: Path, tmp_path: Path
) -> None:
    """This includes the ends of epochs, where one process has one batch less."""
    module, options, alone, stop = KINDS[kind]
    corpus = ragged if kind == "masked" else corpora[module]
    flags = options.split() if isinstance(options, str) else options
    flags = [*flags, "--max-update", stop + 2, "--no-epoch-checkpoints"]

    def two(folder: Path, *more: Any) -> list[dict[str, Any]]:
        return two_processes(folder, module.command_line(corpus, *flags, *more, "--save-dir", folder / "saved"))

    one = module.train(corpus, *flags, *alone.split())
    logged = {name: metrics.get_smoothed_value("train_inner", name) for name in STATISTICS if kind == "translation"}
    first, second = two(tmp_path / "whole", "--save-interval-updates", stop)
    assert len(first["losses"]) == stop + 2
    assert first["losses"] == second["losses"]
    torch.testing.assert_close(first["model"], second["model"], rtol=0, atol=0)
    assert first["losses"] == pytest.approx(one.losses, rel=1e-5)
    torch.testing.assert_close(first["model"], one.model.state_dict(), rtol=1e-4, atol=1e-5)
    assert first["logged"] == second["logged"] == pytest.approx(logged, abs=2e-4)
    (checkpoint,) = (tmp_path / "whole" / "saved").glob(f"checkpoint_*_{stop}.pt")
    for resumed, whole in zip(two(tmp_path / "resumed", "--restore-file", checkpoint), (first, second), strict=True):
        assert resumed["losses"] == whole["losses"][stop:]
        torch.testing.assert_close(resumed["model"], whole["model"], rtol=0, atol=0)


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
    done = support.run(command, package=False, cwd=tmp_path)
    assert "initialized host" in done.stdout + done.stderr  # logged by the child process
    state = load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert (state["cfg"]["model"]["pos_enc"], state["optimizer_history"][-1]["num_updates"]) == ("rope", 2)
