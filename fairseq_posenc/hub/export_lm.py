"""Write a language model in the format of Hugging Face, with the code that runs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..data.words import marked
from . import sums, tokenizer
from .causal_lm import CausalConfig
from .code import ENTRY, code
from .folder import SAFE, new_folder
from .language_model import LanguageModel
from .pretrained import OWN, OWN_LM

CARD = """---
library_name: transformers
pipeline_tag: text-generation
---
# A language model with position encoding `{pos_enc}`

The model has {layers} layers of width {dim}, {heads} heads and a vocabulary of {vocabulary:,} tokens. The model was
trained on sequences of up to {max_length} tokens. {options}{notes}
In Python:

    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained("DIR", trust_remote_code=True)  # runs the code in this folder

    import fairseq_posenc
    model = fairseq_posenc.load("DIR")  # needs torch and safetensors, but not fairseq

Each text begins with `{first}`, and each line ends with `</s>`. {tokenizer}
"""


def export(model: LanguageModel, output: Path, tokens: tokenizer.Tokenizer | None = None) -> None:
    """Write the weights, the code, the settings, a model card, SHA256SUMS and, if there is one, the tokenizer.

    Raises:
        CheckpointError: The folder `output` is not empty.
    """
    from safetensors.torch import save_file

    config = model.config
    with new_folder(output) as folder:
        weights = {f"model.{name}": tensor.contiguous().clone() for name, tensor in model.tensors.items()}
        save_file(weights, folder / SAFE, metadata={"format": "pt"})
        files = {"config.json": _json(settings(config)), "generation_config.json": _json(_generation(config))}
        for name, text in {**files, "README.md": _card(model, tokens is not None), **code(config.pos_enc)}.items():
            (folder / name).write_text(text, "utf-8")
        if model.vocabulary is not None:
            (folder / "vocab.txt").write_text("".join(f"{symbol}\n" for symbol in model.vocabulary), "utf-8")
        if tokens is not None:
            tokenizer.write(tokens, folder, max_length=config.max_length, first=first_of(model))
        sums.write(folder)


def settings(config: CausalConfig) -> dict[str, Any]:
    """Return the contents of config.json; the model is built from the settings under `fairseq_posenc`."""
    return {
        "model_type": OWN_LM,
        "architectures": ["PosEncForCausalLM"],
        "auto_map": {
            "AutoConfig": f"{ENTRY}.PosEncCausalConfig",
            "AutoModelForCausalLM": f"{ENTRY}.PosEncForCausalLM",
        },
        "vocab_size": config.vocabulary,
        "hidden_size": config.dim,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.ffn,
        "hidden_act": config.activation,
        "max_position_embeddings": config.max_length,
        "bos_token_id": config.first,
        "pad_token_id": config.pad,
        "eos_token_id": config.eos,
        "tie_word_embeddings": False,  # a tied model has no second matrix that transformers would have to tie
        "torch_dtype": "float32",
        OWN: asdict(config),
    }


def _generation(config: CausalConfig) -> dict[str, Any]:
    """Return the contents of generation_config.json, which forbids padding and <s> in generated text."""
    return {
        "bos_token_id": config.first,
        "eos_token_id": config.eos,
        "pad_token_id": config.pad,
        "suppress_tokens": sorted({config.pad, config.bos} - {config.eos}),
    }


def tokens_of(model: LanguageModel, source: Path | None) -> tuple[tokenizer.Tokenizer | None, str]:
    """Return the tokenizer to write (None if there is none), and a message about the tokenizer.

    Args:
        model: The model to export.
        source: Value of --tokenizer. The default None means the folder tokenizer/ beside dict.txt; if there is no such
            folder and the symbols of dict.txt are whole words, the tokenizer splits text at spaces.
    Raises:
        CheckpointError: The tokenizer cannot be read, or belongs to another model.
    """
    symbols, none = model.vocabulary, "no tokenizer was written"
    if str(source) == "none":
        return None, none
    if symbols is None or model.dictionary is None:
        return None, f"{none}, because there is no dict.txt beside the checkpoint or in its data folder"
    place = source or tokenizer.beside(model.dictionary)
    if place is None:
        words = _splitting_at_spaces(symbols)
        if words is None:
            return None, f"{none}. To add it, give --tokenizer FILE_OR_FOLDER ({tokenizer.FORMS})."
        contents, _ = tokenizer.fitted(words, symbols, model.dictionary, first=first_of(model))
        return contents, "wrote a tokenizer that splits text at spaces"
    contents, where = tokenizer.read(place)
    contents, lacking = tokenizer.fitted(contents, symbols, where, first=first_of(model))
    line = f"wrote the tokenizer of {where}"
    return contents, line + (f" without {len(lacking)} pieces that dict.txt lacks" if lacking else "")


def _splitting_at_spaces(symbols: Sequence[str]) -> tokenizer.Tokenizer | None:
    """Return a tokenizer that splits text at spaces, or None if the dictionary's symbols are parts of words."""
    if marked(symbols) is not None:
        return None
    vocabulary = {symbol: i for i, symbol in enumerate(symbols)}
    return {
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }


def first_of(model: LanguageModel) -> str:
    """Return the symbol that begins each text of the model, <s> or </s>."""
    return "<s>" if model.config.first == model.config.bos else "</s>"


def _json(contents: dict[str, Any]) -> str:
    return json.dumps(contents, indent=2) + "\n"


def _card(model: LanguageModel, tokens: bool) -> str:
    config = model.config
    options = f"The options of the encoding are `{config.pos_enc_args}`.\n" if config.pos_enc_args else "\n"
    notes = "".join(f"{note[0].upper()}{note[1:]}.\n" for note in model.notes)
    known = "`transformers.AutoTokenizer` loads the tokenizer." if tokens else ""
    texts = {"options": options, "notes": notes, "first": first_of(model), "tokenizer": known}
    return CARD.format(**{**asdict(config), **texts}).replace(" \n", "\n")
