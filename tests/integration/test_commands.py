"""Test fairseq's other commands on one tiny checkpoint: validate, generate, average, hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import fairseq_cli.generate
import fairseq_cli.validate
import pytest
from fairseq import checkpoint_utils, options
from fairseq.models.transformer import TransformerModelBase

from fairseq_posenc.models.translation import PosEncTransformer

from . import support
from .support import PLUGIN, SIZES


def generated(data: Path, path: str, *arguments: str) -> dict[int, str]:
    """Return the hypotheses of fairseq-generate by sentence."""
    words = [
        data,
        "--user-dir",
        PLUGIN,
        "--path",
        path,
        "--cpu",
        "--beam",
        2,
        "--max-len-b",
        12,
        "--num-workers",
        0,
        *arguments,
    ]
    cfg = support.parse(words, options.get_generation_parser, arch="wav2vec2")
    text, _ = support.printed(fairseq_cli.generate.main, cfg)
    assert re.search(r"Generate test with beam=2: BLEU", text)
    return {int(number): line for number, line in re.findall(r"^H-(\d+)\t[^\t]+\t(.*)$", text, re.MULTILINE)}


def checkpoint(folder: Path) -> str:
    return str(folder / "checkpoint_last.pt")


def test_generate_scores_every_sentence(data: Path, trained: Path) -> None:
    """13 sentences are not a multiple of fairseq's default --required-batch-size-multiple 8."""
    together = generated(data, checkpoint(trained), "--batch-size", "8")
    assert sorted(together) == list(range(SIZES["test"]))
    assert generated(data, checkpoint(trained), "--batch-size", "1") == together
    assert generated(data, checkpoint(trained), "--batch-size", "8", "--left-pad-source") == together


def test_diverse_beams_do_not_depend_on_the_batches(data: Path, trained: Path) -> None:
    """fairseq raises an IndexError, or takes the groups of another sentence."""
    diverse = ["--diverse-beam-groups", "2", "--diverse-beam-strength", "1"]
    whole, *parts = (generated(data, checkpoint(trained), "--batch-size", size, *diverse) for size in ("16", "4", "1"))
    assert sorted(whole) == list(range(SIZES["test"]))
    assert parts == [whole, whole]
    assert whole != generated(data, checkpoint(trained))


def test_unknown_words_are_replaced_by_source_words(data: Path, trained: Path, tmp_path: Path) -> None:
    """The text has words that the dictionary lacks, and a reference, which the model is forced to begin with."""
    for language in ("en", "de"):
        (tmp_path / f"dict.{language}.txt").write_text((data / f"dict.{language}.txt").read_text())
        (tmp_path / f"test.en-de.{language}").write_text("hello w1\nw2\n" if language == "en" else "Hallo w1\nw2\n")
    raw = ["--dataset-impl", "raw", "--prefix-size", "1", "--print-alignment", "--replace-unk", "-s", "en", "-t", "de"]
    first, second = (line.split() for _, line in sorted(generated(tmp_path, checkpoint(trained), *raw).items()))
    assert first[0] in ("hello", "w1")
    assert "<unk>" not in first + second


@pytest.mark.parametrize("model", [PosEncTransformer, TransformerModelBase])
def test_the_hub_interface_translates(data: Path, trained: Path, model: Any) -> None:
    hub = model.from_pretrained(str(trained), "checkpoint_last.pt", str(data), user_dir=str(PLUGIN))
    assert isinstance(hub.models[0], PosEncTransformer)
    lines = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9"]
    together = hub.translate(lines, beam=2)
    assert together == [hub.translate(line, beam=2) for line in lines]
    assert all(re.fullmatch(r"(w\d+ ?)*", line) for line in together)


def test_the_encoding_of_a_checkpoint_may_be_overridden(data: Path, tmp_path: Path) -> None:
    """An encoding without parameters accepts other options in generation, for longer inputs for example."""
    support.train(data, "--pos-enc", "sinusoidal", "--max-update", 2, "--save-dir", tmp_path)
    models, _ = checkpoint_utils.load_model_ensemble(
        [checkpoint(tmp_path)], arg_overrides={"data": str(data), "pos_enc_args": "offset=2"}
    )
    assert "offset=2" in str(models[0].encoder.pos)
