"""Build the layers [B, n, d] -> [B, n, d] of other packages.

This file is imported only if layers of other packages are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .settings import Setting


@dataclass(frozen=True)
class Layer:
    """Hold a module and the function that runs it."""

    module: nn.Module
    run: Callable[[Tensor], Tensor]


def _fairseq_config(setting: Setting) -> Any:
    from fairseq.models.transformer import TransformerConfig

    config = TransformerConfig()
    for side in (config.encoder, config.decoder):
        side.embed_dim, side.ffn_embed_dim = setting.shape.dim, 4 * setting.shape.dim
        side.attention_heads = setting.shape.heads
    config.dropout = config.attention_dropout = 0.0
    config.activation_fn = "gelu"
    return config


def fairseq_encoder(setting: Setting) -> Layer:
    """Build fairseq's encoder layer.

    The layer has no positions, because fairseq's models add positions at the input.
    """
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    module = TransformerEncoderLayerBase(_fairseq_config(setting))
    return Layer(module, lambda x: module(x.transpose(0, 1), None).transpose(0, 1))


def fairseq_decoder(setting: Setting) -> Any:
    """Build fairseq's decoder layer without attention to an encoder."""
    from fairseq.modules.transformer_layer import TransformerDecoderLayerBase

    return TransformerDecoderLayerBase(_fairseq_config(setting), no_encoder_attn=True)


def bert(kind: str) -> Callable[[Setting], Layer]:
    """Return a function that builds Hugging Face's BERT layer with the position encoding `kind`.

    `kind` is relative_key (Shaw et al.) or relative_key_query (method 4 of Huang et al.).
    """

    def build(setting: Setting) -> Layer:
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertLayer

        config = BertConfig(position_embedding_type=kind, max_position_embeddings=setting.length, **_sizes(setting))
        module = BertLayer(config)
        return Layer(module, lambda x: module(x)[0])

    return build


def deberta_v2(setting: Setting) -> Layer:
    """Build a layer with the settings of DeBERTa v2 and v3.

    Distances are grouped into 256 buckets, relative vectors use the projections of the content, and the table of
    relative vectors is layer-normalised.
    """
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2.modeling_deberta_v2 import DebertaV2Encoder

    config = DebertaV2Config(
        num_hidden_layers=1,
        max_position_embeddings=setting.length,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        **_sizes(setting),
    )
    module = DebertaV2Encoder(config)
    allowed = torch.ones(setting.batch, setting.length, dtype=torch.long, device=setting.device)
    return Layer(module, lambda x: module(x, allowed)[0])


def t5(setting: Setting) -> Layer:
    """Build the first layer of T5, which computes the position bias for all layers."""
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Block

    dim, heads = setting.shape.dim, setting.shape.heads
    config = T5Config(d_model=dim, d_kv=dim // heads, num_heads=heads, d_ff=4 * dim, dropout_rate=0.0)
    module, columns = T5Block(config, has_relative_attention_bias=True), torch.arange(setting.length)
    columns = columns.to(setting.device)
    return Layer(module, lambda x: module(x, cache_position=columns)[0])


def xlnet(setting: Setting) -> Layer:
    """Build a model of one layer; the model computes the relative sinusoids."""
    from transformers import XLNetConfig, XLNetModel

    dim, heads = setting.shape.dim, setting.shape.heads
    config = XLNetConfig(vocab_size=8, d_model=dim, n_layer=1, n_head=heads, d_inner=4 * dim, dropout=0.0)
    module = XLNetModel(config)
    return Layer(module, lambda x: module(inputs_embeds=x)[0])


def x_transformers(**options: bool) -> Callable[[Setting], Layer]:
    """Return a function that builds an encoder layer of x-transformers with these options."""

    def build(setting: Setting) -> Layer:
        from x_transformers import Encoder

        dim, heads = setting.shape.dim, setting.shape.heads
        module = Encoder(dim=dim, depth=1, heads=heads, attn_dim_head=dim // heads, pre_norm=False, **options)
        return Layer(module, module)

    return build


def _sizes(setting: Setting) -> dict[str, Any]:
    return {
        "hidden_size": setting.shape.dim,
        "num_attention_heads": setting.shape.heads,
        "intermediate_size": 4 * setting.shape.dim,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


LAYERS: dict[str, Callable[[Setting], Layer]] = {
    "fairseq": fairseq_encoder,
    "bert-relative-key": bert("relative_key"),
    "bert-relative-key-query": bert("relative_key_query"),
    "deberta-v2": deberta_v2,
    "hf-t5": t5,
    "x-t5": x_transformers(rel_pos_bias=True),
    "xlnet": xlnet,
    "x-rotary": x_transformers(rotary_pos_emb=True, attn_flash=True),
    "x-alibi": x_transformers(alibi_pos_bias=True, attn_flash=True),
}
