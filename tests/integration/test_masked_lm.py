"""Test masked language models: how weights start, the positions that the encoding gets, and whole-word masks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.models.masked_lm import pair_segments
from fairseq_posenc.positions import Positions, restart_ids

from . import masked_lm

PAD, BOS, EOS = 1, 0, 2
#: The first id of pieces that do not begin a word.
FIRST_INNER = 4 + 8


def test_an_untrained_model_starts_as_bert_does(text: Path) -> None:
    model, _ = masked_lm.built(text, "--encoder-embed-dim", 64, "--pos-enc", "m4")
    weights = {name: p for name, p in model.named_parameters() if p.dim() == 2 and ".pos." not in name}
    assert any("self_attn.q_proj" in name for name in weights)
    for name, weight in weights.items():
        assert weight.std().item() == pytest.approx(0.02, rel=0.2), name


# -- positions that the encoding gets ---------------------------------------------------------------------


def seen_by(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list to which each forward pass of the model adds its positions."""
    seen: list[Positions] = []
    monkeypatch.setattr(model.encoder.sentence_encoder.pos, "check", seen.append)
    return seen


def test_sentences_are_those_before_masking(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = masked_lm.built(text, "--pos-enc", "sentence-restart", "--mask-prob", "0.6")
    seen, hidden = seen_by(model, monkeypatch), 0
    for batch in masked_lm.batches(task, "train"):
        inputs, target = batch["net_input"], batch["target"]
        original = torch.where(target.ne(PAD), target, inputs["src_tokens"])
        assert inputs["unmasked_tokens"].equal(original)
        model(**inputs)
        assert (seen[-1].restart_ids == restart_ids(original, PAD, (BOS, EOS))).all()
        hidden += int((original.eq(EOS) & inputs["src_tokens"].ne(EOS)).sum())
    assert hidden > 10  # so the masked tokens would give other sentence boundaries


def test_a_packed_sample_is_one_segment_and_begins_with_cls(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample contains several documents, and therefore two </s> in a row."""
    model, task = masked_lm.built(text, "--pos-enc", "m4[reset=vector]+segments")
    seen, doubled = seen_by(model, monkeypatch), 0
    for batch in masked_lm.batches(task, "train"):
        model(**batch["net_input"])
        assert not seen[-1].segments.any()
        assert not seen[-1].cls_column.any()
        doubled += int(pair_segments(batch["net_input"]["unmasked_tokens"], EOS, PAD).sum())
    assert doubled


def test_segments_are_those_of_the_pair_unless_they_are_given(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test RoBERTa's <s> a </s></s> b </s>, a single sentence, padding, and BERT's <s> a </s> b </s>."""
    model, _ = masked_lm.built(text, "--pos-enc", "learned+segments")
    model.register_classification_head("pairs", num_classes=3)
    seen = seen_by(model, monkeypatch)
    tokens = torch.tensor([[0, 5, 2, 2, 6, 7, 2], [0, 5, 6, 2, 1, 1, 1], [0, 5, 2, 2, 6, 2, 1], [0, 5, 6, 2, 7, 8, 2]])
    expected = [[0, 0, 0, 1, 1, 1, 1], [0] * 7, [0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1, 1]]
    logits, _ = model(tokens, classification_head_name="pairs")
    assert logits.shape == (4, 3)
    assert seen[0].segments.tolist() == expected
    segments = torch.tensor([[0, 1, 1, 0, 0, 0, 0]])
    model(tokens[:1], segments=segments)
    assert seen[1].segments is segments


# -- masks ------------------------------------------------------------------------------------------------


def test_whole_words_are_replaced_together_and_never_by_the_mask(text: Path) -> None:
    """tests/data/test_words.py tests how many words are masked, and how."""
    random = ["--mask-prob", "0.4", "--random-token-prob", "1", "--leave-unmasked-prob", "0"]
    _, task = masked_lm.built(text, "--mask-whole-words", "--subwords", "sentencepiece", *random)
    several = 0
    for batch in masked_lm.batches(task, "train"):
        tokens, predicted = batch["net_input"]["unmasked_tokens"], batch["target"].ne(PAD)
        goes_on = (tokens[:, 1:] >= FIRST_INNER) & (tokens[:, :-1] > 3)
        assert predicted[:, 1:][goes_on].equal(predicted[:, :-1][goes_on])
        assert not batch["net_input"]["src_tokens"].eq(task.mask_idx).any()
        several += int(predicted[:, 1:][goes_on].sum())
    assert several > 20


def test_a_dictionary_of_another_tokenizer_is_refused(text: Path) -> None:
    _, task = masked_lm.built(text, "--mask-whole-words", "--subwords", "gpt2")
    with pytest.raises(ValueError, match="scheme of the tokenizer that made these pieces"):
        task.load_dataset("train")


def test_longer_than_the_task_is_refused(text: Path) -> None:
    model, _ = masked_lm.built(text)
    with pytest.raises(ValueError, match="raise --max-positions"):
        model(torch.full((1, masked_lm.LENGTH + 1), 5))
