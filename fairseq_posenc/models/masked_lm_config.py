"""The flat options of the masked language models, RoBERTa's and BERT's."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from argparse import Namespace
from typing import Any, Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.models.transformer import DEFAULT_MIN_PARAMS_TO_WRAP, TransformerConfig

from .config import PosEncConfig, values_of


def _option(default: Any, help: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": help})


_ACTIVATIONS = ChoiceEnum(utils.get_available_activation_fns())


@dataclasses.dataclass
class MaskedLMPosEncConfig(PosEncConfig):
    """fairseq's `roberta` with the same names and defaults, and the plugin's options in place of its positions."""

    pos_enc: str = _option(
        "learned",
        "position encoding of all self-attention; several are joined by '+' "
        "(`python -m fairseq_posenc list` shows all)",
    )
    encoder_layers: int = _option(12, "layers")
    encoder_embed_dim: int = _option(768, "width")
    encoder_ffn_embed_dim: int = _option(3072, "width of the feed-forward layers")
    encoder_attention_heads: int = _option(12, "heads")
    encoder_normalize_before: bool = _option(False, "layer norm before each block, not after it")
    encoder_layerdrop: float = _option(0.0, "probability of leaving out a layer in training")
    layernorm_embedding: bool = _option(True, "layer norm of the embeddings")
    layer_norm_eps: float = _option(1e-5, "what layer norms add to variances: RoBERTa's; BERT's is 1e-12")
    activation_fn: _ACTIVATIONS = dataclasses.field(  # type: ignore[valid-type]
        default="gelu", metadata={"help": "of the feed-forward layers and of the head"}
    )
    pooler_activation_fn: _ACTIVATIONS = dataclasses.field(  # type: ignore[valid-type]
        default="tanh", metadata={"help": "of classification heads"}
    )
    dropout: float = _option(0.1, "probability of dropping a number of a layer's output")
    attention_dropout: float = _option(0.1, "probability of dropping an attention weight")
    activation_dropout: float = _option(0.0, "probability of dropping a number behind a feed-forward activation")
    pooler_dropout: float = _option(0.0, "the same in classification heads")
    max_positions: Optional[int] = _option(None, "longest sequence; unset: the task's --tokens-per-sample")
    untie_weights_roberta: bool = _option(False, "the head's output matrix is not the embedding")
    load_checkpoint_heads: bool = _option(False, "register and load the classification heads of a checkpoint")
    spectral_norm_classification_head: bool = _option(False, "spectral normalisation of classification heads")
    quant_noise_pq: float = _option(0.0, "iterative PQ quantisation noise in training")
    quant_noise_pq_block_size: int = _option(8, "its block size")
    quant_noise_scalar: float = _option(0.0, "scalar quantisation noise in training")
    checkpoint_activations: bool = _option(False, "recompute each layer in the backward, which saves memory")
    offload_activations: bool = _option(False, "the same, with what is kept on the CPU")
    min_params_to_wrap: int = _option(DEFAULT_MIN_PARAMS_TO_WRAP, "smallest layer that FSDP wraps on its own")


def stack_config(flat: Any, max_positions: int) -> TransformerConfig:
    """fairseq's hierarchical config of the encoder, with the plugin's fields on it."""
    values = values_of(flat, MaskedLMPosEncConfig)
    own = {"max_source_positions": max_positions, "no_scale_embedding": True, "no_token_positional_embeddings": True}
    return TransformerConfig.from_namespace(Namespace(**{**values, **own}))
