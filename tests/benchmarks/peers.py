"""Build the layers of other packages, which map [B, n, d] to [B, n, d], to measure them beside ours.

Each implementation is a whole layer, as its package builds it. All layers have the same width, no dropout, and an FFN
of four times the width. Some layers are pre-norm. The layers of T5 and DeBERTa include computations that a model does
only once for all layers. A package is imported only when it is measured.

Legend: B batch size, n tokens, h heads, d width.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .steps import Setting, Step, step_on

#: Later versions changed relative_key and relative_key_query, with which our methods are compared.
TRANSFORMERS = "4.46"
#: The module of a layer and a function that runs it.
Layer = tuple[nn.Module, Callable[[Tensor], Tensor]]


@dataclass(frozen=True)
class Peer:
    """Describe another package's implementation of an encoding.

    Args:
        name: Name of the implementation.
        package: Distribution to install with pip.
        ours: Our encoding to compare it with.
        build: Name of the function of this module that builds a layer.
        options: Options of this function.
    """

    name: str
    package: str
    ours: str
    build: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} [{self.package} {version(self.package)}]"

    def missing(self) -> str:
        """Return why this implementation cannot be measured; an empty text if it can."""
        try:
            found = version(self.package)
        except PackageNotFoundError:
            return f"{self.package} is not installed"
        if self.package == "transformers" and not found.startswith(TRANSFORMERS):
            return f"transformers {found} is installed, but {TRANSFORMERS}.x is needed"
        return ""


def installed() -> list[Peer]:
    """Return the implementations that can be measured, and print on stderr why the others cannot."""
    missing = {peer.name: reason for peer in PEERS if (reason := peer.missing())}
    for name, reason in missing.items():
        print(f"{name} is left out: {reason}", file=sys.stderr)
    return [peer for peer in PEERS if peer.name not in missing]


def layer_of(peer: Peer, setting: Setting) -> Layer:
    """Return another package's layer in the precision and mode of a setting, always with the same weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module, run = BUILDERS[peer.build](setting, **peer.options)
    return module.to(setting.device, setting.dtype).train(setting.mode == "train"), run


def step_of(peer: Peer, setting: Setting) -> Step:
    """Return a step of another package's layer."""
    module, run = layer_of(peer, setting)
    return step_on(setting.random(), run, module)


def fairseq_encoder(size: Setting) -> Layer:
    """Build fairseq's encoder layer. It encodes no positions, because fairseq's models add them at the input."""
    from fairseq.models.transformer import TransformerConfig
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    config = TransformerConfig(dropout=0.0, attention_dropout=0.0, activation_fn="gelu")
    config.encoder.embed_dim, config.encoder.ffn_embed_dim = size.dim, 4 * size.dim
    config.encoder.attention_heads = size.heads
    module = TransformerEncoderLayerBase(config)
    return module, lambda x: module(x.transpose(0, 1), None).transpose(0, 1)


def _sizes(size: Setting) -> dict[str, Any]:
    dims = {"hidden_size": size.dim, "num_attention_heads": size.heads, "intermediate_size": 4 * size.dim}
    lengths = {"max_position_embeddings": size.length}
    return {**dims, **lengths, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def bert(size: Setting, **options: Any) -> Layer:
    """Build BERT's layer with relative_key (Shaw et al.) or relative_key_query (method 4 of Huang et al.)."""
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLayer

    module = BertLayer(BertConfig(**options, **_sizes(size)))
    return module, lambda x: module(x)[0]


def deberta_v2(size: Setting, **options: Any) -> Layer:
    """Build a layer with the settings of DeBERTa v2 and v3.

    Distances are grouped into 256 buckets. The relative vectors are layer-normalised, and are projected by the same
    matrices as the content.
    """
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2.modeling_deberta_v2 import DebertaV2Encoder

    module = DebertaV2Encoder(DebertaV2Config(num_hidden_layers=1, **options, **_sizes(size)))
    allowed = torch.ones(size.batch, size.length, dtype=torch.long, device=size.device)
    return module, lambda x: module(x, allowed)[0]


def t5(size: Setting) -> Layer:
    """Build T5's first layer, which computes the position bias that a T5 model uses in all layers."""
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Block

    dim, heads = size.dim, size.heads
    config = T5Config(d_model=dim, d_kv=dim // heads, num_heads=heads, d_ff=4 * dim, dropout_rate=0.0)
    module, columns = T5Block(config, has_relative_attention_bias=True), torch.arange(size.length, device=size.device)
    return module, lambda x: module(x, cache_position=columns)[0]


def xlnet(size: Setting) -> Layer:
    """Build a whole XLNet model of one layer, because the model, not the layer, computes the relative sinusoids."""
    from transformers import XLNetConfig, XLNetModel

    dim, heads = size.dim, size.heads
    module = XLNetModel(XLNetConfig(vocab_size=8, d_model=dim, n_layer=1, n_head=heads, d_inner=4 * dim, dropout=0.0))
    return module, lambda x: module(inputs_embeds=x)[0]


def x_transformers(size: Setting, **options: bool) -> Layer:
    """Build an encoder layer of x-transformers with these options."""
    from x_transformers import Encoder

    dim, heads = size.dim, size.heads
    module = Encoder(dim=dim, depth=1, heads=heads, attn_dim_head=dim // heads, pre_norm=False, **options)
    return module, module


BUILDERS = {build.__name__: build for build in (fairseq_encoder, bert, deberta_v2, t5, xlnet, x_transformers)}
PEERS = [Peer(**row) for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["peers"]]
