"""`python -m fairseq_posenc export-hf`: export a fairseq checkpoint to a folder in the format of Hugging Face."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..compat.checkpoints import CheckpointError
from ..core.arguments import Parser
from ..core.words import visible
from . import export_lm, language_model, names, sums, tokenizer
from .code import ENTRY, code
from .convert import as_it_is, converted
from .folder import SAFE, new_folder
from .model import ModelConfig
from .pretrained import OWN, OWN_MASKED, Pretrained, read

ROBERTA = "roberta"

CARD = """---
library_name: fairseq_posenc
pipeline_tag: fill-mask
---
# A masked language model with position encoding `{pos_enc}`

The model has {layers} layers of width {dim}, {heads} heads and a vocabulary of {vocabulary:,} tokens. The model was
trained on sequences of up to {max_length} tokens. {options}
In Python:

    import fairseq_posenc
    model = fairseq_posenc.load("DIR")  # needs torch and safetensors, but not fairseq
    logits = model(input_ids, attention_mask)

{transformers}{tokenizer}
"""
READABLE = "The class `RobertaForMaskedLM` of transformers can load the model, too. "
TOKENIZER = "`transformers.AutoTokenizer` loads the tokenizer."
OTHER = """transformers runs the code in this folder, because transformers itself does not have this encoding:

    from transformers import AutoModelForMaskedLM
    model = AutoModelForMaskedLM.from_pretrained("DIR", trust_remote_code=True)

"""


def export(model: Pretrained, output: Path, tokens: tokenizer.Tokenizer | None = None) -> None:
    """Write the weights, config.json, the vocabulary, a model card, SHA256SUMS, and the tokenizer and code if needed.

    The code is needed if transformers itself has no class for the model.

    Raises:
        CheckpointError: The folder `output` is not empty.
    """
    from safetensors.torch import save_file

    config = model.config
    with new_folder(output) as folder:
        weights = {name: tensor.contiguous().clone() for name, tensor in _weights(model).items()}
        save_file(weights, folder / SAFE, metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(settings(config), indent=2) + "\n", "utf-8")
        files = {} if as_roberta(config) else code(config.pos_enc)
        for name, text in {"README.md": _card(config, tokens is not None), **files}.items():
            (folder / name).write_text(text, "utf-8")
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
    classes = {"AutoConfig": f"{ENTRY}.PosEncConfig", "AutoModelForMaskedLM": f"{ENTRY}.PosEncForMaskedLM"}
    return {
        "model_type": ROBERTA if known else OWN_MASKED,
        "architectures": ["RobertaForMaskedLM"] if known else ["PosEncForMaskedLM"],
        **({} if known else {"auto_map": classes, "torch_dtype": "float32"}),
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
        "tie_word_embeddings": config.tied and known,  # other tied models have no second matrix to tie
        OWN: asdict(config),
    }


def _weights(model: Pretrained) -> dict[str, Tensor]:
    config, tensors = model.config, dict(model.tensors)
    if not as_roberta(config):
        return {f"model.{name}": tensor for name, tensor in tensors.items()}  # as in our class for transformers
    table = tensors.pop("encoder.pos.learned.weight")
    unread = torch.zeros(config.pad + 1, config.dim, dtype=table.dtype)
    tensors_by_name = names.to_hf(tensors)
    tensors_by_name["roberta.embeddings.position_embeddings.weight"] = torch.cat([unread, table])
    tensors_by_name["lm_head.decoder.bias"] = tensors_by_name["lm_head.bias"]  # transformers ties them to this one
    tensors_by_name["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, config.dim, dtype=table.dtype)
    return tensors_by_name


def _card(config: ModelConfig, tokens: bool) -> str:
    options = f"The options of the encoding are `{config.pos_enc_args}`.\n" if config.pos_enc_args else ""
    known = READABLE if as_roberta(config) else OTHER
    texts = {"options": options, "transformers": known, "tokenizer": TOKENIZER if tokens else ""}
    return CARD.format(**{**asdict(config), **texts}).replace(" \n", "\n")


def _tokenizer(model: Pretrained, source: Path | None) -> tuple[tokenizer.Tokenizer | None, str]:
    """Return the tokenizer to write (None if there is none), and a message about the tokenizer."""
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


def _parser() -> Parser:
    parser = Parser(
        prog="python -m fairseq_posenc export-hf",
        description="Export a masked language model or a language model of fairseq to a folder that transformers and "
        "fairseq_posenc.load read.",
        epilog="example:\n  %(prog)s checkpoints/checkpoint_best.pt --output my-model\n",
    )
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        type=Path,
        help="Checkpoint of posenc_roberta or posenc_transformer_lm, or of fairseq's roberta or transformer_lm.",
    )
    parser.add_argument(
        "--output", required=True, type=Path, metavar="DIR", help="Folder to write, which must be new or empty."
    )
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="FILE_OR_FOLDER",
        help=f"File or folder of the tokenizer: {tokenizer.FORMS}. Default: the folder tokenizer/ beside dict.txt; "
        "without this folder, a language model of whole words gets a tokenizer that splits text at spaces. With "
        "`none`, no tokenizer is written.",
    )
    return parser


def main(argv: Sequence[str]) -> int:
    """Export the model that the command line names. Return 0, or print an error message of one line and return 1."""
    args = _parser().parse_args(argv)
    try:
        is_causal = args.checkpoint.is_file() and language_model.is_language_model(args.checkpoint)
        lines = (_export_lm if is_causal else _export_masked)(args.checkpoint, args.output, args.tokenizer)
    except (CheckpointError, ValueError, OSError) as error:
        print(f"export-hf: {visible(error)}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


def _export_lm(checkpoint: Path, output: Path, files: Path | None) -> list[str]:
    """Export a language model, and return the lines to print."""
    model = language_model.of_checkpoint(checkpoint)
    language_model.model_of(model)  # raises if weights are missing or left over
    tokens, line = export_lm.tokens_of(model, files)
    export_lm.export(model, output, tokens)
    lines = [f"Wrote {len(model.tensors)} weights with the encoding {model.config.pos_enc} to {output}."]
    lines += [line if tokens else f"note: {line}", *(f"note: {note}." for note in model.notes)]
    return [*lines, _no_vocabulary()] if model.vocabulary is None else lines


def _export_masked(checkpoint: Path, output: Path, files: Path | None) -> list[str]:
    """Export a masked language model, and return the lines to print."""
    pretrained = read(checkpoint)
    config = pretrained.config
    model, report = converted(pretrained, as_it_is(config, pretrained.tensors), config.pos_enc_args)
    if lost := [*report.new, *report.dropped]:
        unexported = [name for name in lost if not name.startswith("classification_heads.")]
        if unexported:
            problem = f"{checkpoint}: the weight {unexported[0]} is missing or cannot be exported"
            raise CheckpointError(f"{problem}. Give the checkpoint of a masked language model.")
    tokens, line = _tokenizer(pretrained, files)
    export(model, output, tokens)
    lines = [f"Wrote {len(report.copied)} weights with the encoding {model.config.pos_enc} to {output}."]
    lines += [f"dropped: {name}: {why}" for name, why in report.dropped.items()]
    lines.append(line if tokens else f"note: {line}")
    return [*lines, _no_vocabulary()] if model.vocabulary is None else lines


def _no_vocabulary() -> str:
    reason = "there is no dict.txt beside the checkpoint or in its data folder"
    return f"note: the folder has no vocabulary, because {reason}"
