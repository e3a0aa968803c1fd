"""`python -m fairseq_posenc export-hf`: export a fairseq checkpoint to a folder in the format of Hugging Face."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..compat.checkpoints import CheckpointError
from ..data.words import marked
from . import command, names, sums, tokenizer
from .code import ENTRY, code
from .folder import SAFE, new_folder
from .hugging_face import OWN, SETTINGS
from .ids import Pretrained
from .model import ModelConfig
from .names import LEARNED, TYPES
from .pretrained import read

CARD = Path(__file__).with_name("card.md")


def export(model: Pretrained, output: Path, tokens: tokenizer.Tokenizer | None = None) -> None:
    """Write the weights, config.json, the vocabulary, a model card, SHA256SUMS, and the tokenizer and code if needed.

    The code is needed if transformers itself has no class for the model.

    Raises:
        CheckpointError: The folder `output` is not empty.
    """
    from safetensors.torch import save_file

    config = model.config
    files = {"config.json": _json(_settings(config)), "README.md": _card(model, has_tokenizer=tokens is not None)}
    files |= {} if _is_roberta(config) else code(config.pos_enc)
    files |= {"generation_config.json": _json(_generation(config))} if config.causal else {}
    if model.vocabulary is not None:
        files["vocab.txt"] = "".join(f"{piece}\n" for piece in model.vocabulary)
    with new_folder(output) as folder:
        weights = {name: tensor.contiguous().clone() for name, tensor in _weights(model).items()}
        save_file(weights, folder / SAFE, metadata={"format": "pt"})
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
        if tokens is not None:
            tokenizer.write(tokens, folder, config)
        sums.write(folder)


def _is_roberta(config: ModelConfig) -> bool:
    """Return whether transformers can read the model as a RoBERTa."""
    plain = config.layernorm_embedding and not config.normalize_before and config.activation == "gelu"
    learned = config.pos_enc == "learned" and not config.pos_enc_args
    return learned and plain and config.pad == 1 and config.attention_bias and not config.causal


def _class(config: ModelConfig) -> str:
    """Return the end of the names of the classes for this model."""
    return "ForCausalLM" if config.causal else "ForMaskedLM"


def _settings(config: ModelConfig) -> dict[str, Any]:
    """Return the contents of config.json; settings that only this package reads are under `fairseq_posenc`."""
    known, kind = _is_roberta(config), _class(config)
    classes = {"AutoConfig": f"{ENTRY}.PosEncConfig", f"AutoModel{kind}": f"{ENTRY}.PosEnc{kind}"}
    return {
        "model_type": "roberta" if known else OWN,
        "architectures": [f"Roberta{kind}" if known else f"PosEnc{kind}"],
        **({} if known else {"auto_map": classes, "torch_dtype": "float32"}),
        **{theirs: getattr(config, ours) for ours, (theirs, _) in SETTINGS.items()},
        "max_position_embeddings": config.max_length + (config.pad + 1 if known else 0),
        "type_vocab_size": 1,
        "bos_token_id": config.first if config.causal else config.bos,
        "pad_token_id": config.pad,
        "eos_token_id": config.eos,
        "tie_word_embeddings": config.tied and known,  # other tied models have no second matrix to tie
        OWN: asdict(config),
    }


def _generation(config: ModelConfig) -> dict[str, Any]:
    """Return the contents of generation_config.json, which forbids padding and <s> in generated text."""
    return {
        "bos_token_id": config.first,
        "eos_token_id": config.eos,
        "pad_token_id": config.pad,
        "suppress_tokens": sorted({config.pad, config.bos} - {config.eos}),
    }


def _weights(model: Pretrained) -> dict[str, Tensor]:
    config, tensors = model.config, dict(model.tensors)
    if not _is_roberta(config):
        return {f"model.{name}": tensor for name, tensor in tensors.items()}  # as in our class for transformers
    table = tensors[f"encoder.{LEARNED}"]
    unread = torch.zeros(config.pad + 1, config.dim, dtype=table.dtype)
    tensors |= {f"encoder.{LEARNED}": torch.cat([unread, table]), f"{TYPES}.weight": torch.zeros_like(unread[:1])}
    named = names.to_roberta(tensors)
    return {**named, "lm_head.decoder.bias": named["lm_head.bias"]}  # transformers ties them to this one


def _json(contents: dict[str, Any]) -> str:
    return json.dumps(contents, indent=2) + "\n"


def _card(model: Pretrained, *, has_tokenizer: bool) -> str:
    config, more, code_runs = model.config, list[str](), not _is_roberta(model.config)
    if config.pos_enc_args:
        more.append(f"The options of the encoding are `{config.pos_enc_args}`.")
    if config.causal:
        more.append(f"Each text begins with `{config.beginning}`, and each line ends with `</s>`.")
    more += [f"{note[0].upper()}{note[1:]}." for note in model.notes]
    more += ["`transformers.AutoTokenizer` loads the tokenizer."] if has_tokenizer else []
    texts = {
        "auto": f"AutoModel{_class(config)}",
        "task": "text-generation" if config.causal else "fill-mask",
        "kind": "language model" if config.causal else "masked language model",
        "more": "\n".join(more),
        "trust": ", which runs the code in this folder, because it does not have this encoding" if code_runs else "",
        "flag": ", trust_remote_code=True" if code_runs else "",
    }
    return CARD.read_text("utf-8").format(**{**asdict(config), **texts}).replace(" \n", "\n")


def _tokenizer(model: Pretrained, source: Path | None) -> tuple[tokenizer.Tokenizer | None, str]:
    """Return the tokenizer to write (None if there is none), and a message about the tokenizer.

    Args:
        model: The model to export.
        source: Value of --tokenizer. The default None means the folder tokenizer/ beside dict.txt; if there is no such
            folder and the symbols of a language model are whole words, the tokenizer splits text at spaces.
    Raises:
        CheckpointError: The tokenizer cannot be read, or belongs to another model.
    """
    symbols, dictionary, config = model.vocabulary, model.dictionary, model.config
    place = source or (tokenizer.beside(dictionary) if dictionary else None)
    has_words = symbols is not None and config.causal and marked(symbols) is None
    if str(source) == "none" or (place is None and not (dictionary and has_words)):
        return None, f"note: no tokenizer was written. To add it, give --tokenizer FILE_OR_FOLDER ({tokenizer.FORMS})."
    if symbols is None:
        problem = f"{place}: this tokenizer needs the model's dict.txt"
        raise CheckpointError(f"{problem}. Put the dict.txt into the folder of the checkpoint.")
    if place is not None:
        contents, where = tokenizer.read(place)
        line = f"wrote the tokenizer of {where}"
    else:
        words = {"type": "WordLevel", "vocab": {symbol: i for i, symbol in enumerate(symbols)}, "unk_token": "<unk>"}
        contents, where = {"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": words}, Path("dict.txt")
        line = "wrote a tokenizer that splits text at spaces"
    contents, lacking = tokenizer.fitted(contents, symbols, where, segments=config.has_segments, first=config.beginning)
    return contents, line + (f" without {len(lacking)} pieces that dict.txt lacks" if lacking else "")


def main(argv: Sequence[str]) -> int:
    """Export the model that the command line names. Return 0, or print an error message of one line and return 1."""
    parser = command.parser(
        "export-hf",
        "Export a masked language model or a language model of fairseq to a folder that transformers and "
        "fairseq_posenc.load read.",
        "example:\n  %(prog)s checkpoints/checkpoint_best.pt --output my-model\n",
        "CHECKPOINT",
        "Checkpoint of posenc_roberta or posenc_transformer_lm, or of fairseq's roberta or transformer_lm.",
    )
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="FILE_OR_FOLDER",
        help=f"File or folder of the tokenizer: {tokenizer.FORMS}. Default: the folder tokenizer/ beside dict.txt; "
        "without this folder, a language model of whole words gets a tokenizer that splits text at spaces. With "
        "`none`, no tokenizer is written.",
    )
    return command.run(parser, argv, _export)


def _export(args: Namespace) -> list[str]:
    """Export a model, and return the lines to print."""
    model = read(args.source, causal=True)
    model.model(args.source)  # raises if weights are missing or left over
    if lost := [name for name in model.unused if not name.startswith("classification_heads.")]:
        problem = f"{args.source}: the weight {lost[0]} cannot be exported"
        raise CheckpointError(f"{problem}. Give the checkpoint of a masked language model.")
    tokens, line = _tokenizer(model, args.tokenizer)
    export(model, args.output, tokens)
    lines = [f"Wrote {len(model.tensors)} weights with the encoding {model.config.pos_enc} to {args.output}."]
    lines += [f"dropped: {name}: the model has no such weight" for name in model.unused]
    lines += [line, *(f"note: {note}." for note in model.notes)]
    if model.vocabulary is None:
        reason = "there is no dict.txt beside the checkpoint or in its data folder"
        lines.append(f"note: the folder has no vocabulary, because {reason}")
    return lines
