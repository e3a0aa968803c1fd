"""The flat options of question generation, and the configurations of its two stacks."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from argparse import Namespace
from typing import Any, Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.models.transformer import DEFAULT_MIN_PARAMS_TO_WRAP, TransformerConfig
from omegaconf import II

from .config import PosEncConfig, values_of

#: what an encoder from scratch has where nothing is given: BERT base
SCRATCH = {
    "encoder_layers": 12,
    "encoder_embed_dim": 768,
    "encoder_ffn_embed_dim": 3072,
    "encoder_attention_heads": 12,
    "encoder_activation_fn": "gelu",
    "encoder_layer_norm_eps": 1e-12,
    "pos_enc_encoder": "learned+segments-input",
}


def _option(default: Any, help: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": help})


_ACTIVATIONS = ChoiceEnum(utils.get_available_activation_fns())


@dataclasses.dataclass
class QuestionGenerationConfig(PosEncConfig):
    """An encoder of BERT's kind and a decoder as wide, which share their embedding."""

    pos_enc: str = _option(
        "sinusoidal",
        "position encoding of the decoder's self-attention; several are joined by '+' "
        "(`python -m fairseq_posenc list` shows all)",
    )
    encoder_from: Optional[str] = _option(
        None,
        "the encoder and the embedding are those of a pretrained BERT or RoBERTa: a folder of Hugging Face's, or a "
        "checkpoint of fairseq's; with its sizes and its positions",
    )
    freeze_encoder: bool = _option(
        False, "encoder and embedding, which the decoder shares, stay as --encoder-from has them"
    )
    no_copy: bool = _option(
        False, "do not copy words from the source: those that the dictionary does not have are <unk>"
    )
    pos_enc_encoder: Optional[str] = _option(
        None, f"the encoder's position encoding; unset: --encoder-from's own, or {SCRATCH['pos_enc_encoder']}"
    )
    pos_enc_encoder_args: Optional[str] = _option(None, "its options")
    encoder_layers: Optional[int] = _option(None, "layers of the encoder; unset: --encoder-from's, or 12")
    encoder_embed_dim: Optional[int] = _option(None, "width of both stacks; unset: --encoder-from's, or 768")
    encoder_ffn_embed_dim: Optional[int] = _option(
        None, "width of the encoder's feed-forward layers; unset: --encoder-from's, or 3072"
    )
    encoder_attention_heads: Optional[int] = _option(None, "heads of the encoder; unset: --encoder-from's, or 12")
    encoder_activation_fn: Optional[_ACTIVATIONS] = dataclasses.field(  # type: ignore[valid-type]
        default=None,
        metadata={"help": "of the encoder's feed-forward layers; unset: --encoder-from's, or gelu"},
    )
    encoder_layer_norm_eps: Optional[float] = _option(
        None, "what layer norms add to variances; unset: --encoder-from's, or BERT's 1e-12"
    )
    encoder_normalize_before: bool = _option(False, "layer norm before each block of the encoder, not after it")
    no_encoder_embedding_norm: bool = _option(False, "no layer norm of the encoder's embeddings")
    decoder_layers: int = _option(3, "layers of the decoder")
    decoder_ffn_embed_dim: int = _option(3072, "width of the decoder's feed-forward layers")
    decoder_attention_heads: int = _option(12, "heads of the decoder")
    decoder_activation_fn: _ACTIVATIONS = dataclasses.field(  # type: ignore[valid-type]
        default="gelu", metadata={"help": "of the decoder's feed-forward layers"}
    )
    decoder_normalize_before: bool = _option(False, "layer norm before each block of the decoder, not after it")
    dropout: float = _option(0.1, "probability of dropping a number of a layer's output")
    attention_dropout: float = _option(0.1, "probability of dropping an attention weight")
    activation_dropout: float = _option(0.0, "probability of dropping a number behind a feed-forward activation")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")
    checkpoint_activations: bool = _option(False, "recompute each layer in the backward, which saves memory")
    offload_activations: bool = _option(False, "the same, with what is kept on the CPU")
    min_params_to_wrap: int = _option(DEFAULT_MIN_PARAMS_TO_WRAP, "smallest layer that FSDP wraps on its own")


def complete(flat: Any) -> dict[str, Any]:
    """All options by name, with what an encoder from scratch has where nothing is given."""
    values = values_of(flat, QuestionGenerationConfig)
    return {**values, **{name: default for name, default in SCRATCH.items() if values[name] is None}}


#: what both stacks read
_COMMON = (
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "checkpoint_activations",
    "offload_activations",
    "min_params_to_wrap",
    "pos_enc",
    "pos_enc_args",
    "pos_enc_defaults",
    "pos_enc_no_decay",
    "pos_enc_encoder",
    "pos_enc_encoder_args",
)


def encoder_config(values: dict[str, Any]) -> TransformerConfig:
    """fairseq's hierarchical config of the encoder, from all options."""
    own = {name: values[name] for name in values if name.startswith("encoder_")}
    own |= {
        "activation_fn": values["encoder_activation_fn"],
        "layernorm_embedding": not values["no_encoder_embedding_norm"],
        "no_scale_embedding": True,
        "max_source_positions": values["max_source_positions"],
    }
    return _nested(values, own)


def decoder_config(values: dict[str, Any]) -> TransformerConfig:
    """The same of the decoder, which is as wide. It scales embeddings as fairseq's Transformer and norms them."""
    own = {name: values[name] for name in values if name.startswith("decoder_")}
    width = values["encoder_embed_dim"]
    own |= {
        "decoder_embed_dim": width,
        "decoder_input_dim": width,
        "decoder_output_dim": width,
        "encoder_embed_dim": width,
        "activation_fn": values["decoder_activation_fn"],
        "layernorm_embedding": True,
        "share_decoder_input_output_embed": True,
        "max_target_positions": values["max_target_positions"],
    }
    return _nested(values, own)


def _nested(values: dict[str, Any], own: dict[str, Any]) -> TransformerConfig:
    given = {name: values[name] for name in _COMMON}
    # fairseq's own positions are never built
    return TransformerConfig.from_namespace(Namespace(**given, **own, no_token_positional_embeddings=True))


def check(values: dict[str, Any]) -> None:
    """Refuse what has no effect, or no sense.

    Raises:
        ValueError: with the flags.
    """
    if values["freeze_encoder"] and not values["encoder_from"]:
        raise ValueError("--freeze-encoder would keep random numbers: give --encoder-from, or leave it out")
    width = values["encoder_embed_dim"]
    for side in ("encoder", "decoder"):
        heads = values[f"{side}_attention_heads"]
        if width % heads:
            raise ValueError(
                f"--{side}-attention-heads {heads} does not divide the width {width} of both stacks: give another"
            )
    if values["offload_activations"] and not values["checkpoint_activations"]:
        raise ValueError("--offload-activations has no effect without --checkpoint-activations: leave it out")
