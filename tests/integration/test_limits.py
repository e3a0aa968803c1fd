"""Test that commands take length limits from the checkpoint, unless the command line gives them."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairseq_cli.eval_lm
import fairseq_cli.generate
import pytest
import torch
from fairseq import options
from fairseq.data import Dictionary

from fairseq_posenc.compat import generation, patching

from . import lm, support

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


def generated(data: Path, path: Path, *more: str) -> list[str]:
    """Return the hypotheses of fairseq-generate."""
    words = [data, "--user-dir", support.PLUGIN, *support.TASK, "--path", path, "--cpu", "--num-workers", "0"]
    words += ["--required-batch-size-multiple", "1", "--max-len-b", "3", "--beam", "1", *more]
    cfg = support.parse(words, options.get_generation_parser, arch="wav2vec2")
    return [line for line in support.printed(fairseq_cli.generate.main, cfg)[0].splitlines() if line.startswith("H-")]


def test_generate_reads_sentences_as_long_as_in_training(longer: tuple[Path, Path]) -> None:
    """A flag that is given counts, also if it gives the default of fairseq."""
    assert len(generated(*longer, "--gen-subset", "long")) == 2
    with pytest.raises(Exception, match=r"max_positions=.1024"):
        generated(*longer, "--gen-subset", "long", "--max-source-positions=1024")


def test_a_table_refuses_what_it_has_no_rows_for(data: Path, tmp_path: Path) -> None:
    """With fairseq's flag that skips sentences, rope translates those that are longer than in training."""
    short = ["--max-source-positions", 7, "--max-target-positions", 7, "--max-update", 1]
    translated = {}
    for name in ("learned", "rope"):
        task = support.train(data, "--pos-enc", name, *short, "--save-dir", tmp_path / name).trainer.task
        lines = generated(data, tmp_path / name / "checkpoint_last.pt", "--skip-invalid-size-inputs-valid-test")
        translated[name] = {int(line[2:].partition("\t")[0]) for line in lines}
    task.load_dataset("test")
    assert translated["learned"] == {i for i, size in enumerate(task.dataset("test").src_sizes) if size <= 7}
    assert translated["learned"] < translated["rope"] == set(range(support.SIZES["test"]))


@pytest.mark.parametrize(
    "parser", [options.get_generation_parser, options.get_interactive_generation_parser, options.get_validation_parser]
)
def test_every_command_with_a_checkpoint_has_its_limits(
    parser: Callable[[], Any], longer: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["fairseq"])
    data, path = longer
    words = [str(data), "--task", "translation", "--path", str(path)]
    got = options.parse_args_and_arch(parser(), words)
    assert (got.max_source_positions, got.max_target_positions) == (3000, 3000)
    given = options.parse_args_and_arch(parser(), [*words, "--max-source-positions", "7"])
    assert (given.max_source_positions, given.max_target_positions) == (7, 3000)


@pytest.mark.parametrize(("more", "tokens"), [((), lm.SEGMENT), (("--tokens-per-sample", "4"), 4)])
def test_eval_lm_reads_blocks_of_the_length_of_training(
    more: tuple[str, ...], tokens: int, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fairseq takes blocks of 1,024 tokens, leaves all of them out and prints a perplexity of 1."""
    lm.train(lines, "--pos-enc", "learned", "--max-update", 1, "--save-dir", tmp_path, task=lm.STOCK_TASK)
    sizes: list[int] = []

    def recorded(**arguments: Any) -> dict[str, float]:
        sizes.extend(batch["net_input"]["src_tokens"].shape[1] for batch in arguments["batch_iterator"])
        return {"loss": 0.0, "perplexity": 1.0}

    monkeypatch.setattr(fairseq_cli.eval_lm, "eval_lm", recorded)
    words = [lines, "--user-dir", support.PLUGIN, "--path", tmp_path / "checkpoint_last.pt", "--cpu", *more]
    words += ["--gen-subset", "test", "--batch-size", "1", "--log-format", "none"]
    fairseq_cli.eval_lm.main(support.parse(words, options.get_eval_lm_parser))
    assert max(sizes) == tokens


# -- the options alone


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[..., str]:
    def saved(name: str, **task: int | str | None) -> str:
        torch.save({"cfg": {"task": {"_name": "translation", **task}, "model": None}, "model": {}}, tmp_path / name)
        return str(tmp_path / name)

    return saved


def parsed(path: str, *words: str, **defaults: Any) -> argparse.Namespace:
    namespace = argparse.Namespace(path=path, model_overrides="{}", **defaults)
    generation.adopt_limits(namespace, words)
    return namespace


def test_limits_are_raised_and_never_lowered(checkpoint: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    """An ensemble has the largest limit, because its models limit the length by themselves."""
    patching._said.clear()
    with caplog.at_level(logging.INFO, "fairseq_posenc"):
        path = checkpoint("a.pt", max_source_positions=3000, max_target_positions=512, max_positions=None)
        got = parsed(path, max_source_positions=1024, max_target_positions=1024, max_positions=512)
        parsed(checkpoint("b.pt", max_source_positions=1024), max_source_positions=1024)
        assert parsed(f"{path}:{checkpoint('c.pt', max_positions=2000)}", max_positions=1024).max_positions == 2000
    assert (got.max_source_positions, got.max_target_positions, got.max_positions) == (3000, 1024, 512)
    assert caplog.messages[0] == "--max-source-positions is 3000, as in the training; fairseq would take 1024"
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("content", [None, b"no checkpoint", {"model": {}}, [3], {"cfg": {"task": 3}, "model": {}}])
def test_files_without_limits_are_left_to_fairseq(content: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    assert parsed(str(path), max_positions=1024).max_positions == 1024
    assert vars(parsed("", max_positions=1024))["max_positions"] == 1024
