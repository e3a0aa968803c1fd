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

from fairseq_posenc.compat import generation, patching
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
LIMITS = ("--max-source-positions", "3000", "--max-target-positions", "3000")


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a corpus with a long test sentence, and a checkpoint that allows it."""
    top = tmp_path_factory.mktemp("longer")
    data = support.write_corpus(top / "data-bin")
    dictionary = Dictionary.load(str(data / "dict.en.txt"))
    for language in ("en", "de"):
        support.binarise(data / f"long.en-de.{language}", [[5] * 7, [6] * LONG], dictionary)
    support.train(data, "--pos-enc", "rope", *LIMITS, "--max-update", 1, "--save-dir", top)
    return data, top / "checkpoint_last.pt"


def test_generate_reads_sentences_as_long_as_in_training(longer: tuple[Path, Path]) -> None:
    """A flag that is given counts, also if it gives the default of fairseq."""
    assert len(generated(*longer, *support.TASK, "--gen-subset", "long")) == 2
    with pytest.raises(Exception, match=r"max_positions=.1024"):
        generated(*longer, *support.TASK, "--gen-subset", "long", "--max-source-positions=1024")


def test_a_table_refuses_what_it_has_no_rows_for(data: Path, tmp_path: Path) -> None:
    """With fairseq's flag that skips sentences, rope translates those that are longer than in training."""
    short = ["--max-source-positions", 7, "--max-target-positions", 7, "--max-update", 1]
    translated = {}
    for name in ("learned", "rope"):
        task = support.train(data, "--pos-enc", name, *short, "--save-dir", tmp_path / name).trainer.task
        translated[name] = {*generated(data, checkpoint(tmp_path / name), "--skip-invalid-size-inputs-valid-test")}
    task.load_dataset("test")
    assert translated["learned"] == {i for i, size in enumerate(task.dataset("test").src_sizes) if size <= 7}
    assert translated["learned"] < translated["rope"] == set(range(support.SIZES["test"]))


@pytest.mark.parametrize("command", ["generate", "interactive", "validate"])
def test_every_command_with_a_checkpoint_has_its_limits(command: str, longer: tuple[Path, Path]) -> None:
    words = [str(longer[0]), "--task", "translation", "--path", str(longer[1])]
    got = options.parse_args_and_arch(support.PARSERS[command](), words)
    assert (got.max_source_positions, got.max_target_positions) == (3000, 3000)
    given = options.parse_args_and_arch(support.PARSERS[command](), [*words, "--max-source-positions", "7"])
    assert (given.max_source_positions, given.max_target_positions) == (7, 3000)


def test_eval_lm_reads_blocks_of_the_length_of_training(lines: Path, tmp_path: Path) -> None:
    """fairseq takes blocks of 1,024 tokens, leaves all of them out and prints a perplexity of 1."""
    lm.train(lines, "--pos-enc", "learned", "--max-update", 1, "--save-dir", tmp_path, task=lm.STOCK_TASK)
    for more, tokens in (([], lm.SEGMENT), (["--tokens-per-sample", 4], 4)):
        with mock.patch.object(fairseq_cli.eval_lm, "eval_lm", return_value={"loss": 0.0, "perplexity": 1.0}) as called:
            support.evaluate("eval_lm", lines, checkpoint(tmp_path), "--gen-subset", "test", "--batch-size", 1, *more)
        batches = called.call_args.kwargs["batch_iterator"]
        assert max(batch["net_input"]["src_tokens"].shape[1] for batch in batches) == tokens


# -- the limits alone


def limits(folder: Path, *checkpoints: Any, **defaults: int) -> argparse.Namespace:
    """Return the limits of a command that loads checkpoints of tasks with these options, or files of these bytes."""
    paths = [folder / f"{number}.pt" for number in range(len(checkpoints))]
    for path, task in zip(paths, checkpoints, strict=True):
        torch.save({"cfg": {"task": task, "model": None}, "model": {}}, path)
    namespace = argparse.Namespace(path=":".join(map(str, paths)), model_overrides="{}", **defaults)
    generation.adopt_limits(namespace, [])
    return namespace


def test_limits_are_raised_and_never_lowered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An ensemble has the largest limit, because its models limit the length by themselves."""
    patching._said.clear()
    task = {"max_source_positions": 3000, "max_target_positions": 512, "max_positions": None}
    with caplog.at_level(logging.INFO, "fairseq_posenc"):
        got = limits(tmp_path, task, max_source_positions=1024, max_target_positions=1024, max_positions=512)
    assert (got.max_source_positions, got.max_target_positions, got.max_positions) == (3000, 1024, 512)
    assert caplog.messages == ["--max-source-positions is 3000, as in the training; fairseq would take 1024"]
    ensemble = [{"max_positions": length} for length in (2000, 3000, 2500)]
    assert limits(tmp_path, *ensemble, max_positions=1024).max_positions == 3000
    assert limits(tmp_path, 3, max_positions=1024).max_positions == 1024  # a file without limits is left to fairseq
    missing = argparse.Namespace(path=str(tmp_path / "missing.pt"), model_overrides="{}", max_positions=1024)
    generation.adopt_limits(missing, [])
    assert missing.max_positions == 1024
