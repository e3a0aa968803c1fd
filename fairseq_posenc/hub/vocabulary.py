"""Read the dictionary and the tokenizer of a pretrained model, without its weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..compat.checkpoints import CheckpointError
from . import tokenizer
from .folder import read_config, read_vocabulary
from .pretrained import (
    OWN,
    dictionary_of,
    distinct,
    fairseq_order,
    in_order,
    kind_of,
    settings_of,
    special_ids,
    symbols_of,
)

#: The special symbols of fairseq in their order, by their names in `ModelConfig`.
FIRST = ("bos", "pad", "eos", "unk")


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
        dict_file = _dictionary_beside(source)
        symbols = symbols_of(dict_file)
        place = files or tokenizer.beside(dict_file)
        if place is None:
            raise CheckpointError(
                f"{dict_file} has no tokenizer/ beside it. Give the tokenizer that split the model's training text."
            )
        contents, where = tokenizer.read(place)
    else:
        symbols = dictionary(source)
        contents, where = tokenizer.read(files or source)
    return symbols, tokenizer.fitted(contents, symbols, where, segments=True)[0]


def _dictionary_beside(checkpoint: Path) -> Path:
    """Return the path of a checkpoint's dict.txt, which fairseq and recipes/pretrain_mlm write to different places."""
    dict_file = dictionary_of(checkpoint, settings_of(checkpoint)[1])
    run = checkpoint.absolute().parents[2:3]  # RUN/checkpoints/ENCODING/checkpoint_last.pt
    in_shards = (path for folder in run for path in sorted(folder.glob("data/shard*/dict.txt")))
    dict_file = dict_file or next(in_shards, None)
    if dict_file is None:
        problem = f"{checkpoint}: there is no dict.txt beside it or in the folder of its training data"
        raise CheckpointError(f"{problem}. Put dict.txt beside the checkpoint.")
    return dict_file


def dictionary(folder: Path) -> list[str]:
    """Return the pieces of a model in a Hugging Face folder, in the order of the ids that `import-hf` gives them.

    fairseq's four special symbols come first and <mask> comes last. Ids without a piece, and pieces that occur again,
    get a made-up name that no text contains.

    Raises:
        CheckpointError: config.json or the vocabulary is missing, they do not fit each other, or the model is neither
            BERT nor RoBERTa.
    """
    settings, listed = read_config(folder), read_vocabulary(folder)
    if listed is None:
        raise CheckpointError(
            f"{folder} has no vocabulary (vocab.txt, vocab.json or tokenizer.json). Add one of these files."
        )
    ids = _ids(folder, settings, listed)
    if missing := [name for name in (*FIRST, "mask", "vocabulary") if ids.get(name) is None]:
        raise CheckpointError(f"{folder}/config.json has no '{missing[0]}'. Download the file again.")
    order = fairseq_order([ids[name] for name in FIRST], ids["mask"], ids["vocabulary"])
    return distinct(in_order(listed, order))


def _ids(folder: Path, settings: Mapping[str, Any], listed: list[str]) -> Mapping[str, Any]:
    """Return the ids of the special symbols and the vocabulary size, keyed by their names in `ModelConfig`."""
    if OWN in settings:
        own: Mapping[str, Any] = settings[OWN]
        return own
    kind = kind_of(folder, settings)
    size = settings.get("vocab_size", 0)
    pad = settings.get("pad_token_id", 1 if kind == "roberta" else 0)
    known = {**settings, "vocab_size": size}
    return {**special_ids(f"{folder}/config.json", kind, known, listed, pad), "vocabulary": size or None}
