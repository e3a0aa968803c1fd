"""Define `posenc_transformer`, fairseq's encoder-decoder Transformer with any position encoding."""

from __future__ import annotations

from typing import Any

from fairseq.models import BaseFairseqModel, register_model
from fairseq.models.transformer import TransformerModelBase
from torch import nn

from .config import TransformerPosEncConfig, check_overrides, nested_config, register_sizes, spell_out
from .decoder import PosEncDecoder
from .encoder import PosEncEncoder
from .weight_decay import refuse_without_effect


@register_model("posenc_transformer", dataclass=TransformerPosEncConfig)
class PosEncTransformer(TransformerModelBase):
    """Run fairseq's Transformer with `--pos-enc` in self-attention; cross-attention has no position encoding."""

    # Add the flat options without defaults: the architecture sets its defaults first, then the dataclass.
    add_args: Any = classmethod(BaseFairseqModel.add_args.__func__)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PosEncTransformer:
        """Build the model from the flat options.

        Raises:
            ValueError: An encoding or option is unknown, an encoding does not support an option, or a position flag of
                fairseq is set.
        """
        config = nested_config(cfg)
        check_overrides(config)
        model: PosEncTransformer = super().build_model(config, task)
        refuse_without_effect(config, model.encoder, model.decoder)
        spell_out(cfg)
        return model

    @classmethod
    def build_encoder(cls, cfg: Any, src_dict: Any, embed_tokens: nn.Embedding) -> PosEncEncoder:
        return PosEncEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg: Any, tgt_dict: Any, embed_tokens: nn.Embedding) -> PosEncDecoder:
        return PosEncDecoder(cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention)


register_sizes("posenc_transformer")
