"""Define the flat (not nested) options of the masked language models RoBERTa and BERT."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from typing import Any, Optional

from fairseq.models.transformer import TransformerConfig

from ..core.options import option
from ..data.documents import SEQUENCE
from .config import ACTIVATIONS, SEVERAL, LayersConfig, nested, values_of
from .documents import WITHIN, WITHIN_HELP


@dataclasses.dataclass
class MaskedLMPosEncConfig(LayersConfig):
    """Hold the options of fairseq's `roberta`, with this plugin's options in place of its position flags."""

    pos_enc: str = option("learned", f"Position encoding of all self-attention layers. {SEVERAL}")
    encoder_layers: int = option(12, "Number of layers.")
    encoder_embed_dim: int = option(768, "Width of the layers.")
    encoder_ffn_embed_dim: int = option(3072, "Width of the feed-forward layers.")
    encoder_attention_heads: int = option(12, "Number of attention heads.")
    encoder_normalize_before: bool = option(False, "Apply layer norm before each block instead of after it.")
    encoder_layerdrop: float = option(0.0, "Probability of leaving out a layer in training.")
    layernorm_embedding: bool = option(
        True, "Do not apply layer norm to the embeddings (by default, layer norm is applied)."
    )
    layer_norm_eps: float = option(1e-5, "Epsilon of layer norms (RoBERTa: 1e-5, BERT: 1e-12).")
    activation_fn: ACTIVATIONS = option("gelu", "Activation function of the feed-forward layers and of the head.")
    pooler_activation_fn: ACTIVATIONS = option("tanh", "Activation function of classification heads.")
    pooler_dropout: float = option(0.0, "Dropout probability in classification heads.")
    max_positions: Optional[int] = option(None, "Longest sequence in tokens. Default: --tokens-per-sample of the task.")
    untie_weights_roberta: bool = option(
        False, "Give the masked-LM head its own output matrix, instead of sharing the embedding."
    )
    load_checkpoint_heads: bool = option(
        False, "Add the classification heads of a checkpoint to the model, and load their weights."
    )
    spectral_norm_classification_head: bool = option(False, "Apply spectral normalisation to classification heads.")
    quant_noise_pq: float = option(0.0, "Probability of product quantisation noise in training.")
    quant_noise_pq_block_size: int = option(8, "Block size of product quantisation noise.")
    quant_noise_scalar: float = option(0.0, "Probability of scalar quantisation noise in training.")


@dataclasses.dataclass
class PretrainingPosEncConfig(MaskedLMPosEncConfig):
    """Hold the options of `posenc_roberta`, including the options that only masked language modelling has."""

    attend_within: WITHIN = option(SEQUENCE, WITHIN_HELP)


def stack_config(flat: Any, max_positions: int) -> TransformerConfig:
    """Convert the flat options to fairseq's nested `TransformerConfig`, and add the plugin's options."""
    return nested(values_of(flat, MaskedLMPosEncConfig), max_source_positions=max_positions, no_scale_embedding=True)
