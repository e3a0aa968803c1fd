"""Write a pretrained model as a fairseq checkpoint, from which training can continue."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..compat.checkpoints import CheckpointError
from ..compat.registration import register
from ..data.words import MASK
from . import names, tokenizer
from .convert import Report
from .folder import CHECKPOINT, new_folder
from .pretrained import FAIRSEQ, SPECIALS, Pretrained, distinct, listed_in, symbols_of

DICTIONARY, REPORT, TOKENIZER = "dict.txt", "report.json", "tokenizer"
#: Flags of fairseq-train that are the same for every imported masked language model; see `flags`.
TASK = ("--task", "posenc_masked_lm", "--criterion", "masked_lm", "--arch", "posenc_roberta")


def save(model: Pretrained, report: Report, output: Path, source: Path) -> None:
    """Write checkpoint.pt, dict.txt, report.json and, if `source` has a tokenizer, tokenizer/ to the folder `output`.

    The ids of `model` must be in fairseq's order. If `model` has no vocabulary, the symbols in dict.txt are numbers.
    """
    with new_folder(output) as folder:
        write_dictionary(symbols_in_dictionary(model), folder / DICTIONARY)
        if model.vocabulary is not None and source.is_dir():
            config = model.config
            keep_tokenizer(source, folder, report, max_length=config.max_length, segments=config.has_segments)
        (folder / REPORT).write_text(json.dumps(vars(report), indent=1), "utf-8")
        torch.save(_state(model, folder), folder / CHECKPOINT)


def symbols_in_dictionary(model: Pretrained) -> list[str]:
    """Return the symbols for dict.txt, without special symbols and <mask>, which fairseq's task appends.

    The ids must be in fairseq's order.
    """
    pieces = model.vocabulary or [*SPECIALS, *map(str, range(len(SPECIALS), model.config.vocabulary - 1)), MASK]
    return distinct(pieces)[len(SPECIALS) : -1]


def write_dictionary(symbols: list[str], path: Path) -> None:
    """Write dict.txt with these symbols, to which fairseq adds the special symbols.

    Raises:
        CheckpointError: fairseq would not read the same pieces from dict.txt.
    """
    register()
    from fairseq.data import Dictionary

    path.write_text("".join(f"{symbol} 1\n" for symbol in symbols), "utf-8")
    if Dictionary.load(str(path)).symbols[len(SPECIALS) :] != symbols:
        raise CheckpointError(
            "a piece of the vocabulary contains a space or a line end, which dict.txt cannot hold. Give another model."
        )


def keep_tokenizer(
    source: Path, folder: Path, report: Report, *, max_length: int, segments: bool = False, first: str | None = None
) -> None:
    """Write tokenizer/, with the ids of dict.txt, to the place where export-hf looks for a tokenizer.

    If the tokenizer cannot be written, only add a note to the report, because the model is complete without a
    tokenizer. The arguments `segments` and `first` are those of `tokenizer.fitted`.
    """
    output = folder / TOKENIZER
    try:
        original, path = tokenizer.read(source)
        symbols = (symbols_of if first is None else listed_in)(folder / DICTIONARY)
        contents, lacking = tokenizer.fitted(original, symbols, path, segments=segments, first=first)
        output.mkdir()
        tokenizer.write(contents, output, max_length=max_length, segments=segments, first=first)
    except CheckpointError as error:
        output.rmdir() if output.is_dir() else None
        report.notes.append(f"tokenizer/ was not written: {error}")
        return
    tokenizer.copy_sources(source, output)
    problem = "" if tokenizer.has_sources(output) else _without_sources(original, path, output)
    report.notes.append(f"tokenizer/ was converted from {path.name} and has the ids of {DICTIONARY}")
    if lacking:
        report.notes.append(f"tokenizer/ lacks {len(lacking)} pieces of {path.name}, such as {lacking[0]!r}")
    report.notes += [problem] if problem else []


def _without_sources(original: tokenizer.Tokenizer, path: Path, output: Path) -> str:
    """Write the files that split training text from a tokenizer.json, or return why this is not possible."""
    try:
        tokenizer.write_byte_level(original, output)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return (
            f"prepare_corpus.py cannot use tokenizer/, because {path.name} is not GPT-2's byte-level BPE: {error}. To "
            "train on text of your own, add the vocab.txt, the SentencePiece model or the vocab.json and merges.txt "
            f"of this tokenizer to {path.parent}, and import again"
        )
    return ""


def _state(model: Pretrained, folder: Path) -> dict[str, Any]:
    tensors = dict(model.tensors)
    tensors.setdefault("lm_head.weight", tensors["embed_tokens.weight"])
    state = names.to_fairseq(tensors)
    state["encoder.sentence_encoder.version"] = torch.tensor([3.0])
    return state_of(state, configuration(folder, [*TASK, *flags(model)]), "MaskedLmLoss")


def state_of(weights: Mapping[str, Tensor], configuration: Mapping[str, Any], criterion: str) -> dict[str, Any]:
    """Return a checkpoint with these weights, from which training can continue.

    Args:
        weights: Weights by their names in fairseq.
        configuration: See `configuration`.
        criterion: Name of the criterion's class.
    """
    history = {"criterion_name": criterion, "optimizer_name": "none", "lr_scheduler_state": {}, "num_updates": 0}
    return {
        "args": None,
        "cfg": configuration,
        "model": weights,
        "optimizer_history": [history],
        "extra_state": {"train_iterator": {"epoch": 1}, "metrics": {}, "previous_training_time": 0},
        "last_optimizer_state": None,
        "task_state": {},
    }


def configuration(folder: Path, arguments: list[str]) -> dict[str, Any]:
    """Return the configuration that fairseq-train would save with these arguments and the data in `folder`."""
    register()
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from omegaconf import OmegaConf

    words = [os.fspath(folder), "--optimizer", "adam", *arguments]
    parsed = options.parse_args_and_arch(options.get_training_parser(), words)
    values: dict[str, Any] = OmegaConf.to_container(convert_namespace_to_omegaconf(parsed), resolve=True)
    values["task"]["data"] = ""
    return values


def flags(model: Pretrained) -> list[str]:
    """Return the flags of fairseq-train that build this model and set the length of its samples."""
    config = model.config
    values = {theirs: getattr(config, ours) for ours, (theirs, default) in FAIRSEQ.items() if type(default) is not bool}
    values |= {"encoder_embed_dim": config.dim, "max_positions": config.max_length}
    values |= {"tokens_per_sample": config.max_length, "pos_enc": config.pos_enc}
    words = [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    words += ["--pos-enc-args", config.pos_enc_args] if config.pos_enc_args else []
    words += ["--encoder-normalize-before"] * config.normalize_before
    words += ["--layernorm-embedding"] * (not config.layernorm_embedding)  # this flag of fairseq switches it off
    return words + ["--untie-weights-roberta"] * (not config.tied)
