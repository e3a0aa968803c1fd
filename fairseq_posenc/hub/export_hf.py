"""`python -m fairseq_posenc export-hf`: export a fairseq checkpoint to a folder in the format of Hugging Face."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..compat.checkpoints import CheckpointError
from . import names, tokenizer
from .convert import as_it_is, converted
from .folder import SAFE, new_folder
from .model import ModelConfig
from .pretrained import OWN, Pretrained, read

ROBERTA = "roberta"

CARD = """---
library_name: fairseq_posenc
pipeline_tag: fill-mask
---
# A masked language model with position encoding `{pos_enc}`

{layers} layers, {dim} wide, {heads} heads, {vocabulary:,} types, trained up to length {max_length}.
{options}
    import fairseq_posenc
    model = fairseq_posenc.load("DIR")  # torch and safetensors, no fairseq
    logits = model(input_ids, attention_mask)

{transformers} {tokenizer}
"""
READABLE = "transformers' `RobertaForMaskedLM` reads it too."
TOKENIZER = "`transformers.AutoTokenizer` reads the tokenizer."
UNREADABLE = "transformers has no such encoding: its classes must not read this folder, and its model_type says so."


def export(model: Pretrained, output: Path, tokens: tokenizer.Tokenizer | None = None) -> None:
    """Write the weights, config.json, the vocabulary, a model card and, if there is one, the tokenizer.

    Raises:
        CheckpointError: The folder `output` is not empty.
    """
    from safetensors.torch import save_file

    config = model.config
    with new_folder(output) as folder:
        weights = {name: tensor.contiguous().clone() for name, tensor in _weights(model).items()}
        save_file(weights, folder / SAFE, metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(settings(config), indent=2) + "\n", "utf-8")
        (folder / "README.md").write_text(_card(config, tokens is not None), "utf-8")
        if model.vocabulary is not None:
            (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in model.vocabulary), "utf-8")
        if tokens is not None:
            tokenizer.write(tokens, folder, max_length=config.max_length, segments=config.has_segments)


def as_roberta(config: ModelConfig) -> bool:
    """Return whether transformers can read the model as its RoBERTa."""
    plain = config.layernorm_embedding and not config.normalize_before and config.activation == "gelu"
    return config.pos_enc == "learned" and not config.pos_enc_args and plain and config.pad == 1


def settings(config: ModelConfig) -> dict[str, Any]:
    """Return the contents of config.json, with our settings under `fairseq_posenc`."""
    known = as_roberta(config)
    return {
        "model_type": ROBERTA if known else OWN,
        "architectures": ["RobertaForMaskedLM"] if known else ["MaskedLM"],
        "vocab_size": config.vocabulary,
        "hidden_size": config.dim,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.ffn,
        "hidden_act": config.activation,
        "max_position_embeddings": config.max_length + (config.pad + 1 if known else 0),
        "type_vocab_size": 1,
        "layer_norm_eps": config.layer_norm_eps,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "bos_token_id": config.bos,
        "pad_token_id": config.pad,
        "eos_token_id": config.eos,
        "tie_word_embeddings": config.tied,
        OWN: asdict(config),
    }


def _weights(model: Pretrained) -> dict[str, Tensor]:
    config, tensors = model.config, dict(model.tensors)
    if not as_roberta(config):
        return tensors  # under our own names, so that transformers cannot mistake them for a RoBERTa
    table = tensors.pop("encoder.pos.learned.weight")
    unread = torch.zeros(config.pad + 1, config.dim, dtype=table.dtype)
    found = names.to_hf(tensors)
    found["roberta.embeddings.position_embeddings.weight"] = torch.cat([unread, table])
    found["lm_head.decoder.bias"] = found["lm_head.bias"]  # transformers ties them to this one
    found["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, config.dim, dtype=table.dtype)
    return found


def _card(config: ModelConfig, tokens: bool) -> str:
    options = f"Its options: `{config.pos_enc_args}`.\n" if config.pos_enc_args else ""
    known = READABLE if as_roberta(config) else UNREADABLE
    told = {"options": options, "transformers": known, "tokenizer": TOKENIZER if tokens else ""}
    return CARD.format(**{**asdict(config), **told}).replace(" \n", "\n")


def _tokenizer(model: Pretrained, source: Path | None) -> tuple[tokenizer.Tokenizer | None, str]:
    """Return the tokenizer to write, if there is one, and a line about it. `model` is the model as it was read."""
    found = source or (tokenizer.beside(model.dictionary) if model.dictionary else None)
    if found is None or str(source) == "none":
        return None, f"no tokenizer files: --tokenizer FILE_OR_FOLDER ({tokenizer.FORMS}) would write them"
    if model.vocabulary is None:
        raise CheckpointError(f"{found} cannot be tried: no dict.txt beside the checkpoint or in its data")
    made, where = tokenizer.read(found)
    made, lacking = tokenizer.fitted(made, model.vocabulary, where, segments=model.config.has_segments)
    line = f"tokenizer of {where}"
    return made, line + (f" without {len(lacking)} pieces that dict.txt lacks" if lacking else "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_posenc export-hf",
        description="Export a masked language model of fairseq's to a folder that fairseq_posenc.load reads.",
        epilog="example:\n  export-hf checkpoints/checkpoint_best.pt --output my-model\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", type=Path, help="Checkpoint of posenc_roberta or stock roberta."
    )
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="New or empty folder.")
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="FILE_OR_FOLDER",
        help=f"Tokenizer: {tokenizer.FORMS}. Default: tokenizer/ beside dict.txt. `none` leaves it out.",
    )
    return parser


def main(argv: Sequence[str]) -> int:
    """Export as the command line says. Return 0, or 1 after printing an error of one line."""
    args = _parser().parse_args(argv)
    try:
        found = read(args.checkpoint)
        model, report = converted(found, as_it_is(found.config, found.tensors), found.config.pos_enc_args)
        if lost := [*report.made, *report.dropped]:
            wanted = [name for name in lost if not name.startswith("classification_heads.")]
            if wanted:
                raise CheckpointError(f"{args.checkpoint}: {wanted[0]} has no place or no source in the exported model")
        tokens, line = _tokenizer(found, args.tokenizer)
        export(model, args.output, tokens)
    except (CheckpointError, ValueError, OSError) as error:
        print(f"export-hf: {error}", file=sys.stderr)
        return 1
    print(f"{args.output}: {len(report.copied)} weights, {model.config.pos_enc}")
    for name, why in report.dropped.items():
        print(f"dropped: {name}: {why}")
    print(line if tokens else f"note: {line}")
    if model.vocabulary is None:
        print("note: no dict.txt beside the checkpoint or in its data: the folder has no vocabulary")
    return 0
