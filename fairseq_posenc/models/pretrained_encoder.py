"""Implement --encoder-from: load the encoder and the embedding of a pretrained masked language model."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary

from ..compat.checkpoints import CheckpointError
from ..core.refusal import InputError
from ..data.words import MASK
from ..hub.ids import Pretrained, reordered, symbols_in_dictionary
from ..hub.pretrained import read
from .finetuning_config import ENCODER_SIZES

logger = logging.getLogger(__name__)

#: options of the model, each with the name of the setting of the pretrained model
_SIZES = {
    **ENCODER_SIZES,
    "encoder_activation_fn": "activation",
    "encoder_layer_norm_eps": "layer_norm_eps",
    "pos_enc_encoder": "pos_enc",
    "pos_enc_encoder_args": "pos_enc_args",
}


def pretrained_encoder(source: Path, dictionary: Dictionary, dictionary_file: Path) -> Pretrained:
    """Read a pretrained encoder from a Hugging Face folder, a folder of `export-hf`, or a fairseq checkpoint.

    Args:
        source: Path of the folder or checkpoint.
        dictionary: Dictionary of the data; <mask> may be missing at its end.
        dictionary_file: File of the dictionary, for error messages.
    Raises:
        CheckpointError: The encoder cannot be read, or its vocabulary belongs to another tokenizer.
    """
    pretrained = reordered(read(source))
    _check_vocabulary(pretrained, source, dictionary, dictionary_file)
    return pretrained


def _check_vocabulary(pretrained: Pretrained, source: Path, dictionary: Dictionary, file: Path) -> None:
    ours = dictionary.symbols[dictionary.nspecial :]
    theirs = [*symbols_in_dictionary(pretrained), MASK]
    compared = theirs if ours[-1:] == [MASK] else theirs[:-1]
    cure = f"Prepare the data with the tokenizer of {source}."
    if len(ours) != len(compared):
        raise CheckpointError(
            f"{file} has {len(ours)} pieces, but the tokenizer of {source} has {len(compared)} pieces. {cure}"
        )
    if pretrained.vocabulary is None:
        logger.warning(f"{source} has no vocabulary, so its pieces were not compared with {file}, only their number.")
    differs = next((i for i, pieces in enumerate(zip(ours, compared, strict=True)) if len(set(pieces)) > 1), None)
    if pretrained.vocabulary is not None and differs is not None:
        raise CheckpointError(
            f"{file}:{differs + 1}: the piece is {ours[differs]!r}, but in {source} it is {compared[differs]!r}. {cure}"
        )


def take_sizes(cfg: Any, pretrained: Pretrained) -> None:
    """Write the sizes and settings of the encoder into the model's options.

    The encoder keeps its own maximum length; a log line tells the user if --max-source-positions differs.

    Raises:
        ValueError: An option contradicts the encoder.
    """
    description = f"the encoder of --encoder-from {cfg.encoder_from}"
    for name, theirs in _SIZES.items():
        take(cfg, name, getattr(pretrained.config, theirs), None, description)
    take(cfg, "encoder_normalize_before", pretrained.config.normalize_before, False, description)
    take(cfg, "no_encoder_embedding_norm", not pretrained.config.layernorm_embedding, False, description)
    allowed, longest = cfg.max_source_positions, pretrained.config.max_length
    if allowed != longest:
        sizes = f"--max-source-positions is {allowed}, but {description} has {longest} positions."
        logger.info(f"{sizes} Sources may have up to {min(allowed, longest)} tokens.")
    cfg.max_source_positions = longest


def take(cfg: Any, name: str, value: Any, unset: Any, description: str) -> None:
    """Set an option to the value of the pretrained model.

    Args:
        cfg: Options of the model, which are changed.
        name: Name of the option.
        value: Value that the pretrained model has.
        unset: Value of the option if the user did not set it.
        description: Description of the model for the error message.
    Raises:
        ValueError: The user set the option to another value.
    """
    current = getattr(cfg, name)
    if current != unset and current != value:
        raise InputError(f"--{name.replace('_', '-')} {current}: {description} has {value}. Leave the option out.")
    setattr(cfg, name, value)


def load_encoder(encoder: Any, pretrained: Pretrained) -> None:
    """Load the pretrained weights into the encoder, without the row of <mask> if the dictionary has no <mask>.

    Raises:
        CheckpointError: The weights do not fit the encoder.
    """
    state = {name.removeprefix("encoder."): t for name, t in pretrained.tensors.items() if name.startswith("encoder.")}
    state["embed_tokens.weight"] = pretrained.tensors["embed_tokens.weight"][: len(encoder.embed_tokens.weight)]
    own = {name: tensor for name, tensor in encoder.state_dict().items() if name == "version"}
    try:
        encoder.load_state_dict({**own, **state})
    except RuntimeError as error:
        problem = f"The weights of the encoder do not match its settings ({error})"
        raise CheckpointError(f"{problem}. Give another model to --encoder-from.") from None
