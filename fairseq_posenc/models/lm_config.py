"""Define the flat (not nested) options of the language models."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from collections.abc import Iterator
from typing import Any, Optional

from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer_lm import TransformerLanguageModelConfig

from ..core.options import option
from ..core.refusal import InputError
from ..data.documents import SEQUENCE
from .config import REFUSED, Field, PosEncConfig, flag, nested, refuse, values_of
from .documents import WITHIN, WITHIN_HELP

_FOLLOWS = ("decoder_input_dim", "decoder_output_dim")
#: Defaults of fairseq's options for adaptive input and softmax, which have no effect with --adaptive-one-matrix.
_OTHER_ADAPTIVE = {
    "adaptive_input": False,
    "adaptive_input_cutoff": None,
    "adaptive_input_factor": 4,
    "adaptive_softmax_factor": 4,
    "tie_adaptive_weights": False,
    "tie_adaptive_proj": False,
}


@dataclasses.dataclass
class OwnLMConfig(PosEncConfig):
    """Hold the options that fairseq's `transformer_lm` does not have."""

    attend_within: WITHIN = option(SEQUENCE, WITHIN_HELP)
    no_attention_bias: bool = option(False, "Use no biases in the projections of self-attention, as in Transformer-XL.")
    adaptive_one_matrix: bool = option(
        False,
        "Use one matrix for the input embedding and the adaptive softmax, without projections and with a bias per "
        "word, as in Transformer-XL with div_val 1. Set the frequency bands with --adaptive-softmax-cutoff.",
    )
    init_std: Optional[float] = option(
        None,
        "Standard deviation of the normal distribution from which the initial values of matrices are drawn "
        "(Transformer-XL: 0.02). Default: initialise as fairseq does.",
    )


def _fields() -> Iterator[Field]:
    """Yield fairseq's options; by default, input and output are as wide as the decoder."""
    for field in dataclasses.fields(TransformerLanguageModelConfig):
        if field.name in _FOLLOWS:
            side = "input embeddings" if field.name == "decoder_input_dim" else "outputs before the softmax"
            text = f"Width of the decoder's {side}. Default: the value of --decoder-embed-dim."
            yield field.name, Optional[int], option(None, text)
        elif not field.name.startswith("_") and field.name != "add_bos_token":
            yield field.name, field.type, dataclasses.field(default=field.default, metadata=field.metadata)


LMPosEncConfig = dataclasses.make_dataclass("LMPosEncConfig", list(_fields()), bases=(OwnLMConfig,))
LMPosEncConfig.__module__ = __name__
LMPosEncConfig.__doc__ = "Hold all options of fairseq's transformer_lm and of this plugin in one flat dataclass."


def decoder_config(flat: Any) -> TransformerConfig:
    """Return fairseq's hierarchical config of the decoder, with the fields of this plugin added.

    Raises:
        ValueError: Options are not supported by these models, or contradict each other.
    """
    values = values_of(flat, OwnLMConfig)
    refuse(values, REFUSED)
    _check_adaptive(values)
    for name in _FOLLOWS:
        values[name] = values["decoder_embed_dim"] if values[name] is None else values[name]
    longest = values["max_target_positions"]
    values["max_target_positions"] = values["tokens_per_sample"] if longest is None else longest
    return nested(values)


def _check_adaptive(values: dict[str, Any]) -> None:
    one_matrix, cutoffs = values["adaptive_one_matrix"], values["adaptive_softmax_cutoff"]
    if one_matrix and not cutoffs:
        raise InputError("--adaptive-one-matrix needs --adaptive-softmax-cutoff, for example 20000,40000.")
    if one_matrix:
        for name, default in _OTHER_ADAPTIVE.items():
            if values[name] != default:
                raise InputError(f"{flag(name)} has no effect with --adaptive-one-matrix. Leave one of them out.")
        if len({values["decoder_embed_dim"], *(values[name] or values["decoder_embed_dim"] for name in _FOLLOWS)}) > 1:
            flags = " and ".join(flag(name) for name in _FOLLOWS)
            raise InputError(f"--adaptive-one-matrix needs equal input, output and decoder widths. Leave {flags} out.")
    if values["tie_adaptive_weights"]:
        _check_tied(values)


def _check_tied(values: dict[str, Any]) -> None:
    """Raise ValueError if an option contradicts --tie-adaptive-weights; fairseq only has an assertion."""
    if not values["adaptive_input"]:
        raise InputError("--tie-adaptive-weights needs --adaptive-input. Give both flags, or leave both out.")
    for name, other_name in (
        ("adaptive_input_cutoff", "adaptive_softmax_cutoff"),
        ("adaptive_input_factor", "adaptive_softmax_factor"),
        ("decoder_input_dim", "decoder_output_dim"),
    ):
        if values[name] != values[other_name]:
            both = f"{flag(name)} is {values[name]}, but {flag(other_name)} is {values[other_name]}"
            raise InputError(f"--tie-adaptive-weights: {both}. Set both flags to the same value.")
