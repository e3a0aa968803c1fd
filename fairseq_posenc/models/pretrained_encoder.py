"""--encoder-from: load an encoder and its embedding that were pretrained as a masked language model."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary

from ..compat.checkpoints import CheckpointError
from ..data.words import MASK
from ..hub.checkpoint import symbols_in_dictionary
from ..hub.convert import as_it_is, converted
from ..hub.pretrained import Pretrained, read, reordered
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
_OWN = ("encoder.", "embed_tokens.", "lm_head.")


def pretrained_encoder(source: Path, dictionary: Dictionary, dictionary_file: Path) -> Pretrained:
    """Read a pretrained encoder from a Hugging Face folder, a folder of `export-hf`, or a fairseq checkpoint.

    Args:
        source: Path of the folder or checkpoint.
        dictionary: Dictionary of the data; <mask> may be missing at its end.
        dictionary_file: File of the dictionary, for error messages.
    Raises:
        CheckpointError: The encoder cannot be read, or its vocabulary is another tokenizer's.
    """
    found = reordered(read(source))
    _check_vocabulary(found, source, dictionary, dictionary_file)
    if any(not name.startswith(_OWN) for name in found.tensors):
        found, report = converted(found, as_it_is(found.config, found.tensors))
        missing = [name for name in report.made if not name.startswith("lm_head.")]
        if missing:
            raise CheckpointError(f"{source} has no {missing[0]}: it is no whole encoder")
    return found


def _check_vocabulary(found: Pretrained, source: Path, dictionary: Dictionary, file: Path) -> None:
    ours = dictionary.symbols[dictionary.nspecial :]
    theirs = [*symbols_in_dictionary(found), MASK]
    compared = theirs if ours[-1:] == [MASK] else theirs[:-1]
    cure = f"prepare the data with the tokenizer of --encoder-from {source}"
    if len(ours) != len(compared):
        raise CheckpointError(
            f"{file} has {len(ours)} pieces, {source} has {len(compared)}: they are of different tokenizers; {cure}"
        )
    if found.vocabulary is None:
        logger.warning(f"{source} has no vocabulary: of {file} only the number of pieces could be compared with it")
    differs = next((i for i, (one, other) in enumerate(zip(ours, compared, strict=True)) if one != other), None)
    if found.vocabulary is not None and differs is not None:
        raise CheckpointError(
            f"{file}, line {differs + 1}: {ours[differs]!r}, which in {source} is {compared[differs]!r}; {cure}"
        )


def take_sizes(cfg: Any, found: Pretrained) -> None:
    """Write the sizes and settings of the encoder into the model's options.

    The encoder keeps its number of positions. If --max-source-positions differs, that is logged.

    Raises:
        ValueError: An option contradicts the encoder.
    """
    told = f"the encoder of --encoder-from {cfg.encoder_from}"
    for name, theirs in _SIZES.items():
        take(cfg, name, getattr(found.config, theirs), None, told)
    take(cfg, "encoder_normalize_before", found.config.normalize_before, False, told)
    take(cfg, "no_encoder_embedding_norm", not found.config.layernorm_embedding, False, told)
    asked, longest = cfg.max_source_positions, found.config.max_length
    if asked != longest:
        how = f"--max-source-positions is {asked}, {told} has {longest} positions"
        logger.info(f"{how}, all of which stay: sources of {min(asked, longest)} tokens are read")
    cfg.max_source_positions = longest


def take(cfg: Any, name: str, value: Any, unset: Any, told: str) -> None:
    """Set an option to the value of the pretrained model.

    Args:
        cfg: Options, which are changed.
        name: Name of the option.
        value: Value of the pretrained model.
        unset: Value of the option if the user did not set it.
        told: Description of the model for the error message.
    Raises:
        ValueError: The user set the option to another value.
    """
    given = getattr(cfg, name)
    if given != unset and given != value:
        raise ValueError(f"--{name.replace('_', '-')} {given}: {told} has {value}; leave it out")
    setattr(cfg, name, value)


def load_encoder(encoder: Any, found: Pretrained) -> None:
    """Load the pretrained weights into the encoder, without the row of <mask> if the dictionary has none.

    Raises:
        CheckpointError: The weights do not fit the encoder.
    """
    state = {name.removeprefix("encoder."): t for name, t in found.tensors.items() if name.startswith("encoder.")}
    state["embed_tokens.weight"] = found.tensors["embed_tokens.weight"][: len(encoder.embed_tokens.weight)]
    kept = {name: tensor for name, tensor in encoder.state_dict().items() if name == "version"}
    try:
        encoder.load_state_dict({**kept, **state})
    except RuntimeError as error:
        raise CheckpointError(f"the weights of the encoder are not those of its settings: {error}") from None
