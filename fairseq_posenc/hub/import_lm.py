"""Convert a pretrained GPT-2 to a fairseq checkpoint of a language model with any position encoding."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch

from .causal_lm import CausalLM
from .checkpoint import DICTIONARY, REPORT, configuration, keep_tokenizer, state_of, write_dictionary
from .convert import Report, copy, copy_positions, initialised
from .folder import CHECKPOINT, new_folder
from .language_model import FAIRSEQ, LanguageModel
from .pretrained import SPECIALS

#: Flags of fairseq-train that are the same for every imported language model; see `flags`.
TASK = ("--task", "language_modeling", "--criterion", "cross_entropy", "--arch", "posenc_transformer_lm")


def converted(
    source: LanguageModel, pos_enc: str, args: str | None = None, *, max_length: int | None = None, seed: int = 1
) -> tuple[LanguageModel, Report]:
    """Return the source model with the encoding `pos_enc`, and a report on its weights.

    The absolute table is kept if `pos_enc` contains `learned`. The arguments are those of `convert.converted`.

    Raises:
        ValueError: The encoding or an option is unknown, or the encoding does not work in a decoder.
        CheckpointError: The weights of the source do not fit its settings.
    """
    report = Report()
    length = source.config.max_length if max_length is None else max_length
    config = replace(source.config, pos_enc=pos_enc, pos_enc_args=args or None, max_length=length)
    model = initialised(CausalLM, config, source.config, report, seed)
    state = model.state_dict()
    copy(source.tensors, state, report)
    tables = {name: tensor for name, tensor in source.tensors.items() if ".pos." in name}
    copy_positions(tables, model.decoder.pos, state, report)
    unused = [name for name in source.tensors if name not in state and name not in tables]
    report.dropped |= dict.fromkeys(unused, "the model has no such weight")
    report.notes += source.notes
    return replace(source, config=config, tensors=state), report


def save(model: LanguageModel, report: Report, output: Path, source: Path) -> None:
    """Write checkpoint.pt, dict.txt, report.json and, if `source` has a tokenizer, tokenizer/ to the folder `output`.

    If `model` has no vocabulary, the symbols in dict.txt are numbers.
    """
    with new_folder(output) as folder:
        numbers = map(str, range(len(SPECIALS), model.config.vocabulary))
        symbols = list(numbers) if model.vocabulary is None else model.vocabulary[len(SPECIALS) :]
        write_dictionary(symbols, folder / DICTIONARY)
        if model.vocabulary is not None:
            keep_tokenizer(source, folder, report, max_length=model.config.max_length, first="</s>")
        (folder / REPORT).write_text(json.dumps(vars(report), indent=1), "utf-8")
        weights = {_NAMES.get(name, name): tensor for name, tensor in model.tensors.items()}
        weights.setdefault(_NAMES["lm_head.weight"], weights["decoder.embed_tokens.weight"])
        weights["decoder.version"] = torch.tensor([3.0])
        state = state_of(weights, configuration(folder, [*TASK, *flags(model)]), "CrossEntropyCriterion")
        torch.save(state, folder / CHECKPOINT)


_NAMES = {"embed_tokens.weight": "decoder.embed_tokens.weight", "lm_head.weight": "decoder.output_projection.weight"}


def flags(model: LanguageModel) -> list[str]:
    """Return the flags of fairseq-train that build this model and set the length of its samples."""
    config = model.config
    values = {theirs: getattr(config, ours) for ours, (theirs, default) in FAIRSEQ.items() if type(default) is not bool}
    values |= {"decoder_embed_dim": config.dim, "tokens_per_sample": config.max_length, "pos_enc": config.pos_enc}
    words = [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    words += ["--pos-enc-args", config.pos_enc_args] if config.pos_enc_args else []
    words += ["--decoder-normalize-before", "--no-scale-embedding"]
    return words + ["--share-decoder-input-output-embed"] * config.tied
