"""Test the options of question generation: presets, and options without effect."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fairseq")

import support_questions as q

from fairseq_posenc.core.syntax import parse_options
from fairseq_posenc.models.question_generation_config import QuestionGenerationConfig


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return q.write_questions(tmp_path_factory.mktemp("questions") / "prepared")


def test_the_decoder_is_the_papers() -> None:
    """Qu et al. 2021 (LFHC and GCDF): 3 layers, 12 heads, feed-forward layers of 3072."""
    config = QuestionGenerationConfig()
    assert (config.decoder_layers, config.decoder_attention_heads, config.decoder_ffn_embed_dim) == (3, 12, 3072)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--freeze-encoder", "--freeze-encoder without --encoder-from would keep random weights"),
        ("--decoder-attention-heads 5", "--decoder-attention-heads 5 does not divide the width 64"),
        ("--pos-enc nonsense", "nonsense"),
        ("--pos-enc linformer", "--pos-enc"),
        ("--pos-enc-encoder-args nonsense=1", "nonsense"),
        ("--pos-enc sinusoidal --pos-enc-no-decay", "--pos-enc-no-decay"),
        ("--lenpen-form gnmt", "--lenpen-form has no effect in training"),
        ("--arch posenc_transformer_tiny", "--arch posenc_question_generation"),
    ],
)
def test_what_has_no_effect_is_refused(arguments: str, message: str, data: Path) -> None:
    with pytest.raises(ValueError, match=message):
        q.built(data, *arguments.split())


def test_only_the_decoder_takes_the_encoding(data: Path) -> None:
    model, _ = q.built(data, "--pos-enc", "t5", "--pos-enc-args", "buckets=8")
    assert (model.encoder.pos.name, model.decoder.pos.name) == ("learned+segments-input", "t5")
    assert parse_options("buckets=8") == {"buckets": "8"}
