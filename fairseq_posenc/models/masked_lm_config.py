"""The flat options of the masked language models, RoBERTa's and BERT's."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from argparse import Namespace
from typing import Any, Optional

from fairseq.models.transformer import TransformerConfig

from ..core.options import option
from .config import ACTIVATIONS, LayersConfig, values_of


@dataclasses.dataclass
class MaskedLMPosEncConfig(LayersConfig):
    """fairseq's `roberta` with the same names and defaults, and the plugin's options in place of its positions."""

    pos_enc: str = option(
        "learned",
        "position encoding of all self-attention; several are joined by '+' "
        "(`python -m fairseq_posenc list` shows all)",
    )
    encoder_layers: int = option(12, "layers")
    encoder_embed_dim: int = option(768, "width")
    encoder_ffn_embed_dim: int = option(3072, "width of the feed-forward layers")
    encoder_attention_heads: int = option(12, "heads")
    encoder_normalize_before: bool = option(False, "layer norm before each block, not after it")
    encoder_layerdrop: float = option(0.0, "probability of leaving out a layer in training")
    layernorm_embedding: bool = option(True, "layer norm of the embeddings")
    layer_norm_eps: float = option(1e-5, "what layer norms add to variances: RoBERTa's; BERT's is 1e-12")
    activation_fn: ACTIVATIONS = option("gelu", "of the feed-forward layers and of the head")
    pooler_activation_fn: ACTIVATIONS = option("tanh", "of classification heads")
    pooler_dropout: float = option(0.0, "the same in classification heads")
    max_positions: Optional[int] = option(None, "longest sequence; unset: the task's --tokens-per-sample")
    untie_weights_roberta: bool = option(False, "the head's output matrix is not the embedding")
    load_checkpoint_heads: bool = option(False, "register and load the classification heads of a checkpoint")
    spectral_norm_classification_head: bool = option(False, "spectral normalisation of classification heads")
    quant_noise_pq: float = option(0.0, "iterative PQ quantisation noise in training")
    quant_noise_pq_block_size: int = option(8, "its block size")
    quant_noise_scalar: float = option(0.0, "scalar quantisation noise in training")


def stack_config(flat: Any, max_positions: int) -> TransformerConfig:
    """Return fairseq's hierarchical config of the encoder, with the plugin's fields on it."""
    values = values_of(flat, MaskedLMPosEncConfig)
    own = {"max_source_positions": max_positions, "no_scale_embedding": True, "no_token_positional_embeddings": True}
    return TransformerConfig.from_namespace(Namespace(**{**values, **own}))
