"""Build the layers of other packages, which map [B, n, d] to [B, n, d], and say where they come from.

A package is imported only when one of its layers is built, so that `gpu-check` needs none of them.

Legend: B batch size, n tokens, h heads, d width.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

#: Later versions changed relative_key and relative_key_query, with which our methods are compared.
TRANSFORMERS = "4.46"


class Origin(NamedTuple):
    """Describe the origin of a layer.

    Args:
        module: Python module. package: The distribution to install.
        ours: Our encoding to compare the layer with, as the user would name it.
    """

    module: str
    package: str
    ours: str

    def missing(self) -> str:
        """Return why this layer cannot be measured; an empty text if it can."""
        if importlib.util.find_spec(self.module) is None:
            return f"{self.package} is not installed"
        if self.module == "transformers" and not version(self.package).startswith(TRANSFORMERS):
            return f"{self.label()} is installed, but {TRANSFORMERS}.x is needed"
        return ""

    def label(self) -> str:
        """Return the package and its version."""
        return f"{self.package} {version(self.package)}"


FAIRSEQ = "fairseq"
_HF, _X = ("transformers", "transformers"), ("x_transformers", "x-transformers")
_LIKE_V2 = "deberta:form=original,buckets=256,share-att-key=true,layer-norm=true"
ORIGINS = {
    FAIRSEQ: Origin("fairseq", "fairseq-fixed", "none"),
    "bert-relative-key": Origin(*_HF, "shaw"),
    "bert-relative-key-query": Origin(*_HF, "m4"),
    "deberta-v2": Origin(*_HF, _LIKE_V2),
    "hf-t5": Origin(*_HF, "t5"),
    "x-t5": Origin(*_X, "t5"),
    "xlnet": Origin(*_HF, "xl"),
    "x-rotary": Origin(*_X, "rope"),
    "x-alibi": Origin(*_X, "alibi"),
}


class Size(NamedTuple):
    """Hold the sizes of a layer and of its input, and the device."""

    dim: int
    heads: int
    length: int
    batch: int
    device: torch.device


@dataclass(frozen=True)
class Layer:
    """Hold the module of a layer and a function that runs it."""

    module: nn.Module
    run: Callable[[Tensor], Tensor]


def _fairseq_config(size: Size) -> Any:
    from fairseq.models.transformer import TransformerConfig

    config = TransformerConfig()
    for side in (config.encoder, config.decoder):
        side.embed_dim, side.ffn_embed_dim = size.dim, 4 * size.dim
        side.attention_heads = size.heads
    config.dropout = config.attention_dropout = 0.0
    config.activation_fn = "gelu"
    return config


def fairseq_encoder(size: Size) -> Layer:
    """Build fairseq's encoder layer.

    The layer encodes no positions, because fairseq's models add positions at the input.
    """
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    module = TransformerEncoderLayerBase(_fairseq_config(size))
    return Layer(module, lambda x: module(x.transpose(0, 1), None).transpose(0, 1))


def fairseq_decoder(size: Size) -> Any:
    """Build fairseq's decoder layer without cross-attention."""
    from fairseq.modules.transformer_layer import TransformerDecoderLayerBase

    return TransformerDecoderLayerBase(_fairseq_config(size), no_encoder_attn=True)


def bert(kind: str) -> Callable[[Size], Layer]:
    """Return a function that builds Hugging Face's BERT layer with the position encoding `kind`.

    `kind` is relative_key (Shaw et al.) or relative_key_query (method 4 of Huang et al.).
    """

    def build(size: Size) -> Layer:
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertLayer

        config = BertConfig(position_embedding_type=kind, max_position_embeddings=size.length, **_sizes(size))
        module = BertLayer(config)
        return Layer(module, lambda x: module(x)[0])

    return build


def deberta_v2(size: Size) -> Layer:
    """Build a layer with the settings of DeBERTa v2 and v3.

    Distances are grouped into 256 buckets. The relative vectors are layer-normalised, and are projected by the same
    matrices as the content.
    """
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2.modeling_deberta_v2 import DebertaV2Encoder

    config = DebertaV2Config(
        num_hidden_layers=1,
        max_position_embeddings=size.length,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        **_sizes(size),
    )
    module = DebertaV2Encoder(config)
    allowed = torch.ones(size.batch, size.length, dtype=torch.long, device=size.device)
    return Layer(module, lambda x: module(x, allowed)[0])


def t5(size: Size) -> Layer:
    """Build T5's first layer, which computes the position bias that a T5 model uses in all layers."""
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Block

    dim, heads = size.dim, size.heads
    config = T5Config(d_model=dim, d_kv=dim // heads, num_heads=heads, d_ff=4 * dim, dropout_rate=0.0)
    module, columns = T5Block(config, has_relative_attention_bias=True), torch.arange(size.length)
    columns = columns.to(size.device)
    return Layer(module, lambda x: module(x, cache_position=columns)[0])


def xlnet(size: Size) -> Layer:
    """Build a whole XLNet model of one layer, because the model, not the layer, computes the relative sinusoids."""
    from transformers import XLNetConfig, XLNetModel

    dim, heads = size.dim, size.heads
    config = XLNetConfig(vocab_size=8, d_model=dim, n_layer=1, n_head=heads, d_inner=4 * dim, dropout=0.0)
    module = XLNetModel(config)
    return Layer(module, lambda x: module(inputs_embeds=x)[0])


def x_transformers(**options: bool) -> Callable[[Size], Layer]:
    """Return a function that builds an encoder layer of x-transformers with these options."""

    def build(size: Size) -> Layer:
        from x_transformers import Encoder

        dim, heads = size.dim, size.heads
        module = Encoder(dim=dim, depth=1, heads=heads, attn_dim_head=dim // heads, pre_norm=False, **options)
        return Layer(module, module)

    return build


def _sizes(size: Size) -> dict[str, Any]:
    return {
        "hidden_size": size.dim,
        "num_attention_heads": size.heads,
        "intermediate_size": 4 * size.dim,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


LAYERS: dict[str, Callable[[Size], Layer]] = {
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
