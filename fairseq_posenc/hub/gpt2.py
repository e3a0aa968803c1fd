"""Read GPT-2 from a folder in the format of Hugging Face, with its own ids or with ids in fairseq's order.

Legend: d width, V vocabulary size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..compat.checkpoints import CheckpointError
from .causal_lm import CausalConfig
from .folder import read_config, read_vocabulary, read_weights
from .language_model import LanguageModel
from .pretrained import ACTIVATIONS, SPECIALS

GPT2 = "gpt2"
#: What other decoders have and the models of this package lack, by model_type.
OTHER_DECODERS = {
    "llama": "RMSNorm and gated feed-forward layers (SwiGLU)",
    "mistral": "RMSNorm, gated feed-forward layers (SwiGLU), keys that several heads share, and a sliding window",
    "mixtral": "RMSNorm, keys that several heads share, and feed-forward layers with experts",
    "qwen2": "RMSNorm, gated feed-forward layers (SwiGLU), and keys that several heads share",
    "qwen3": "RMSNorm, gated feed-forward layers (SwiGLU), and keys that several heads share",
    "gemma": "RMSNorm and gated feed-forward layers (GeGLU)",
    "gemma2": "RMSNorm, gated feed-forward layers (GeGLU), and a cap on the logits",
    "phi": "attention and feed-forward layers side by side",
    "phi3": "RMSNorm and gated feed-forward layers (SwiGLU)",
    "gpt_neox": "attention and feed-forward layers side by side",
    "gptj": "attention and feed-forward layers side by side",
    "falcon": "attention and feed-forward layers side by side, and keys that several heads share",
    "gpt_neo": "layers whose attention is limited to a window, and attention logits without a scale",
    "gpt_bigcode": "keys that all heads share",
    "opt": "positions that begin at row 2 of their table and, in one model size, projections of the embeddings",
    "bloom": "one projection for query, key and value, whose rows are ordered by head",
    "mpt": "layer norms without biases",
    "mamba": "a state-space layer instead of attention",
}
#: Settings of GPT-2 that change what it computes, and their only supported values.
FIXED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "layer_norm_epsilon": 1e-5,
}
MODULES = {
    "ln_1": "self_attn_layer_norm",
    "ln_2": "final_layer_norm",
    "attn.c_proj": "self_attn.out_proj",
    "mlp.c_fc": "fc1",
    "mlp.c_proj": "fc2",
}
#: Weights with one row for each id.
BY_ID = ("embed_tokens.weight", "lm_head.weight")
#: Logit of the symbols that GPT-2 does not have, where its last layer norm allows it; see `_unlikely_row`.
UNLIKELY = -1000.0
_LEAST = 1e-2


def is_decoder(folder: Path) -> bool:
    """Return whether a folder holds a GPT-2.

    Raises:
        CheckpointError: The folder holds another decoder, which cannot be imported.
    """
    if not (folder / "config.json").is_file():
        return False
    kind = read_config(folder).get("model_type")
    if kind in OTHER_DECODERS:
        problem = f"{folder}/config.json: model_type is {kind}, which has {OTHER_DECODERS[kind]}"
        raise CheckpointError(
            f"{problem}. This package does not support such models. Give a GPT-2, a BERT or a RoBERTa."
        )
    return kind == GPT2


def read(folder: Path) -> LanguageModel:
    """Read a GPT-2 with its own ids, which are followed by the ids of <s>, <pad> and <unk>.

    GPT-2 lacks <s>, <pad> and <unk>, so their vectors are new (see `_unlikely_row`). GPT-2's end of text serves as
    </s>.

    Raises:
        CheckpointError: The model has settings that the models of this package lack, or files are not complete.
    """
    settings, where = read_config(folder), f"{folder}/config.json"
    for name, value in FIXED.items():
        if settings.get(name, value) != value:
            problem = f"{where}: {name} is {settings[name]}, but only {value} is supported"
            raise CheckpointError(f"{problem}. Give another GPT-2.")
    weights = _named(read_weights(folder))
    if missing := [name for name in ("wte.weight", "wpe.weight", "ln_f.weight") if name not in weights]:
        raise CheckpointError(
            f"{folder} has no weight {missing[0]}, so it is not a complete GPT-2. Download the model again."
        )
    tensors = _tensors(weights)
    output = weights.get("lm_head.weight")
    if output is not None and not output.equal(weights["wte.weight"]):
        tensors["lm_head.weight"] = output
    config = _config(settings, where, tensors)
    vocabulary = read_vocabulary(folder)
    end = settings.get("eos_token_id", config.vocabulary - 1)
    if not isinstance(end, int) or not 0 <= end < config.vocabulary:
        raise CheckpointError(f"{where}: eos_token_id must be the id of the end of text, not {end}. Correct it.")
    return _extended(LanguageModel(config, tensors, vocabulary), end)


def _named(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights without the prefix that some files have, and without the masks that old files have."""
    named = {name.removeprefix("transformer."): tensor.float() for name, tensor in weights.items()}
    return {name: tensor for name, tensor in named.items() if not re.search(r"\.attn\.(masked_)?bias$", name)}


def _tensors(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights by their names in `CausalLM`. GPT-2 stores the matrices of its layers transposed."""
    tensors = {"embed_tokens.weight": weights["wte.weight"], "decoder.pos.learned.weight": weights["wpe.weight"]}
    for name, tensor in weights.items():
        if match := re.fullmatch(r"h\.(\d+)\.(.+)\.(weight|bias)", name):
            layer, module, end = match.groups()
            value = tensor.T if tensor.dim() == 2 else tensor
            if module == "attn.c_attn":
                for part, piece in zip("qkv", value.chunk(3), strict=True):
                    tensors[f"decoder.layers.{layer}.self_attn.{part}_proj.{end}"] = piece
            else:
                tensors[f"decoder.layers.{layer}.{MODULES.get(module, module)}.{end}"] = value
    return tensors | {f"decoder.layer_norm.{end}": weights[f"ln_f.{end}"] for end in ("weight", "bias")}


def _config(settings: Mapping[str, Any], where: str, tensors: Mapping[str, Tensor]) -> CausalConfig:
    activation = settings.get("activation_function", "gelu_new")
    if activation not in ACTIVATIONS:
        problem = f"{where}: activation_function {activation!r} is not supported"
        raise CheckpointError(f"{problem}. Give a model with {' or '.join(ACTIVATIONS)}.")
    if missing := [name for name in ("n_layer", "n_head") if not isinstance(settings.get(name), int)]:
        raise CheckpointError(f"{where}: {missing[0]} must be a number. Download the file again.")
    size, dim = tensors["embed_tokens.weight"].shape
    return CausalConfig(
        layers=settings["n_layer"],
        dim=dim,
        ffn=settings.get("n_inner") or 4 * dim,
        heads=settings["n_head"],
        max_length=len(tensors["decoder.pos.learned.weight"]),
        vocabulary=size,
        pos_enc="learned",
        activation=ACTIVATIONS[activation],
        normalize_before=True,
        tied="lm_head.weight" not in tensors,
        dropout=settings.get("resid_pdrop", 0.1),
        attention_dropout=settings.get("attn_pdrop", 0.1),
    )


def _extended(model: LanguageModel, end: int) -> LanguageModel:
    """Return the model with <s>, <pad> and <unk> after its own pieces. `end` is the id of the end of text."""
    size, tensors = model.config.vocabulary, dict(model.tensors)
    row, note = _unlikely_row(tensors["decoder.layer_norm.weight"], tensors["decoder.layer_norm.bias"])
    for name in BY_ID:
        if name in tensors:
            new = row if name == "lm_head.weight" or model.config.tied else torch.zeros_like(row)
            tensors[name] = torch.cat([tensors[name], new.expand(3, -1)])
    config = replace(model.config, vocabulary=size + 3, bos=size, pad=size + 1, unk=size + 2, eos=end, first=end)
    return replace(model, config=config, tensors=tensors, notes=(note,))


def reordered(model: LanguageModel) -> LanguageModel:
    """Return a model from `read`, with ids in fairseq's order: first the special symbols, then all other pieces."""
    config, tensors = model.config, dict(model.tensors)
    others = [i for i in range(config.vocabulary - 3) if i != config.eos]
    order = [config.bos, config.pad, config.eos, config.unk, *others]
    for name in BY_ID:
        if name in tensors:
            tensors[name] = tensors[name][order]
    pieces = None if model.vocabulary is None else _pieces(model.vocabulary, others)
    config = replace(config, bos=0, pad=1, eos=2, unk=3, first=2)
    return replace(model, config=config, tensors=tensors, vocabulary=pieces)


def _pieces(listed: list[str], others: list[int]) -> list[str]:
    """Return the symbols by id; a missing or repeated piece gets a made-up name that no text contains."""
    symbols, known = list(SPECIALS), set(SPECIALS)
    for i in others:
        piece = listed[i] if i < len(listed) else ""
        symbols.append(f"madeupword{i}" if not piece or piece in known else piece)
        known.add(piece)
    return symbols


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
