"""Run the pretraining recipe from text to table, on its built-in corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import support_curves

from recipes.lib.command import main
from recipes.pretrain_mlm.__main__ import PRETRAIN_MLM

pytest.importorskip("fairseq")
pytestmark = pytest.mark.usefixtures("forked_stages")
TINY = ["--preset", "smoke", "--jobs", "1"]


def run(output: Path, *more: str) -> None:
    assert main(PRETRAIN_MLM, [*TINY, "--output", str(output), *more]) == 0


def test_the_smoke_preset_runs_from_text_to_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, "--pos-enc", "learned", "--tasks", "2")
    support_curves.check("pretrain_mlm", tmp_path, "learned.train")
    facts = json.loads((tmp_path / "result.json").read_text())
    (row,) = facts["results"]
    assert row["encoding"] == "learned"
    assert row["updates"] == 40
    assert 3 < row["loss, bits"] < 7
    assert row["perplexity"] == pytest.approx(2 ** row["loss, bits"], rel=0.01)
    assert (tmp_path / "curves.png").stat().st_size > 1000
    capsys.readouterr()
    run(tmp_path, "--pos-enc", "learned", "--tasks", "2")
    printed = capsys.readouterr().out
    assert "All stages are already done" in printed
    assert "export-hf" in printed


@pytest.mark.long
def test_init_from_starts_from_a_bert(tmp_path: Path) -> None:
    """The absolute table of BERT is dropped if the encoding has none; the word vectors stay those of BERT."""
    source = bert(tmp_path / "bert")
    words = ["--tokenizer", "wordpiece", "--tokenizer-path", str(source / "vocab.txt")]
    output = tmp_path / "out"
    run(output, "--pos-enc", "m4", "--init-from", str(source), *words, "--train.max-update", "20")
    report = json.loads((output / "imported" / "m4" / "report.json").read_text())
    assert "the absolute table" in report["dropped"]
    assert (
        "m4 started from the pretrained model. Dropped weights: the absolute table"
        in (output / "report.md").read_text()
    )
    log = (output / "logs" / "m4.train.log").read_text()
    assert "loading pretrained model from" in log


@pytest.mark.long
def test_a_pretrained_model_of_a_different_size_is_refused_before_the_text_is_prepared(tmp_path, capsys) -> None:
    source = bert(tmp_path / "bert")
    words = ["--tokenizer", "wordpiece", "--tokenizer-path", str(source / "vocab.txt"), "--train.encoder-layers", "2"]
    output = tmp_path / "out"
    asked = [*TINY, "--output", str(output), "--pos-enc", "m4", "--init-from", str(source), *words]
    assert main(PRETRAIN_MLM, asked) == 1
    assert "--encoder-layers is 2, but the pretrained model has 1" in capsys.readouterr().err
    assert not (output / "data").exists()


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
