"""Test the pretraining recipe: where its text comes from, and the scores of its programs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support_recipes import planned, run, values

RECIPE = "pretrain_mlm"


def folder_of_text(folder: Path) -> Path:
    for name in ("train.a.txt", "train.b.jsonl.gz", "valid.a.txt", "notes.txt"):
        (folder / name).write_text("One document.\n")
    return folder


def corpus_of(command: list[str]) -> dict[str, list[str]]:
    flags = ("--train", "--valid", "--valid-part", "--languages", "--tokenizer-path", "--vocabulary", "--tasks")
    return {flag[2:]: values(command, flag) for flag in flags if flag in command}


# --- text


def test_flags_of_prepare_corpus_win() -> None:
    command = planned(RECIPE, "--corpus", "openwebtext", "--prepare.valid-part", 0.01, "--prepare.cased", "true")[
        "shards"
    ]
    assert values(command, "--valid-part") == ["0.01"]
    assert "--cased" in command


def test_a_folder_is_its_train_and_valid_files(tmp_path: Path) -> None:
    corpus = corpus_of(planned(RECIPE, "--corpus", folder_of_text(tmp_path))["shards"])
    assert [Path(word).name for word in corpus["train"]] == ["train.a.txt", "train.b.jsonl.gz"]
    assert [Path(word).name for word in corpus["valid"]] == ["valid.a.txt"]
    (tmp_path / "valid.a.txt").unlink()
    assert "the folder must have train.* and valid.*" in run(RECIPE, "--corpus", tmp_path, "--dry-run").stderr


@pytest.mark.parametrize(("mebibytes", "shards"), [(0, 1), (25, 2), (35, 3)])
def test_a_short_text_has_fewer_shards_and_the_user_is_told(mebibytes: int, shards: int, tmp_path: Path) -> None:
    with (folder_of_text(tmp_path) / "train.a.txt").open("ab") as file:
        file.truncate((mebibytes << 20) + 20)  # a sparse file
    process = run(RECIPE, "--corpus", tmp_path, "--shards", 3, "--dry-run")
    assert (f"--shards 3 is lowered to {shards}, because" in process.stdout) == (shards < 3)
    steps = planned(RECIPE, "--corpus", tmp_path, "--shards", 3)
    assert corpus_of(steps["shards"])["tasks"] == [str(shards)]
    assert steps["train:none.s1"][1].split(":") == [f"OUT/data/shard{number:05d}" for number in range(shards)]


def test_a_prepared_corpus_is_used_as_it_is(tmp_path: Path) -> None:
    for name in ("shard00000", "shard00001"):
        (tmp_path / name).mkdir()
    (tmp_path / "corpus.json").write_text(json.dumps({"options": {"tokenizer": "gpt2", "longest": 126}}, indent=1))
    words = ("--corpus", tmp_path, "--masking", "whole-word")
    steps = planned(RECIPE, *words)
    assert not {"shards", "fetch:gpt2-bpe"} & set(steps)
    assert steps["train:none.s1"][1] == f"{tmp_path}/shard00000:{tmp_path}/shard00001"
    assert values(steps["train:none.s1"], "--subwords") == ["gpt2"]
    assert values(steps["train:none.s1"], "--gpt2-encoder-json") == [f"{tmp_path}/tokenizer/encoder.json"]
    assert "Give --length 128 or more" in run(RECIPE, *words, "--length", 64, "--dry-run").stderr


# --- settings


def test_the_linear_decay_ends_with_the_training() -> None:
    command = planned(RECIPE, "--train.max-update", 5000)["train:none.s1"]
    assert values(command, "--total-num-update") == ["5000"]
    command = planned(RECIPE, "--train.max-update", 50, "--train.total-num-update", 70)["train:none.s1"]
    assert values(command, "--total-num-update") == ["70"]


# --- programs


def test_the_loss_of_frequencies() -> None:
    pytest.importorskip("fairseq")
    from recipes.pretrain_mlm.unigrams import cross_entropy

    assert cross_entropy(np.array([1.0, 1.0]), np.array([5.0, 5.0])) == 1  # a fair coin
    train, valid = np.array([2.0, 0.0]), np.array([1.0, 1.0])  # smoothed to 3/4 and 1/4
    assert cross_entropy(train, valid) == pytest.approx((np.log2(4 / 3) + 2) / 2)


def test_the_plateau_is_left_for_good() -> None:
    pytest.importorskip("fairseq")
    from recipes.pretrain_mlm.evaluate import left

    assert left([(20, 9.0), (40, 8.4), (60, 8.9), (80, 8.4), (100, 8.0)], plateau=9.0) == {"left the plateau": 80}
    assert left([(20, 9.0), (40, 8.9)], plateau=9.0) == {}
    assert left([(20, 8.0)], plateau=9.0) == {"left the plateau": 20}


@pytest.mark.long
def test_init_from_starts_from_a_bert_of_the_same_size(tmp_path: Path) -> None:
    """The absolute table of BERT is dropped if the encoding has none; a BERT of another size is refused early."""
    source = bert(tmp_path / "bert")
    words = ["--preset", "smoke", "--device", "cpu", "--pos-enc", "m4", "--init-from", source]
    words += ["--tokenizer", "wordpiece", "--output", tmp_path / "out"]
    process = run(RECIPE, *words, "--train.encoder-layers", 2)
    assert "--encoder-layers is 2, but the pretrained model has 1" in process.stderr
    assert not (tmp_path / "out" / "data").exists()
    assert run(RECIPE, *words, "--train.max-update", 20).returncode == 0
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
