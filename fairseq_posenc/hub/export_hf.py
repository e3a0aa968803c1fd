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
from . import names, sums, tokenizer
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

The model has {layers} layers of width {dim}, {heads} heads and a vocabulary of {vocabulary:,} tokens. The model was
trained on sequences of up to {max_length} tokens. {options}
    import fairseq_posenc
    model = fairseq_posenc.load("DIR")  # needs torch and safetensors, but not fairseq
    logits = model(input_ids, attention_mask)

{transformers} {tokenizer}
"""
READABLE = "The class `RobertaForMaskedLM` of transformers can load the model, too."
TOKENIZER = "`transformers.AutoTokenizer` loads the tokenizer."
UNREADABLE = "No class of transformers can load this folder, because transformers does not have this encoding."


def export(model: Pretrained, output: Path, tokens: tokenizer.Tokenizer | None = None) -> None:
    """Write the weights, config.json, the vocabulary, a model card, SHA256SUMS and, if there is one, the tokenizer.

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
        sums.write(folder)


def as_roberta(config: ModelConfig) -> bool:
    """Return whether transformers can read the model as a RoBERTa."""
    plain = config.layernorm_embedding and not config.normalize_before and config.activation == "gelu"
    return config.pos_enc == "learned" and not config.pos_enc_args and plain and config.pad == 1


def settings(config: ModelConfig) -> dict[str, Any]:
    """Return the contents of config.json; settings that only this package reads are under `fairseq_posenc`."""
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
    tensors_by_name = names.to_hf(tensors)
    tensors_by_name["roberta.embeddings.position_embeddings.weight"] = torch.cat([unread, table])
    tensors_by_name["lm_head.decoder.bias"] = tensors_by_name["lm_head.bias"]  # transformers ties them to this one
    tensors_by_name["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, config.dim, dtype=table.dtype)
    return tensors_by_name


def _card(config: ModelConfig, tokens: bool) -> str:
    options = f"The options of the encoding are `{config.pos_enc_args}`.\n" if config.pos_enc_args else ""
    known = READABLE if as_roberta(config) else UNREADABLE
    texts = {"options": options, "transformers": known, "tokenizer": TOKENIZER if tokens else ""}
    return CARD.format(**{**asdict(config), **texts}).replace(" \n", "\n")


def _tokenizer(model: Pretrained, source: Path | None) -> tuple[tokenizer.Tokenizer | None, str]:
    """Return the tokenizer to write, or None if there is none, and a message about it. `model` is the source model."""
    place = source or (tokenizer.beside(model.dictionary) if model.dictionary else None)
    if place is None or str(source) == "none":
        return None, f"no tokenizer was written. To add it, give --tokenizer FILE_OR_FOLDER ({tokenizer.FORMS})."
    if model.vocabulary is None:
        raise CheckpointError(
            f"{place}: this tokenizer needs the model's dict.txt. Put the dict.txt into the folder of the checkpoint."
        )
    contents, where = tokenizer.read(place)
    contents, lacking = tokenizer.fitted(contents, model.vocabulary, where, segments=model.config.has_segments)
    line = f"wrote the tokenizer of {where}"
    return contents, line + (f" without {len(lacking)} pieces that dict.txt lacks" if lacking else "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_posenc export-hf",
        description="Export a masked language model of fairseq to a folder that fairseq_posenc.load reads.",
        epilog="example:\n  export-hf checkpoints/checkpoint_best.pt --output my-model\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", type=Path, help="Checkpoint of posenc_roberta or of fairseq's roberta."
    )
    parser.add_argument(
        "--output", required=True, type=Path, metavar="DIR", help="Folder to write, which must be new or empty."
    )
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="FILE_OR_FOLDER",
        help=f"File or folder of the tokenizer: {tokenizer.FORMS}. Default: the folder tokenizer/ beside dict.txt. "
        "With `none`, no tokenizer is written.",
    )
    return parser


def main(argv: Sequence[str]) -> int:
    """Export the model that the command line names. Return 0, or print an error message of one line and return 1."""
    args = _parser().parse_args(argv)
    try:
        pretrained = read(args.checkpoint)
        config = pretrained.config
        model, report = converted(pretrained, as_it_is(config, pretrained.tensors), config.pos_enc_args)
        if lost := [*report.made, *report.dropped]:
            unexported = [name for name in lost if not name.startswith("classification_heads.")]
            if unexported:
                problem = f"{args.checkpoint}: the weight {unexported[0]} is missing or cannot be exported"
                raise CheckpointError(f"{problem}. Give the checkpoint of a masked language model.")
        tokens, line = _tokenizer(pretrained, args.tokenizer)
        export(model, args.output, tokens)
    except (CheckpointError, ValueError, OSError) as error:
        print(f"export-hf: {error}", file=sys.stderr)
        return 1
    print(f"Wrote {len(report.copied)} weights with the encoding {model.config.pos_enc} to {args.output}.")
    for name, why in report.dropped.items():
        print(f"dropped: {name}: {why}")
    print(line if tokens else f"note: {line}")
    if model.vocabulary is None:
        reason = "there is no dict.txt beside the checkpoint or in its data folder"
        print(f"note: the folder has no vocabulary, because {reason}")
    return 0
