"""Test the programs of the pretraining recipe, and that a training can start from a BERT."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fairseq")

from support_recipes import run

from recipes.pretrain_mlm.evaluate import left
from recipes.pretrain_mlm.unigrams import cross_entropy


def test_the_loss_of_frequencies() -> None:
    assert cross_entropy(np.array([1.0, 1.0]), np.array([5.0, 5.0])) == 1  # a fair coin
    train, valid = np.array([2.0, 0.0]), np.array([1.0, 1.0])  # smoothed to 3/4 and 1/4
    assert cross_entropy(train, valid) == pytest.approx((np.log2(4 / 3) + 2) / 2)


def test_the_plateau_is_left_for_good() -> None:
    assert left([(20, 9.0), (40, 8.4), (60, 8.9), (80, 8.4), (100, 8.0)], plateau=9.0) == {"left the plateau": 80}
    assert left([(20, 9.0), (40, 8.9)], plateau=9.0) == {}
    assert left([(20, 8.0)], plateau=9.0) == {"left the plateau": 20}


@pytest.mark.long
def test_init_from_starts_from_a_bert_of_the_same_size(tmp_path: Path) -> None:
    """The absolute table of BERT is dropped if the encoding has none; a BERT of another size is refused early."""
    source = bert(tmp_path / "bert")
    words = ["--preset", "smoke", "--device", "cpu", "--pos-enc", "m4", "--init-from", source]
    words += ["--tokenizer", "wordpiece", "--output", tmp_path / "out"]
    process = run("pretrain_mlm", *words, "--train.encoder-layers", 2)
    assert "--encoder-layers is 2, but the pretrained model has 1" in process.stderr
    assert not (tmp_path / "out" / "data").exists()
    assert run("pretrain_mlm", *words, "--train.max-update", 20).returncode == 0
    report = json.loads((tmp_path / "out" / "imported" / "m4.s1" / "report.json").read_text())
    assert "the absolute table" in report["dropped"]
    assert "loading pretrained model from" in (tmp_path / "out" / "logs" / "m4.s1.train.log").read_text()
    [row] = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert row["perplexity"] == pytest.approx(2 ** row["bits"], rel=0.01)


def bert(folder: Path) -> Path:
    """Write a random Hugging Face model of the preset's size, with letters as its vocabulary."""
    transformers = pytest.importorskip("transformers")
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *letters, *(f"##{letter}" for letter in letters)]
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    # The epsilon of RoBERTa, like the model of the preset.
    config = transformers.BertConfig(len(pieces), max_position_embeddings=64, layer_norm_eps=1e-5, **sizes)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    return folder
