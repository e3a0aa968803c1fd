"""Test fairseq's other commands on a tiny checkpoint, and the length limits that they take from it."""

from __future__ import annotations

import argparse
import logging
import re
from pathlib import Path
from typing import Any
from unittest import mock

import fairseq_cli.eval_lm
import pytest
import torch
from fairseq import options
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModelBase

from fairseq_posenc.compat import patching
from fairseq_posenc.models.translation import PosEncTransformer

from . import lm, support
from .support import PLUGIN, SIZES


def generated(data: Path, path: Path | str, *more: Any) -> dict[int, str]:
    """Return the hypotheses of fairseq-generate by sentence."""
    text, _ = support.evaluate("generate", data, path, "--beam", 2, "--max-len-b", 12, *more)
    assert re.search(r"Generate \w+ with beam=2: BLEU", text)
    return {int(number): line for number, line in re.findall(r"^H-(\d+)\t[^\t]+\t(.*)$", text, re.MULTILINE)}


def checkpoint(folder: Path) -> str:
    return str(folder / "checkpoint_last.pt")


def test_generate_scores_every_sentence(data: Path, trained: Path) -> None:
    """13 sentences are not a multiple of fairseq's default --required-batch-size-multiple 8."""
    together = generated(data, checkpoint(trained), "--batch-size", "8")
    assert sorted(together) == list(range(SIZES["test"]))
    assert generated(data, checkpoint(trained), "--batch-size", "1") == together
    assert generated(data, checkpoint(trained), "--batch-size", "8", "--left-pad-source") == together


@pytest.mark.parametrize("model", [PosEncTransformer, TransformerModelBase])
def test_the_hub_interface_translates(data: Path, trained: Path, model: Any) -> None:
    hub = model.from_pretrained(str(trained), "checkpoint_last.pt", str(data), user_dir=str(PLUGIN))
    assert isinstance(hub.models[0], PosEncTransformer)
    lines = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9"]
    together = hub.translate(lines, beam=2)
    assert together == [hub.translate(line, beam=2) for line in lines]
    assert all(re.fullmatch(r"(w\d+ ?)*", line) for line in together)


# -- lengths

LONG = 1100  # tokens of a sentence; fairseq-generate allows 1,024 by default


def test_generate_reads_sentences_as_long_as_in_training(tmp_path: Path) -> None:
    """A flag that is given counts, also if it gives the default of fairseq."""
    data = support.write_corpus(tmp_path / "data-bin")
    dictionary = Dictionary.load(str(data / "dict.en.txt"))
    for language in ("en", "de"):
        support.binarise(data / f"long.en-de.{language}", [[5] * 7, [6] * LONG], dictionary)
    lengths = ["--max-source-positions", 3000, "--max-target-positions", 3000]
    support.train(data, "--pos-enc", "rope", *lengths, "--max-update", 1, "--save-dir", tmp_path)
    options = [data, checkpoint(tmp_path), *support.TASK, "--gen-subset", "long"]
    assert len(generated(*options)) == 2
    with pytest.raises(Exception, match=r"max_positions=.1024"):
        generated(*options, "--max-source-positions=1024")


def test_a_table_refuses_what_it_has_no_rows_for(data: Path, tmp_path: Path) -> None:
    """With fairseq's flag that skips sentences, rope translates those that are longer than in training."""
    short = ["--max-source-positions", 7, "--max-target-positions", 7, "--max-update", 1]
    translated = {}
    for name in ("learned", "rope"):
        task = support.train(data, "--pos-enc", name, *short, "--save-dir", tmp_path / name).task
        translated[name] = {*generated(data, checkpoint(tmp_path / name), "--skip-invalid-size-inputs-valid-test")}
    task.load_dataset("test")
    assert translated["learned"] == {i for i, size in enumerate(task.dataset("test").src_sizes) if size <= 7}
    assert translated["learned"] < translated["rope"] == set(range(support.SIZES["test"]))


def test_eval_lm_reads_blocks_of_the_length_of_training(lines: Path, tmp_path: Path) -> None:
    """fairseq takes blocks of 1,024 tokens, leaves all of them out and prints a perplexity of 1."""
    lm.train(lines, "--pos-enc", "learned", "--max-update", 1, "--save-dir", tmp_path, task=lm.STOCK_TASK)
    for more, tokens in (([], lm.SEGMENT), (["--tokens-per-sample", 4], 4)):
        with mock.patch.object(fairseq_cli.eval_lm, "eval_lm", return_value={"loss": 0.0, "perplexity": 1.0}) as called:
            support.evaluate("eval_lm", lines, checkpoint(tmp_path), "--gen-subset", "test", "--batch-size", 1, *more)
        batches = called.call_args.kwargs["batch_iterator"]
        assert max(batch["net_input"]["src_tokens"].shape[1] for batch in batches) == tokens


def limits(command: str, checkpoints: list[Path], *more: str, task: str = "translation") -> argparse.Namespace:
    """Return the options of a command that loads these checkpoints."""
    words = ["data", "--task", task, "--path", ":".join(map(str, checkpoints)), *more]
    return options.parse_args_and_arch(support.PARSERS[command](), words)


@pytest.mark.parametrize("command", ["generate", "interactive", "validate"])
def test_limits_are_raised_and_never_lowered(command: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An ensemble has the largest limit, because its models limit the length by themselves."""

    def saved(task: Any) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.pt"
        torch.save({"cfg": {"task": task, "model": None}, "model": {}}, path)
        return path

    patching._said.clear()
    path = saved({"max_source_positions": 3000, "max_target_positions": 512, "max_positions": None})
    with caplog.at_level(logging.INFO, "fairseq_posenc"):
        got = limits(command, [path])
    assert (got.max_source_positions, got.max_target_positions) == (3000, 1024)
    assert caplog.messages == ["--max-source-positions is 3000, as in the training; fairseq would take 1024"]
    assert limits(command, [path], "--max-source-positions", "7").max_source_positions == 7
    ensemble = [saved({"max_positions": length}) for length in (2000, 3000, 2500)]
    assert limits(command, ensemble, task="sentence_prediction").max_positions == 3000
    for other in (saved(3), tmp_path / "missing.pt"):  # fairseq says later what is wrong with them
        assert limits(command, [other]).max_source_positions == 1024
