"""Read BERT, RoBERTa and GPT-2 of Hugging Face, and exported models, from folders with config.json.

Legend: d width, V vocabulary size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..compat.checkpoints import CheckpointError
from ..data.words import MASK
from . import names
from .folder import read_config, read_vocabulary, read_weights
from .ids import Pretrained
from .model import ModelConfig
from .names import BY_ID, DISTANCES, HEAD, LEARNED, TYPES

#: Key of our part in an exported config.json, and value of its model_type.
OWN = "fairseq_posenc"
#: Value of model_type of the language models that earlier versions exported.
_OWN_LM = "fairseq_posenc_lm"
#: Values of model_type that can be read.
_KINDS = ("bert", "roberta", "gpt2")
#: Settings by their names in `ModelConfig`: the name in BERT and RoBERTa, and the name in GPT-2.
SETTINGS = {
    "layers": ("num_hidden_layers", "n_layer"),
    "dim": ("hidden_size", "n_embd"),
    "ffn": ("intermediate_size", "n_inner"),
    "heads": ("num_attention_heads", "n_head"),
    "max_length": ("max_position_embeddings", "n_positions"),
    "vocabulary": ("vocab_size", "vocab_size"),
    "activation": ("hidden_act", "activation_function"),
    "layer_norm_eps": ("layer_norm_eps", "layer_norm_epsilon"),
    "dropout": ("hidden_dropout_prob", "resid_pdrop"),
    "attention_dropout": ("attention_probs_dropout_prob", "attn_pdrop"),
}
#: Values of the settings that config.json may omit; `n_inner` is then four times `n_embd`. All others are sizes.
_DEFAULTS = {
    "hidden_act": "gelu",
    "activation_function": "gelu_new",
    "layer_norm_eps": 1e-12,
    "layer_norm_epsilon": 1e-5,
    **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop", "attn_pdrop"), 0.1),
    "n_inner": None,
}
_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_accurate", "gelu_pytorch_tanh": "gelu_accurate", "relu": "relu"}
#: Values of Hugging Face's position_embedding_type, and the encodings that they are here.
_ENCODINGS = {"absolute": "learned", "relative_key": "shaw", "relative_key_query": "m4"}
#: Settings of GPT-2 that change what it computes, and their only supported values.
_FIXED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "layer_norm_epsilon": 1e-5,
}
#: Names and usual ids of special symbols, by their names in `ModelConfig`.
_SPECIALS = {
    "bert": ({"bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]", "mask": "[MASK]"}, (101, 102, 100, 103)),
    "roberta": ({"bos": "<s>", "eos": "</s>", "unk": "<unk>", "mask": MASK}, (0, 2, 3, -1)),
}
#: Logit of the symbols that GPT-2 does not have, where its last layer norm allows it; see `_unlikely_row`.
UNLIKELY = -1000.0
_LEAST = 1e-2


def of_folder(folder: Path) -> Pretrained:
    """Read a pretrained model from a folder with config.json.

    A model of Hugging Face keeps its ids. GPT-2 lacks <s>, <pad> and <unk>, so the ids of these symbols follow its own;
    its end of text serves as </s>.

    Raises:
        CheckpointError: The model is of another kind, it has settings that models of this package lack, or files are
            not complete.
    """
    try:
        return _read(folder, read_config(folder))
    except CheckpointError:
        raise
    except (RuntimeError, TypeError, IndexError) as error:  # shapes and types of damaged or malicious files
        problem = f"{folder}: config.json and the weights do not fit each other ({' '.join(str(error).split())})"
        raise CheckpointError(f"{problem}. Download the model again.") from None


def _read(folder: Path, settings: Mapping[str, Any]) -> Pretrained:
    vocabulary = read_vocabulary(folder)
    config = config_of(folder, settings, vocabulary)
    tensors, unused = read_weights(folder), list[str]()
    if settings.get("model_type") in _KINDS:
        tensors, unused = names.from_hf(tensors)
    else:
        tensors = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    embedding, output = tensors.get("embed_tokens.weight"), tensors.get(HEAD)
    if embedding is None or embedding.dim() != 2:
        raise CheckpointError(f"{folder} has no embedding weights. Give a masked language model or a GPT-2.")
    if len(embedding) != config.vocabulary:
        sizes = f"vocab_size is {config.vocabulary}, but the embedding has {len(embedding)} rows"
        raise CheckpointError(f"{folder}/config.json: {sizes}. Use settings and weights of the same model.")
    if OWN not in settings:
        config = replace(config, tied=output is None or output.equal(embedding))
    if config.tied:
        tensors.pop(HEAD, None)
    if settings.get("model_type") == "gpt2":
        unused = [name for name in unused if not name.endswith((".attn.bias", ".attn.masked_bias"))]
        return _with_symbols(Pretrained(config, tensors, vocabulary, unused), folder)
    return _with_positions(Pretrained(config, tensors, vocabulary, unused))


def config_of(folder: Path, settings: Mapping[str, Any], vocabulary: list[str] | None) -> ModelConfig:
    """Return the settings of a model from the contents of config.json.

    Raises:
        CheckpointError: The model is of another kind, or has settings that models of this package lack.
    """
    where, kind = f"{folder}/config.json", settings.get("model_type")
    if OWN in settings:
        try:
            return ModelConfig(**{"causal": kind == _OWN_LM, **settings[OWN]})
        except TypeError as error:
            problem = f"{where}: {OWN} does not hold the settings that this version knows ({error})"
            raise CheckpointError(f"{problem}. Export the model again, or install a newer fairseq_posenc.") from None
    if kind not in _KINDS:
        problem = f"model_type is {kind}, but only {', '.join(_KINDS)} can be read"
        raise CheckpointError(f"{where}: {problem}. Give a BERT, a RoBERTa or a GPT-2.")
    return _gpt2(where, settings) if kind == "gpt2" else _bert(where, settings, vocabulary)


def _common(where: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that have a name in Hugging Face's configuration, by their names in `ModelConfig`."""
    kind = settings["model_type"]
    table = {ours: theirs[kind == "gpt2"] for ours, theirs in SETTINGS.items()}
    sizes = [name for name in table.values() if name not in _DEFAULTS]
    if missing := [name for name in sizes if type(settings.get(name)) is not int]:
        raise CheckpointError(f"{where}: {missing[0]} must be a number. Download the file again.")
    values = {ours: settings.get(theirs, _DEFAULTS.get(theirs)) for ours, theirs in table.items()}
    known = {"gelu": "gelu"} if kind == "roberta" else _ACTIVATIONS
    activation = str(values["activation"])
    if activation not in known:
        problem = f"{where}: {table['activation']} {activation!r} is not supported"
        raise CheckpointError(f"{problem}. Give a model with {' or '.join(known)}.")
    return values | {"activation": known[activation]}


def _bert(where: str, settings: Mapping[str, Any], vocabulary: list[str] | None) -> ModelConfig:
    """Return the settings of a BERT or RoBERTa. Its segments are `segments-input`, unless there is only one."""
    kind, positions = settings["model_type"], settings.get("position_embedding_type", "absolute")
    if positions not in _ENCODINGS:
        problem = f"{where}: position_embedding_type {positions!r} is not supported"
        raise CheckpointError(f"{problem}. Give a model with {' or '.join(_ENCODINGS)}.")
    if settings.get("is_decoder"):
        raise CheckpointError(f"{where}: is_decoder is set, but only encoders can be read. Give a BERT or a RoBERTa.")
    values = _common(where, settings)
    pad, types = settings.get("pad_token_id", 1 if kind == "roberta" else 0), settings.get("type_vocab_size", 2)
    if kind == "roberta" and positions == "absolute":
        values["max_length"] -= pad + 1  # RoBERTa counts positions from pad + 1, so that its first rows are never read
    one_segment = types == 0 or (types == 1 and positions == "absolute")
    name = _ENCODINGS[positions] + ("" if one_segment else "+segments-input")
    return ModelConfig(**values, pos_enc=name, pad=pad, **_special_ids(where, kind, values["vocabulary"], vocabulary))


def _special_ids(where: str, kind: str, size: int, vocabulary: list[str] | None) -> dict[str, Any]:
    """Return the special symbols' ids: from the vocabulary if there is one, otherwise those of the published models."""
    words, usual = _SPECIALS[kind]
    if vocabulary is None:
        return {name: number if number >= 0 else size - 1 for name, number in zip(words, usual, strict=True)}
    numbers = {piece: i for i, piece in enumerate(vocabulary)}
    if missing := [word for word in words.values() if word not in numbers]:
        raise CheckpointError(f"{where}: the vocabulary beside it has no {missing[0]}. Use the model's vocabulary.")
    if len(vocabulary) > size:
        sizes = f"vocab_size is {size}, but the vocabulary beside it has {len(vocabulary)} pieces"
        raise CheckpointError(f"{where}: {sizes}. Use the model's vocabulary.")
    return {name: numbers[word] for name, word in words.items()}


def _gpt2(where: str, settings: Mapping[str, Any]) -> ModelConfig:
    for name, value in _FIXED.items():
        if settings.get(name, value) != value:
            problem = f"{where}: {name} is {settings[name]}, but only {value} is supported"
            raise CheckpointError(f"{problem}. Give another GPT-2.")
    values = _common(where, settings)
    values |= {"ffn": values["ffn"] or 4 * values["dim"], "normalize_before": True}
    end = settings.get("eos_token_id", values["vocabulary"] - 1)
    if type(end) is not int or not 0 <= end < values["vocabulary"]:
        raise CheckpointError(f"{where}: eos_token_id must be the id of the end of text, not {end}. Correct it.")
    return ModelConfig(**values, causal=True, layernorm_embedding=False, eos=end, first=end)


def _with_positions(source: Pretrained) -> Pretrained:
    """Return a masked language model with the names and the order that its encoding gives to position weights."""
    config, tensors, unused = source.config, dict(source.tensors), list(source.unused)
    own, table, types = config.pos_enc.partition("+")[0], f"encoder.{LEARNED}", tensors.pop(f"{TYPES}.weight", None)
    if table in tensors:
        tensors[table] = tensors[table][-config.max_length :]
    if own != "learned" and tensors.pop(table, None) is not None:
        unused.append("the absolute table")
    if types is not None and "segments-input" in config.pos_enc:
        # segments-input has two rows at least; a model with one segment never reads the second
        tensors["encoder.pos.segments-input.weight"] = types if len(types) > 1 else types.repeat(2, 1)
    elif types is not None and table in tensors:
        tensors[table] = tensors[table] + types[0]
    distances = [tensors.pop(f"{DISTANCES}.{i}.weight", None) for i in range(config.layers)]
    if all(rows is not None for rows in distances) and own != "learned":  # their rows are in the order of i - j
        stacked = torch.stack([rows for rows in distances if rows is not None]).flip(1)
        tensors[f"encoder.pos.{own}.weight"] = stacked[:, None]
    return replace(source, tensors=tensors, unused=unused)


def _with_symbols(model: Pretrained, folder: Path) -> Pretrained:
    """Return a GPT-2 with <s>, <pad> and <unk> after its own pieces."""
    size, tensors = model.config.vocabulary, dict(model.tensors)
    norm = [tensors.get(f"decoder.layer_norm.{end}") for end in ("weight", "bias")]
    if any(tensor is None or tensor.shape != (model.config.dim,) for tensor in norm):
        raise CheckpointError(f"{folder} has no complete layer norm ln_f. Download the model again.")
    row, note = _unlikely_row(*(tensor for tensor in norm if tensor is not None))
    for name in set(BY_ID) & tensors.keys():
        new = row if name == HEAD or model.config.tied else torch.zeros_like(row)
        tensors[name] = torch.cat([tensors[name], new.expand(3, -1)])
    config = replace(model.config, vocabulary=size + 3, bos=size, pad=size + 1, unk=size + 2)
    return replace(model, config=config, tensors=tensors, notes=(note,))


def _unlikely_row(weight: Tensor, bias: Tensor) -> tuple[Tensor, str]:
    """Return an output vector whose logit is about -1000 for every text, and a note about it.

    The last layer norm returns y = weight * n + bias, where the numbers in the vector n add up to 0. For every text,
    the product of y and the vector c / weight is therefore c times the sum of bias / weight. If the sum of
    bias / weight is close to 0, as in an untrained model, the function returns a vector of zeros.
    """
    direction = 1 / weight.double()
    constant = (direction * bias.double()).sum()
    symbols = "<s>, <pad> and <unk>, which GPT-2 does not have,"
    if not torch.isfinite(direction).all() or constant.abs() < _LEAST:
        note = f"{symbols} have the logit 0, because the biases of the last layer norm are almost 0"
        return torch.zeros_like(weight), note
    return (direction * UNLIKELY / constant).to(weight.dtype), f"{symbols} have the logit {UNLIKELY:g} in every text"
