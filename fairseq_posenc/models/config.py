"""Define the flat (not nested) options of the models, and the encoding that these options give to each stack."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
import functools
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import register_model_architecture
from fairseq.models.transformer import DEFAULT_MIN_PARAMS_TO_WRAP, TransformerConfig
from fairseq.models.transformer.transformer_config import DecoderConfig, EncDecBaseConfig, QuantNoiseConfig
from omegaconf import DictConfig, OmegaConf

from ..attention import PATHS
from ..core.options import option
from ..core.refusal import InputError
from ..core.syntax import names_in
from ..encodings.building import spelled_out, with_defaults
from .presets import presets

Field = tuple[str, Any, Any]

ACTIVATIONS = ChoiceEnum(utils.get_available_activation_fns())
ATTENTION_PATHS = ChoiceEnum(PATHS)

# Options of the decoder that, if unset, take the value of an option of the encoder, as in fairseq's own `transformer`.
_FOLLOWS_ENCODER = {"decoder_embed_dim": "encoder_embed_dim", "decoder_ffn_embed_dim": "encoder_ffn_embed_dim"}
_FOLLOWS_DECODER = {"decoder_input_dim": "decoder_embed_dim", "decoder_output_dim": "decoder_embed_dim"}
_WIDTHS = {
    "decoder_embed_dim": "Width of the decoder's layers",
    "decoder_ffn_embed_dim": "Width of the decoder's feed-forward layers",
    "decoder_input_dim": "Width of the decoder's input embeddings",
    "decoder_output_dim": "Width of the decoder's outputs before the softmax",
}

# Options that fairseq parses but these models do not support, with the advice or reason that the error gives.
REFUSED = {
    "encoder_learned_pos": "Use --pos-enc learned instead.",
    "decoder_learned_pos": "Use --pos-enc learned instead.",
    "no_token_positional_embeddings": "Use --pos-enc none instead.",
    "cross_self_attention": "The keys would come from two sequences, which have no common positions.",
    "encoder_xformers_att_config": "The plugin's self-attention does not use xformers.",
    "decoder_xformers_att_config": "The plugin's self-attention does not use xformers.",
    "encoder_layers_to_keep": "Layers cannot be removed, because one position table can hold the values of all layers.",
    "decoder_layers_to_keep": "Layers cannot be removed, because one position table can hold the values of all layers.",
    "base_layers": "BASE layers cannot use position encodings.",
    "character_embeddings": "These models do not read characters.",
    "char_inputs": "Translation models do not read characters.",
    "export": "TorchScript cannot compile the position encodings.",
}

#: Options that translation models do not support, with the advice or reason that the error gives.
REFUSED_IN_TRANSLATION = {**REFUSED, "adaptive_input": "Translation models have no adaptive input."}

#: end of the help texts of --pos-enc
SEVERAL = (
    "Join several with '+', and write options into brackets: 'shaw[clip=16]+t5'. `python -m fairseq_posenc list` shows "
    "all."
)


@dataclasses.dataclass
class PosEncConfig(FairseqDataclass):
    """Hold the options that this plugin adds to every model."""

    pos_enc: str = option("sinusoidal", f"Position encoding of all self-attention layers. {SEVERAL}")
    pos_enc_args: Optional[str] = option(
        None, "More options of the position encoding, such as 'clip=64,share=head-wise', besides those in brackets."
    )
    pos_enc_defaults: Optional[str] = option(
        None,
        "Default options of single encodings, such as 'sinusoidal.freq=t2t', which are usually set by a preset. "
        "--pos-enc-args replaces these defaults.",
    )
    pos_enc_random: Optional[int] = option(
        None,
        "Draw the positions of each sequence at random from 0 to N-1, in increasing order, so that a model that is "
        "trained on short sequences also works for longer ones (Ruoss et al. 2023). Tables of positions get N rows. N "
        "must be at least the maximum length. Default: the positions are 0, 1, 2 and so on.",
    )
    pos_enc_no_decay: bool = option(
        False,
        "Exclude parameters of the encoding from weight decay. The encoding's page in docs/encodings lists "
        "these parameters.",
    )
    pos_enc_path: ATTENTION_PATHS = option(  # type: ignore[valid-type]
        "auto",
        "How self-attention is computed: by separate torch operations (explicit), by the same operations compiled by "
        "torch.compile (compiled), by scaled_dot_product_attention (fused), or by the best method that is exact for "
        "the encoding (auto). On a GPU, auto compiles the attention of encodings that change the logits. "
        "docs/speed.md shows the choice of auto.",
    )
    pos_enc_log_interval: Optional[int] = option(
        None,
        "Every N updates, log three numbers of each layer: the largest attention logit, the mean entropy of the "
        "attention weights in nats, and the norm of the encoding's tables. Default: never.",
    )


@dataclasses.dataclass
class StacksPosEncConfig(PosEncConfig):
    """Hold the options that this plugin adds to models with an encoder and a decoder."""

    pos_enc_encoder: Optional[str] = option(None, "Position encoding of the encoder. Default: --pos-enc.")
    pos_enc_encoder_args: Optional[str] = option(
        None, "Options of the encoder's position encoding, used instead of those of --pos-enc and --pos-enc-args."
    )
    pos_enc_decoder: Optional[str] = option(None, "Position encoding of the decoder. Default: --pos-enc.")
    pos_enc_decoder_args: Optional[str] = option(
        None, "Options of the decoder's position encoding, used instead of those of --pos-enc and --pos-enc-args."
    )


@dataclasses.dataclass
class LayersConfig(PosEncConfig):
    """Hold the options that apply to all layers, for models that do not take these options from fairseq."""

    dropout: float = option(
        0.1, "Dropout probability of the embeddings, and of the outputs of attention and of the feed-forward network."
    )
    attention_dropout: float = option(0.1, "Dropout probability of attention weights.")
    activation_dropout: float = option(0.0, "Dropout probability after the activation in feed-forward layers.")
    checkpoint_activations: bool = option(False, "Recompute each layer in the backward pass, which saves memory.")
    offload_activations: bool = option(
        False, "Recompute each layer as with --checkpoint-activations, and keep the layers' inputs on the CPU."
    )
    min_params_to_wrap: int = option(
        DEFAULT_MIN_PARAMS_TO_WRAP, "FSDP wraps a layer separately if it has at least this number of parameters."
    )


def _flattened() -> Iterator[Field]:
    """Yield the fields of TransformerConfig; nested fields get flat names, such as `encoder_layers`.

    A hierarchical subclass of TransformerConfig would lose values that are set on the command line.
    """
    nested = {"encoder": EncDecBaseConfig, "decoder": DecoderConfig, "quant_noise": QuantNoiseConfig}
    for field in dataclasses.fields(TransformerConfig):
        if field.name in nested:
            for inner in dataclasses.fields(nested[field.name]):
                if not inner.name.startswith("_"):
                    yield _renamed(f"{field.name}_{inner.name}", inner)
        elif not field.name.startswith("_"):
            yield _renamed(field.name, field)


def _renamed(name: str, field: dataclasses.Field[Any]) -> Field:
    leader = _FOLLOWS_ENCODER.get(name) or _FOLLOWS_DECODER.get(name)
    if leader:
        text = f"{_WIDTHS[name]}. Default: the value of --{leader.replace('_', '-')}."
        return name, Optional[int], option(None, text)
    return name, field.type, dataclasses.field(default=field.default, metadata=field.metadata)


TransformerPosEncConfig = dataclasses.make_dataclass(
    "TransformerPosEncConfig", list(_flattened()), bases=(StacksPosEncConfig,)
)
TransformerPosEncConfig.__module__ = __name__
TransformerPosEncConfig.__doc__ = "Hold all options of fairseq's transformer and of this plugin in one flat dataclass."


def values_of(flat: Any, config: type[PosEncConfig]) -> dict[str, Any]:
    """Return all options by name. If an older checkpoint lacks an option of this plugin, use the option's default."""
    own = {field.name: field.default for field in dataclasses.fields(config) if not field.name.startswith("_")}
    return {**own, **(OmegaConf.to_container(flat) if isinstance(flat, DictConfig) else vars(flat))}


def nested_config(flat: Any) -> TransformerConfig:
    """Return fairseq's hierarchical config for the flat options, with the fields of this plugin added.

    Raises:
        ValueError: An option is set that these models do not support.
    """
    values = values_of(flat, StacksPosEncConfig)
    refuse(values, REFUSED_IN_TRANSLATION)
    for follower, leader in {**_FOLLOWS_ENCODER, **_FOLLOWS_DECODER}.items():
        if values.get(follower) is None:
            values[follower] = values[leader]
    return nested(values)


def nested(values: Mapping[str, Any], **own: Any) -> TransformerConfig:
    """Return fairseq's hierarchical config with the given options, and further ones of this plugin."""
    # fairseq's own positions are never built
    return TransformerConfig.from_namespace(Namespace(**{**values, **own, "no_token_positional_embeddings": True}))


def refuse(values: Mapping[str, Any], refused: Mapping[str, str]) -> None:
    """Raise ValueError if one of the `refused` options is set; the mapping gives the reason for each."""
    for name, reason in refused.items():
        if values.get(name):
            raise InputError(f"{flag(name)} is not supported by posenc architectures; leave it out. {reason}")


def flag(name: str) -> str:
    """Return the flag of an option: `pos_enc` -> `--pos-enc`."""
    return f"--{name.replace('_', '-')}"


class Chosen(NamedTuple):
    """Hold the encoding of an encoder or decoder, its options, and the flags that set encoding and options."""

    name: str
    args: dict[str, Any]
    name_flag: str
    args_flag: str


def encoding_of(config: Any, side: str) -> Chosen:
    """Return the encoding of one `side` of the model: encoder or decoder.

    --pos-enc-args and the options in the brackets of --pos-enc apply only to a side for which no other flag sets the
    encoding or its options.
    """
    own_name, own_args = (getattr(config, f"pos_enc_{side}{part}", None) for part in ("", "_args"))
    name = config.pos_enc if own_name is None else own_name
    inherits = own_name is None and own_args is None
    flags = (
        "--pos-enc" if own_name is None else f"--pos-enc-{side}",
        "--pos-enc-args" if inherits else f"--pos-enc-{side}-args",
    )
    if own_name is None and not inherits:
        name = "+".join(names_in(name, flags[0]))
    args = config.pos_enc_args if inherits else own_args
    return Chosen(name, with_defaults(name, args, config.pos_enc_defaults, *flags), *flags)


def spell_out(flat: Any) -> None:
    """Move the options in brackets from --pos-enc to --pos-enc-args in the options of a model that was built.

    Checkpoints store these options, so a training can be resumed with either spelling.
    """
    for name in ("pos_enc", "pos_enc_encoder", "pos_enc_decoder"):
        spec, args = getattr(flat, name, None), getattr(flat, f"{name}_args", None)
        if spec is not None and spelled_out(spec, args) != (spec, args):
            spec, args = spelled_out(spec, args)
            setattr(flat, name, spec)
            setattr(flat, f"{name}_args", args)


def check_overrides(config: Any) -> None:
    """Raise if the options of --pos-enc-args or --pos-enc apply neither to the encoder nor to the decoder.

    Raises:
        ValueError: Such options are set, but both the encoder and the decoder have flags of their own.
    """
    own = all(
        getattr(config, f"pos_enc_{side}") is not None or getattr(config, f"pos_enc_{side}_args") is not None
        for side in ("encoder", "decoder")
    )
    options = "--pos-enc-args" if config.pos_enc_args is not None else "[...] in --pos-enc"
    if own and (config.pos_enc_args is not None or "[" in config.pos_enc):
        raise InputError(
            f"{options} has no effect, because the encoder and the decoder both have flags of their own, such as "
            f"--pos-enc-encoder and --pos-enc-decoder-args. Leave {options} out."
        )


def register_sizes(model: str) -> None:
    """Register an architecture for each preset of a model."""
    for arch, preset in presets().items():
        if preset["_name"] == model != arch:  # fairseq itself registers the model as an architecture of this name
            register_model_architecture(model, arch)(functools.partial(_apply_preset, preset))


def _apply_preset(preset: Mapping[str, Any], args: Any) -> None:
    """Take the value of a preset for each argument that the user did not set.

    With --encoder-from, the sizes of the encoder come from the pretrained model, not from the preset.
    """
    pretrained = getattr(args, "encoder_from", None)
    for name, value in preset.items():
        if name != "_name" and not hasattr(args, name) and not (pretrained and name.startswith("encoder_")):
            setattr(args, name, value)
