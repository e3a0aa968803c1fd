"""Test question generation that starts with a pretrained encoder from a Hugging Face folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("fairseq")
pytest.importorskip("transformers")

import support_questions as q
from fairseq import checkpoint_utils
from support_exchange import BERT_WORDS, LENGTH, WORDS, random_model, saved

from fairseq_posenc.compat import CheckpointError
from fairseq_posenc.data.words import MASK
from fairseq_posenc.hub.ids import reordered, symbols_in_dictionary
from fairseq_posenc.hub.pretrained import read

START = ["--arch", "posenc_question_generation_tiny", "--decoder-attention-heads", 3, "--right-pad-source"]


def pretrained(folder: Path, kind: str = "bert", *, mask: bool = True) -> tuple[Path, list[Any], Path]:
    """Save a random Hugging Face model, and return its folder, arguments that start with it, and data in its pieces."""
    source = saved(random_model(kind), folder / "hf")
    if kind == "roberta":
        listed = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{i}" for i in range(WORDS - 5)), "<mask>"]
        (source / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(listed)}), "utf-8")
    pieces = [*symbols_in_dictionary(reordered(read(source))), *([MASK] if mask else [])]
    data = q.write_questions(folder / "prepared", {"train": 16, "test": 5}, pieces)
    return source, [*START, "--encoder-from", source], data


def theirs_of(kind: str, tokens: Tensor, segments: Tensor, dictionary: Any) -> dict[str, Tensor]:
    """Convert a batch, padded on the right, to the inputs of transformers."""
    if kind == "roberta":
        return {"input_ids": tokens, "attention_mask": tokens.ne(q.PAD).long()}
    special = {q.BOS: "[CLS]", q.PAD: "[PAD]", q.EOS: "[SEP]", q.UNK: "[UNK]"}
    ids = [[BERT_WORDS.index(special.get(i) or dictionary.symbols[i]) for i in row] for row in tokens.tolist()]
    return {"input_ids": torch.tensor(ids), "attention_mask": tokens.ne(q.PAD).long(), "token_type_ids": segments}


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
@torch.no_grad()
def test_the_encoder_is_that_of_the_folder(kind: str, mask: bool, tmp_path: Path) -> None:
    """The states equal those of transformers, where unknown words are the unknown piece."""
    _, start, data = pretrained(tmp_path, kind, mask=mask)
    model, task = q.built(data, *start)
    inputs = q.batch(task)["net_input"]
    read_as = inputs["src_tokens"].masked_fill(inputs["src_tokens"] >= task.size, q.UNK)
    theirs = random_model(kind).base_model(**theirs_of(kind, read_as, inputs["src_segments"], task.source_dictionary))
    ours = model.encoder(inputs["src_tokens"], None, inputs["src_segments"])["encoder_out"][0].transpose(0, 1)
    real = inputs["src_tokens"].ne(q.PAD)
    torch.testing.assert_close(ours[real], theirs.last_hidden_state[real], rtol=1e-5, atol=1e-5)
    assert model.encoder.pos.name == ("learned+segments-input" if kind == "bert" else "learned")
    assert model.decoder.embed_tokens.weight is model.encoder.embed_tokens.weight
    assert len(model.encoder.embed_tokens.weight) == WORDS - (not mask)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_frozen_encoder_does_not_learn_and_a_checkpoint_needs_no_folder(frozen: bool, tmp_path: Path) -> None:
    source, start, data = pretrained(tmp_path)
    start += ["--freeze-encoder"] * frozen
    before = q.built(data, *start)[0].encoder.state_dict()
    trained = q.trained(data, *start, "--max-update", 3, "--save-dir", tmp_path / "saved").model.train()
    assert trained.encoder.training is not frozen
    after = trained.encoder.state_dict()
    assert all(tensor.equal(after[name]) for name, tensor in before.items()) is frozen
    assert all(parameter.grad is None for parameter in trained.encoder.parameters()) is frozen
    shutil.rmtree(source)
    models, cfg = checkpoint_utils.load_model_ensemble(
        [str(tmp_path / "saved" / "checkpoint_last.pt")], arg_overrides={"data": str(data)}
    )
    assert (cfg.model.encoder_layers, cfg.model.encoder_embed_dim, cfg.model.max_source_positions) == (2, 48, LENGTH)
    torch.testing.assert_close(models[0].state_dict(), trained.state_dict(), rtol=0, atol=0)


def test_sizes_and_positions_are_those_of_the_encoder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A log line says if --max-source-positions differs from the encoder's number of positions."""
    source, start, data = pretrained(tmp_path)
    with caplog.at_level("INFO"):
        _, task = q.built(data, *start)
    assert task.longest == (LENGTH, 10)
    sizes = f"--max-source-positions is 24, but the encoder of --encoder-from {source} has {LENGTH} positions."
    assert sizes in caplog.text
    _, task = q.built(data, *start, "--max-source-positions", 9)
    assert task.longest == (9, 10)
    with pytest.raises(ValueError, match=r"--pos-enc-encoder t5: the encoder of .* has learned"):
        q.built(data, *start, "--pos-enc-encoder", "t5")


def test_another_vocabulary_is_refused_with_both_files(tmp_path: Path) -> None:
    _, start, data = pretrained(tmp_path)
    other = q.write_questions(tmp_path / "other")
    with pytest.raises(CheckpointError, match=r"dict\.src\.txt has 12 pieces, but .*hf has 35.* tokenizer of .*hf"):
        q.built(other, *start)
    lines = (data / "dict.src.txt").read_text("utf-8").splitlines(keepends=True)
    lines[2], lines[5] = lines[5], lines[2]
    for side in ("src", "tgt"):
        (data / f"dict.{side}.txt").write_text("".join(lines), "utf-8")
    with pytest.raises(CheckpointError, match=r"dict\.src\.txt:3: the piece is 'w3', .* it is 'w0'\. Prepare the data"):
        q.built(data, *start)
