"""Write a pretrained model as a fairseq checkpoint, from which training can continue."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

from ..compat.checkpoints import CheckpointError
from ..compat.registration import register
from . import names, tokenizer
from .convert import Report
from .folder import CHECKPOINT, new_folder
from .ids import SPECIALS, Pretrained, symbols_in_dictionary
from .names import HEAD
from .pretrained import SETTINGS, symbols_of

_DICTIONARY, _REPORT, _TOKENIZER = "dict.txt", "report.json", "tokenizer"
#: Names of the task, the criterion, its class, and the architecture of each kind of model.
_MASKED = ("posenc_masked_lm", "masked_lm", "MaskedLmLoss", "posenc_roberta")
_CAUSAL = ("language_modeling", "cross_entropy", "CrossEntropyCriterion", "posenc_transformer_lm")


def save(model: Pretrained, report: Report, output: Path, source: Path) -> None:
    """Write checkpoint.pt, dict.txt, report.json and, if `source` has a tokenizer, tokenizer/ to the folder `output`.

    The ids of `model` must be in fairseq's order. If `model` has no vocabulary, the symbols in dict.txt are numbers.
    """
    with new_folder(output) as folder:
        _write_dictionary(symbols_in_dictionary(model), folder / _DICTIONARY)
        if model.vocabulary is not None and source.is_dir():
            _keep_tokenizer(source, model, folder, report)
        (folder / _REPORT).write_text(json.dumps(vars(report), indent=1), "utf-8")
        torch.save(_state(model, folder), folder / CHECKPOINT)


def _write_dictionary(symbols: list[str], path: Path) -> None:
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


def _keep_tokenizer(source: Path, model: Pretrained, folder: Path, report: Report) -> None:
    """Write tokenizer/, with the ids of dict.txt, to the place where export-hf looks for a tokenizer.

    If the tokenizer cannot be written, only add a note to the report, because the model is complete without a
    tokenizer.
    """
    output, config = folder / _TOKENIZER, model.config
    symbols = symbols_of(folder / _DICTIONARY, causal=config.causal)
    try:
        original, path = tokenizer.read(source)
        contents, lacking = tokenizer.fitted(
            original, symbols, path, segments=config.has_segments, first=config.beginning
        )
        tokenizer.write(contents, output, config)
    except CheckpointError as error:
        report.notes.append(f"tokenizer/ was not written: {error}")
        return
    report.notes.append(f"tokenizer/ was converted from {path.name} and has the ids of {_DICTIONARY}")
    if lacking:
        report.notes.append(f"tokenizer/ lacks {len(lacking)} pieces of {path.name}, such as {lacking[0]!r}")
    if reason := tokenizer.write_training_files(source, original, output):
        report.notes.append(
            f"prepare_corpus.py cannot use tokenizer/, because {path.name} is not GPT-2's byte-level BPE: {reason}. To "
            f"train on text of your own, split it with tokenizer/, and give the pieces and {_DICTIONARY} to "
            "fairseq-preprocess"
        )


def _state(model: Pretrained, folder: Path) -> dict[str, Any]:
    """Return a checkpoint from which training can continue, with the settings that fairseq-train would save."""
    causal, tensors = model.config.causal, dict(model.tensors)
    tensors.setdefault(HEAD, tensors["embed_tokens.weight"])
    weights = names.to_fairseq(tensors, causal=causal)
    weights["decoder.version" if causal else "encoder.sentence_encoder.version"] = torch.tensor([3.0])
    history: dict[str, Any] = {"criterion_name": (_CAUSAL if causal else _MASKED)[2], "optimizer_name": "none"}
    history |= {"lr_scheduler_state": {}, "num_updates": 0}
    return {
        "args": None,
        "cfg": _configuration(folder, flags(model)),
        "model": weights,
        "optimizer_history": [history],
        "extra_state": {"train_iterator": {"epoch": 1}, "metrics": {}, "previous_training_time": 0},
        "last_optimizer_state": None,
        "task_state": {},
    }


def _configuration(folder: Path, arguments: list[str]) -> dict[str, Any]:
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
    """Return the flags of fairseq-train that choose the task, build this model and set the length of its samples."""
    config = model.config
    task, criterion, _, arch = _CAUSAL if config.causal else _MASKED
    words = ["--task", task, "--criterion", criterion, "--arch", arch]
    valued = {ours: theirs for ours, (theirs, *defaults) in SETTINGS.items() if type(defaults[0]) is not bool}
    values = {theirs: getattr(config, ours) for ours, theirs in valued.items()}
    values |= {"SIDE_embed_dim": config.dim, "tokens_per_sample": config.max_length, "pos_enc": config.pos_enc}
    values |= {"layer_norm_eps": config.layer_norm_eps, "max_positions": config.max_length} if not config.causal else {}
    for name, value in values.items():
        words += [f"--{name.replace('SIDE', config.side).replace('_', '-')}", str(value)]
    words += ["--pos-enc-args", config.pos_enc_args] if config.pos_enc_args else []
    words += [f"--{config.side}-normalize-before"] * config.normalize_before
    if config.causal:
        return [*words, "--no-scale-embedding", *["--share-decoder-input-output-embed"] * config.tied]
    words += ["--layernorm-embedding"] * (not config.layernorm_embedding)  # this flag of fairseq switches it off
    return words + ["--untie-weights-roberta"] * (not config.tied)
