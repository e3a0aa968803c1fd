"""Define the flat (not nested) options of question generation, and the configurations of encoder and decoder."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.models.transformer import TransformerConfig
from omegaconf import II

from ..core.options import option
from ..core.refusal import InputError
from .config import ACTIVATIONS, SEVERAL, LayersConfig, nested, values_of
from .copying import MECHANISMS

#: defaults of an encoder without --encoder-from: those of BERT base
SCRATCH = {
    "encoder_layers": 12,
    "encoder_embed_dim": 768,
    "encoder_ffn_embed_dim": 3072,
    "encoder_attention_heads": 12,
    "encoder_activation_fn": "gelu",
    "encoder_layer_norm_eps": 1e-12,
    "pos_enc_encoder": "learned+segments-input",
}


def _default(text: str, scratch: object) -> str:
    """Return the help text of an option of the encoder; its default is `scratch` without --encoder-from."""
    return f"{text}. Default: as in the model of --encoder-from, or {scratch} without --encoder-from."


@dataclasses.dataclass
class QuestionGenerationConfig(LayersConfig):
    """Hold the options of a BERT-like encoder and a decoder of the same width, which share one embedding."""

    pos_enc: str = option("sinusoidal", f"Position encoding of the decoder's self-attention. {SEVERAL}")
    encoder_from: Optional[str] = option(
        None,
        "Pretrained BERT or RoBERTa that provides the encoder, its embedding, its sizes and its positions: a Hugging "
        "Face folder or a fairseq checkpoint.",
    )
    freeze_encoder: bool = option(
        False, "Do not train the encoder of --encoder-from and its embedding, which the decoder shares."
    )
    copy_mechanism: ChoiceEnum([*MECHANISMS, "none"]) = option(  # type: ignore[valid-type]
        "copynet",
        "How the decoder copies words from the source: copynet has one softmax over words and source positions (Gu et "
        "al. 2016), gate mixes two softmaxes with a learned gate (See et al. 2017), and none cannot copy, so unknown "
        "words become <unk>.",
    )
    pos_enc_encoder: Optional[str] = option(
        None, _default("Position encoding of the encoder", SCRATCH["pos_enc_encoder"])
    )
    pos_enc_encoder_args: Optional[str] = option(None, "Options of the encoder's position encoding.")
    encoder_layers: Optional[int] = option(None, _default("Number of layers of the encoder", SCRATCH["encoder_layers"]))
    encoder_embed_dim: Optional[int] = option(
        None, _default("Width of encoder and decoder", SCRATCH["encoder_embed_dim"])
    )
    encoder_ffn_embed_dim: Optional[int] = option(
        None, _default("Width of the encoder's feed-forward layers", SCRATCH["encoder_ffn_embed_dim"])
    )
    encoder_attention_heads: Optional[int] = option(
        None, _default("Number of attention heads of the encoder", SCRATCH["encoder_attention_heads"])
    )
    encoder_activation_fn: Optional[ACTIVATIONS] = option(
        None, _default("Activation function of the encoder's feed-forward layers", SCRATCH["encoder_activation_fn"])
    )
    encoder_layer_norm_eps: Optional[float] = option(None, _default("Epsilon of layer norms", "BERT's 1e-12"))
    encoder_normalize_before: bool = option(False, "Apply layer norm before each block of the encoder, not after it.")
    no_encoder_embedding_norm: bool = option(False, "Do not apply layer norm to the encoder's embeddings.")
    decoder_layers: int = option(3, "Number of layers of the decoder.")
    decoder_ffn_embed_dim: int = option(3072, "Width of the decoder's feed-forward layers.")
    decoder_attention_heads: int = option(12, "Number of attention heads of the decoder.")
    decoder_activation_fn: ACTIVATIONS = option("gelu", "Activation function of the decoder's feed-forward layers.")
    decoder_normalize_before: bool = option(False, "Apply layer norm before each block of the decoder, not after it.")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def complete(flat: Any) -> dict[str, Any]:
    """Return all options by name; unset options of the encoder get the defaults for training from scratch."""
    values = values_of(flat, QuestionGenerationConfig)
    return {**values, **{name: default for name, default in SCRATCH.items() if values[name] is None}}


#: options that both stacks use
_COMMON = [field.name for field in dataclasses.fields(LayersConfig) if not field.name.startswith("_")]
_COMMON += ["pos_enc_encoder", "pos_enc_encoder_args"]


def encoder_config(values: dict[str, Any]) -> TransformerConfig:
    """Return fairseq's hierarchical config of the encoder."""
    return nested(
        _of_side(values, "encoder"),
        activation_fn=values["encoder_activation_fn"],
        layernorm_embedding=not values["no_encoder_embedding_norm"],
        no_scale_embedding=True,
        max_source_positions=values["max_source_positions"],
    )


def decoder_config(values: dict[str, Any]) -> TransformerConfig:
    """Return fairseq's hierarchical config of the decoder, which is as wide as the encoder.

    The decoder scales its embeddings as fairseq does, and applies layer norm to them.
    """
    sides = ("decoder_embed_dim", "decoder_input_dim", "decoder_output_dim", "encoder_embed_dim")
    return nested(
        {**_of_side(values, "decoder"), **dict.fromkeys(sides, values["encoder_embed_dim"])},
        activation_fn=values["decoder_activation_fn"],
        layernorm_embedding=True,
        share_decoder_input_output_embed=True,
        max_target_positions=values["max_target_positions"],
    )


def _of_side(values: dict[str, Any], side: str) -> dict[str, Any]:
    """Return the options of the encoder or the decoder, and those that both stacks use."""
    return {name: value for name, value in values.items() if name in _COMMON or name.startswith(f"{side}_")}


def check(values: dict[str, Any]) -> None:
    """Raise if options have no effect or contradict each other.

    Raises:
        ValueError: Options have no effect or contradict each other; the message names the flags.
    """
    if values["freeze_encoder"] and not values["encoder_from"]:
        raise InputError(
            "--freeze-encoder without --encoder-from would keep random weights in the encoder. Give --encoder-from, or "
            "leave --freeze-encoder out."
        )
    if values["pos_enc_random"] is not None and values["encoder_from"]:
        raise InputError(
            "--pos-enc-random does not fit the model of --encoder-from, which was trained at consecutive positions. "
            "Leave out one of these two flags."
        )
    width = values["encoder_embed_dim"]
    for side in ("encoder", "decoder"):
        heads = values[f"{side}_attention_heads"]
        if width % heads:
            raise InputError(
                f"--{side}-attention-heads {heads} does not divide the width {width} of encoder and decoder. Give a "
                "divisor of the width."
            )
