"""Test the text classifier that is trained from scratch: pooling, word vectors, and refused options."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from safetensors.torch import save_file

from fairseq_posenc.models.classifier import PosEncClassifier
from fairseq_posenc.models.classifier_config import ClassifierConfig
from fairseq_posenc.models.presets import presets

WORDS = [f"w{number}" for number in range(20)]


def dictionary() -> Dictionary:
    result = Dictionary()
    for word in WORDS:
        result.add_symbol(word)
    result.add_symbol("<mask>")  # as the task does
    return result


def build(pos_enc: str = "shaw", **options: Any) -> PosEncClassifier:
    """Return a tiny classifier with a head of three classes, in evaluation mode."""
    task = SimpleNamespace(source_dictionary=dictionary(), max_positions=lambda: None)
    config = Namespace(
        **{**vars(ClassifierConfig()), **presets()["posenc_classifier_tiny"], "pos_enc": pos_enc, **options}
    )
    torch.manual_seed(1)
    model = PosEncClassifier.build_model(config, task)
    model.register_classification_head("head", 3)
    return model.eval()


def logits(model: PosEncClassifier, tokens: list[list[int]]) -> torch.Tensor:
    output, _ = model(src_tokens=torch.tensor(tokens), classification_head_name="head")
    return output


@pytest.mark.parametrize("pooling", ["max", "cls"])
def test_padding_changes_nothing(pooling: str) -> None:
    model = build(pooling=pooling)
    alone, batched = logits(model, [[0, 7, 8, 2]]), logits(model, [[0, 7, 8, 2, 1, 1], [0, 9, 9, 9, 9, 2]])[:1]
    torch.testing.assert_close(alone, batched, atol=1e-6, rtol=0)


def test_pooling_takes_the_largest_value_over_time_or_the_first_output() -> None:
    model, tokens = build(), torch.tensor([[7, 8, 9, 2, 1]])
    states = model.encoder.sentence_encoder(tokens)["encoder_out"][0][:4, 0]  # without the pad
    torch.testing.assert_close(model.encoder(tokens)[0], states.max(0).values)
    first, tokens = build(pooling="cls"), torch.tensor([[0, 7, 8, 2]])
    states = first.encoder.sentence_encoder(tokens)["encoder_out"][0]
    torch.testing.assert_close(first.encoder(tokens), states[0], atol=0, rtol=0)
    assert (model.encoder.sentence_encoder.has_cls, first.encoder.sentence_encoder.has_cls) == (False, True)


@pytest.mark.parametrize("width", [64, 10])
def test_the_embedding_starts_with_the_word_vectors(tmp_path: Path, width: int) -> None:
    vectors = torch.randn(len(WORDS), width)
    save_file({"vectors": vectors}, tmp_path / "word_vectors.safetensors")
    model = build(word_vectors=str(tmp_path / "word_vectors.safetensors"))
    model.start(init_token=None)
    embedding = model.encoder.sentence_encoder.embed_tokens
    torch.testing.assert_close(embedding.words.weight[4:-1], vectors)
    assert embedding.words.weight[1].eq(0).all()  # the pad
    assert (embedding.projection is None) == (width == 64)
    assert model.args.embedding_dim == width
    assert logits(model, [[7, 8, 2]]).isfinite().all()


@pytest.mark.parametrize(
    ("options", "init_token", "message"),
    [
        ({"pooling": "cls"}, None, "--init-token 0"),
        ({"pooling": "max"}, 0, "--pooling cls"),
        ({"word_vectors": "short"}, None, "19 vectors of width 64"),
        ({"word_vectors": "short", "embedding_dim": 8}, None, "--embedding-dim is 8"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, options: Any, init_token: int | None, message: str) -> None:
    save_file({"vectors": torch.zeros(len(WORDS) - 1, 64)}, tmp_path / "short")
    if "word_vectors" in options:
        options = {**options, "word_vectors": str(tmp_path / "short")}
    with pytest.raises(ValueError, match=message):
        build(**options).start(init_token=init_token)
