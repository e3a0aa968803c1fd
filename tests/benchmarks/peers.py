"""Build the layers of other packages, which map [B, n, d] to [B, n, d], to measure them beside ours.

Each implementation is a whole layer, as its package builds it. All layers have the same width, no dropout, and an FFN
of four times the width. Some layers are pre-norm. The layers of T5 and DeBERTa include computations that a model does
only once for all layers. A package is imported only when it is measured.

Legend: B batch size, n tokens, h heads, d width.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from .clock import Step
from .steps import Setting, step_on

#: Later versions changed relative_key and relative_key_query, with which our methods are compared.
TRANSFORMERS = "4.46"


@dataclass(frozen=True)
class Peer:
    """Describe another package's implementation of an encoding.

    Args:
        name: Name of the implementation.
        module: Python module to import.
        package: Distribution to install with pip.
        ours: Our encoding to compare it with.
    """

    name: str
    module: str
    package: str
    ours: str

    def __str__(self) -> str:
        return f"{self.name} [{self.package} {version(self.package)}]"

    def missing(self) -> str:
        """Return why this implementation cannot be measured; an empty text if it can."""
        if importlib.util.find_spec(self.module) is None:
            return f"{self.package} is not installed"
        if self.module == "transformers" and not version(self.package).startswith(TRANSFORMERS):
            return f"{self.package} {version(self.package)} is installed, but {TRANSFORMERS}.x is needed"
        return ""


_HF, _X = ("transformers", "transformers"), ("x_transformers", "x-transformers")
PEERS = (
    Peer("fairseq", "fairseq", "fairseq-fixed", "none"),
    Peer("bert-relative-key", *_HF, "shaw"),
    Peer("bert-relative-key-query", *_HF, "m4"),
    Peer("deberta-v2", *_HF, "deberta[form=original,buckets=256,share-att-key=true,layer-norm=true]"),
    Peer("hf-t5", *_HF, "t5"),
    Peer("x-t5", *_X, "t5"),
    Peer("xlnet", *_HF, "xl"),
    Peer("x-rotary", *_X, "rope"),
    Peer("x-alibi", *_X, "alibi"),
)


def installed() -> list[Peer]:
    """Return the implementations that can be measured, and print on stderr why the others cannot."""
    missing = {peer.name: reason for peer in PEERS if (reason := peer.missing())}
    for name, reason in missing.items():
        print(f"{name} is left out: {reason}", file=sys.stderr)
    return [peer for peer in PEERS if peer.name not in missing]


def step_of(peer: Peer, setting: Setting) -> Step:
    """Return a step of another package's layer."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = LAYERS[peer.name](setting)
    layer.module.to(setting.device, setting.dtype).train(setting.mode == "train")
    return step_on(setting.random(setting.batch, setting.length, setting.dim), layer.run, layer.module)


@dataclass(frozen=True)
class Layer:
    """Hold the module of a layer and a function that runs it."""

    module: nn.Module
    run: Callable[[Tensor], Tensor]


def _fairseq_config(size: Setting) -> Any:
    from fairseq.models.transformer import TransformerConfig

    config = TransformerConfig()
    for side in (config.encoder, config.decoder):
        side.embed_dim, side.ffn_embed_dim = size.dim, 4 * size.dim
        side.attention_heads = size.heads
    config.dropout = config.attention_dropout = 0.0
    config.activation_fn = "gelu"
    return config


def fairseq_encoder(size: Setting) -> Layer:
    """Build fairseq's encoder layer.

    The layer encodes no positions, because fairseq's models add positions at the input.
    """
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    module = TransformerEncoderLayerBase(_fairseq_config(size))
    return Layer(module, lambda x: module(x.transpose(0, 1), None).transpose(0, 1))


def bert(kind: str) -> Callable[[Setting], Layer]:
    """Return a function that builds Hugging Face's BERT layer with the position encoding `kind`.

    `kind` is relative_key (Shaw et al.) or relative_key_query (method 4 of Huang et al.).
    """

    def build(size: Setting) -> Layer:
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertLayer

        config = BertConfig(position_embedding_type=kind, max_position_embeddings=size.length, **_sizes(size))
        module = BertLayer(config)
        return Layer(module, lambda x: module(x)[0])

    return build


def deberta_v2(size: Setting) -> Layer:
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


def t5(size: Setting) -> Layer:
    """Build T5's first layer, which computes the position bias that a T5 model uses in all layers."""
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Block

    dim, heads = size.dim, size.heads
    config = T5Config(d_model=dim, d_kv=dim // heads, num_heads=heads, d_ff=4 * dim, dropout_rate=0.0)
    module, columns = T5Block(config, has_relative_attention_bias=True), torch.arange(size.length)
    columns = columns.to(size.device)
    return Layer(module, lambda x: module(x, cache_position=columns)[0])


def xlnet(size: Setting) -> Layer:
    """Build a whole XLNet model of one layer, because the model, not the layer, computes the relative sinusoids."""
    from transformers import XLNetConfig, XLNetModel

    dim, heads = size.dim, size.heads
    config = XLNetConfig(vocab_size=8, d_model=dim, n_layer=1, n_head=heads, d_inner=4 * dim, dropout=0.0)
    module = XLNetModel(config)
    return Layer(module, lambda x: module(inputs_embeds=x)[0])


def x_transformers(**options: bool) -> Callable[[Setting], Layer]:
    """Return a function that builds an encoder layer of x-transformers with these options."""

    def build(size: Setting) -> Layer:
        from x_transformers import Encoder

        dim, heads = size.dim, size.heads
        module = Encoder(dim=dim, depth=1, heads=heads, attn_dim_head=dim // heads, pre_norm=False, **options)
        return Layer(module, module)

    return build


def _sizes(size: Setting) -> dict[str, Any]:
    return {
        "hidden_size": size.dim,
        "num_attention_heads": size.heads,
        "intermediate_size": 4 * size.dim,
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
