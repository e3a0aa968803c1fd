"""Test the structure of the models: no positions of fairseq, plain cross-attention, and no hidden parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fairseq.modules import LearnedPositionalEmbedding, MultiheadAttention, SinusoidalPositionalEmbedding

from fairseq_posenc.models.attention import PosEncSelfAttention

from . import support
from .cases import CASES, in_turn, position_flags


@pytest.mark.parametrize("case", in_turn(CASES))
def test_positions_live_in_self_attention_and_in_pos_only(data: Path, case: tuple[str, str | None]) -> None:
    """Also, every parameter appears once and gets a gradient."""
    model, task = support.built(data, *position_flags(*case))
    own = (LearnedPositionalEmbedding, SinusoidalPositionalEmbedding)
    assert not any(isinstance(module, own) for module in model.modules())
    assert model.encoder.embed_positions is None
    assert model.decoder.embed_positions is None
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        assert type(layer.self_attn) is PosEncSelfAttention
    assert all(type(layer.encoder_attn) is MultiheadAttention for layer in model.decoder.layers)
    names = [key for key in model.state_dict() if ".pos." in key]
    assert all(key.split(".")[2] in case[0].split("+") for key in names), names
    batch = support.batches(task)[0]
    model.train()(**batch["net_input"])[0].square().sum().backward()
    assert not [key for key, parameter in model.named_parameters() if parameter.grad is None]


def test_alignments_are_those_of_cross_attention(data: Path) -> None:
    model, task = support.built(data, "--pos-enc", "rope")
    batch = support.batches(task)[0]
    extra = model(**batch["net_input"])[1]
    padding = batch["net_input"]["src_tokens"].eq(1)
    attention = extra["attn"][0]  # [B, T, S]
    assert attention.shape[1:] == (batch["target"].shape[1], padding.shape[1])
    torch.testing.assert_close(attention.sum(-1), torch.ones(attention.shape[:2]))
    assert float(attention.masked_select(padding[:, None].expand_as(attention)).abs().max().detach()) == 0.0
