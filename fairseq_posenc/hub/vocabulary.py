"""Read the dictionary and the tokenizer of a pretrained model, without its weights."""

from __future__ import annotations

from pathlib import Path

from ..compat.checkpoints import CheckpointError
from . import tokenizer
from .folder import read_config, read_vocabulary
from .hugging_face import config_of
from .ids import fairseq_order, in_order
from .pretrained import dictionary_beside, symbols_of


def with_tokenizer(source: Path, files: Path | None = None) -> tuple[list[str], tokenizer.Tokenizer]:
    """Return a pretrained model's pieces in the order of their ids, and the contents of tokenizer.json with these ids.

    Args:
        source: A folder in the format of Hugging Face, such as one of `export-hf`, or a fairseq checkpoint.
        files: A file of the tokenizer, or the folder of its files. Default: the folder `source`; for a checkpoint,
            tokenizer/ beside its dict.txt or one folder higher.
    Raises:
        CheckpointError: There is no vocabulary or no tokenizer, or the tokenizer belongs to another model.
    """
    if source.is_file() or source.suffix == ".pt":
        dict_file = dictionary_beside(source)
        symbols = symbols_of(dict_file)
        place = files or tokenizer.beside(dict_file)
        if place is None:
            raise CheckpointError(
                f"{dict_file} has no tokenizer/ beside it. Give the tokenizer that split the model's training text."
            )
    else:
        symbols, place = dictionary(source), files or source
    contents, where = tokenizer.read(place)
    return symbols, tokenizer.fitted(contents, symbols, where, segments=True)[0]


def dictionary(folder: Path) -> list[str]:
    """Return the pieces of a model in a Hugging Face folder, in the order of the ids that `import-hf` gives them.

    Raises:
        CheckpointError: config.json or the vocabulary is missing, they do not fit each other, or the model is neither
            BERT nor RoBERTa.
    """
    settings, listed = read_config(folder), read_vocabulary(folder)
    if listed is None:
        raise CheckpointError(
            f"{folder} has no vocabulary (vocab.txt, vocab.json or tokenizer.json). Add one of these files."
        )
    config = config_of(folder, settings, listed)
    if config.causal:
        raise CheckpointError(f"{folder}/config.json: the model is no masked language model. Give a BERT or a RoBERTa.")
    return in_order(listed, fairseq_order(config), config)
