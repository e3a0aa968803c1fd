"""--encoder-from: an encoder that was pretrained as a masked language model, with its embedding."""

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

#: options of the model, and what they are in the source's settings
_SIZES = {
    **ENCODER_SIZES,
    "encoder_activation_fn": "activation",
    "encoder_layer_norm_eps": "layer_norm_eps",
    "pos_enc_encoder": "pos_enc",
    "pos_enc_encoder_args": "pos_enc_args",
}
_OWN = ("encoder.", "embed_tokens.", "lm_head.")


def pretrained_encoder(source: Path, dictionary: Dictionary, dictionary_file: Path) -> Pretrained:
    """Read a folder of Hugging Face's or of `export-hf`, or a checkpoint of fairseq's, with all its positions.

    Args:
        dictionary: that of the data, from `dictionary_file`; with or without <mask> at its end.
    Raises:
        CheckpointError: what cannot be read, and the vocabulary of another tokenizer.
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
    """Write what the encoder is into the model's options; its number of positions is told where another was asked for.

    Raises:
        ValueError: options that say something else.
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
    """Write a pretrained model's value into an option that is `unset`.

    Args:
        told: what the model is called.
    Raises:
        ValueError: the option says something else.
    """
    given = getattr(cfg, name)
    if given != unset and given != value:
        raise ValueError(f"--{name.replace('_', '-')} {given}: {told} has {value}; leave it out")
    setattr(cfg, name, value)


def load_encoder(encoder: Any, found: Pretrained) -> None:
    """Give the encoder of a model its weights; the embedding without <mask> where the dictionary has none.

    Raises:
        CheckpointError: they do not fit.
    """
    state = {name.removeprefix("encoder."): t for name, t in found.tensors.items() if name.startswith("encoder.")}
    state["embed_tokens.weight"] = found.tensors["embed_tokens.weight"][: len(encoder.embed_tokens.weight)]
    kept = {name: tensor for name, tensor in encoder.state_dict().items() if name == "version"}
    try:
        encoder.load_state_dict({**kept, **state})
    except RuntimeError as error:
        raise CheckpointError(f"the weights of the encoder are not those of its settings: {error}") from None
