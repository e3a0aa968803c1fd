"""Rename weights between Hugging Face, fairseq and the plain model (`LanguageModel`).

The tables map names of modules; `{}` stands for the number of a layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

#: Names for segments and distances, which the plain model has elsewhere or not at all.
TYPES, DISTANCES = "types", "distances"
LEARNED, HEAD = "pos.learned.weight", "lm_head.weight"
#: Weights with one row for each id.
BY_ID = ("embed_tokens.weight", HEAD, "lm_head.bias")
#: Modules of Hugging Face's RoBERTa, after the prefix of its body.
_ROBERTA = {
    "embeddings.word_embeddings": "embed_tokens",
    "embeddings.LayerNorm": "encoder.layernorm_embedding",
    "encoder.layer.{}.attention.self.query": "encoder.layers.{}.self_attn.q_proj",
    "encoder.layer.{}.attention.self.key": "encoder.layers.{}.self_attn.k_proj",
    "encoder.layer.{}.attention.self.value": "encoder.layers.{}.self_attn.v_proj",
    "encoder.layer.{}.attention.output.dense": "encoder.layers.{}.self_attn.out_proj",
    "encoder.layer.{}.attention.output.LayerNorm": "encoder.layers.{}.self_attn_layer_norm",
    "encoder.layer.{}.intermediate.dense": "encoder.layers.{}.fc1",
    "encoder.layer.{}.output.dense": "encoder.layers.{}.fc2",
    "encoder.layer.{}.output.LayerNorm": "encoder.layers.{}.final_layer_norm",
    "embeddings.position_embeddings": "encoder.pos.learned",
    "embeddings.token_type_embeddings": TYPES,
    "encoder.layer.{}.attention.self.distance_embedding": DISTANCES + ".{}",
    "lm_head": "lm_head",
    "lm_head.dense": "lm_head.dense",
    "lm_head.layer_norm": "lm_head.layer_norm",
}
#: Modules of Hugging Face's BERT, RoBERTa and GPT-2.
_MODULES = {
    **_ROBERTA,
    "lm_head.decoder": "lm_head",
    "cls.predictions.transform.dense": "lm_head.dense",
    "cls.predictions.transform.LayerNorm": "lm_head.layer_norm",
    "cls.predictions.decoder": "lm_head",
    "cls.predictions": "lm_head",
    "wte": "embed_tokens",
    "wpe": "decoder.pos.learned",
    "ln_f": "decoder.layer_norm",
    "h.{}.ln_1": "decoder.layers.{}.self_attn_layer_norm",
    "h.{}.ln_2": "decoder.layers.{}.final_layer_norm",
    "h.{}.attn.c_attn": "decoder.layers.{}.self_attn.in_proj",
    "h.{}.attn.c_proj": "decoder.layers.{}.self_attn.out_proj",
    "h.{}.mlp.c_fc": "decoder.layers.{}.fc1",
    "h.{}.mlp.c_proj": "decoder.layers.{}.fc2",
}
_BODY = re.compile(r"^(bert|roberta|transformer)\.")
#: TensorFlow's names, which old files contain.
_OLD_ENDS = {"gamma": "weight", "beta": "bias"}
_STACK = "encoder.sentence_encoder."
#: Prefixes of the names of fairseq's RoBERTa, and ours. The first that matches counts.
_FAIRSEQ = {
    "encoder.lm_head.": "lm_head.",
    f"{_STACK}embed_tokens.": "embed_tokens.",
    f"{_STACK}embed_positions.": "encoder.pos.learned.",
    _STACK: "encoder.",
}
#: Names of a language model in fairseq that differ from ours.
_OF_DECODERS = {"embed_tokens.weight": "decoder.embed_tokens.weight", HEAD: "decoder.output_projection.weight"}


def from_hf(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """Return the weights of a BERT, RoBERTa or GPT-2 by our names, and the names of those that have no place here.

    Args:
        tensors: Weights of a model with or without its head.
    """
    renamed, unused = dict[str, Tensor](), list[str]()
    for name, tensor in tensors.items():
        module, _, end = _BODY.sub("", name).rpartition(".")
        ours, end = _translated(module, _MODULES), _OLD_ENDS.get(end, end)
        if ours is None or end not in ("weight", "bias"):
            unused.append(name)
        else:  # GPT-2 stores the matrices of its layers transposed
            transposed = ours.startswith("decoder.layers.") and tensor.dim() == 2
            renamed[f"{ours}.{end}"] = (tensor.T if transposed else tensor).float()
    return _in_three(renamed), unused


def to_roberta(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights, keyed by their names in Hugging Face's RoBERTa."""
    theirs = {ours: name if name.startswith("lm_head") else f"roberta.{name}" for name, ours in _ROBERTA.items()}
    named = {}
    for name, tensor in tensors.items():
        module, _, end = name.rpartition(".")
        named["lm_head.decoder.weight" if name == HEAD else f"{_translated(module, theirs)}.{end}"] = tensor
    return named


def _translated(module: str, table: Mapping[str, str]) -> str | None:
    """Return the name of a module in a table whose names have `{}` for the number of the layer; None if it has none."""
    layer = re.search(r"(?<=\.)\d+(?=\.|$)", module)
    template = module if layer is None else f"{module[: layer.start()]}{{}}{module[layer.end() :]}"
    ours = table.get(template)
    return None if ours is None else ours.format(layer and layer[0])


def _in_three(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Split the matrices and biases that hold query, key and value one after the other."""
    parts: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if joined := re.fullmatch(r"(.+\.)in_proj[._](weight|bias)", name):
            pieces = zip("qkv", tensor.chunk(3), strict=False)
            parts |= {f"{joined[1]}{x}_proj.{joined[2]}": piece.clone() for x, piece in pieces}
        else:
            parts[name] = tensor
    return parts


def from_fairseq(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """Return the weights of a RoBERTa of this plugin or of fairseq by our names, and the names that are not used.

    Old models of fairseq call the encoder `decoder` and have one matrix for q, k, v.
    """
    renamed, unused = dict[str, Tensor](), list[str]()
    for name, tensor in _in_three(tensors).items():
        if name.endswith(("version", "_float_tensor")):
            continue
        modern = re.sub(r"^decoder\.", "encoder.", name).replace(".emb_layer_norm.", ".layernorm_embedding.")
        prefix = next((prefix for prefix in _FAIRSEQ if modern.startswith(prefix)), None)
        if prefix is None:
            unused.append(modern)
        else:  # fairseq counts positions from pad + 1
            rows = tensor[2:] if ".embed_positions." in prefix else tensor
            renamed[_FAIRSEQ[prefix] + modern.removeprefix(prefix)] = rows
    return renamed, unused


def to_fairseq(tensors: Mapping[str, Tensor], *, causal: bool = False) -> dict[str, Tensor]:
    """Return the weights by their names in a `posenc_roberta` or, if `causal`, in a `posenc_transformer_lm`."""
    if causal:
        return {_OF_DECODERS.get(name, name): tensor for name, tensor in tensors.items()}
    return {
        ("encoder." if name.startswith("lm_head.") else _STACK) + name.removeprefix("encoder."): tensor
        for name, tensor in tensors.items()
    }
