"""Rename weights between Hugging Face, fairseq and the plain model (`MaskedLM`).

The tables map names of modules; `{}` stands for the number of a layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

#: Modules of Hugging Face's BERT and RoBERTa, after the prefix `bert.` or `roberta.` and their plain names.
BODY = {
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
}
#: Names for positions and segments, which the plain model has elsewhere or not at all.
POSITIONS, TYPES, DISTANCES = "positions", "types", "distances"
POSITIONAL = {
    "embeddings.position_embeddings": POSITIONS,
    "embeddings.token_type_embeddings": TYPES,
    "encoder.layer.{}.attention.self.distance_embedding": DISTANCES + ".{}",
}
HEADS = {
    "bert": {
        "cls.predictions.transform.dense": "lm_head.dense",
        "cls.predictions.transform.LayerNorm": "lm_head.layer_norm",
        "cls.predictions.decoder": "lm_head",
        "cls.predictions": "lm_head",
    },
    "roberta": {
        "lm_head.dense": "lm_head.dense",
        "lm_head.layer_norm": "lm_head.layer_norm",
        "lm_head.decoder": "lm_head",
        "lm_head": "lm_head",
    },
}
#: TensorFlow's names, which old files contain.
OLD_ENDS = {"gamma": "weight", "beta": "bias"}


@dataclass
class Renamed:
    """Hold renamed weights, keyed by their names in the plain model, and the names of unused weights."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)


def from_hf(tensors: Mapping[str, Tensor], kind: str) -> Renamed:
    """Rename the weights of Hugging Face's BERT or RoBERTa (`kind`: bert or roberta), with or without its head."""
    table = {**BODY, **POSITIONAL, **HEADS[kind]}
    patterns = [(_pattern(theirs), ours) for theirs, ours in table.items()]
    renamed = Renamed()
    for name, tensor in tensors.items():
        module, _, end = name.removeprefix(f"{kind}.").rpartition(".")
        end = OLD_ENDS.get(end, end)
        matches = ((pattern.fullmatch(module), ours) for pattern, ours in patterns)
        ours = next((ours.format(*match.groups()) for match, ours in matches if match), None)
        if ours is None or end not in ("weight", "bias"):
            renamed.unused.append(name)
        else:
            renamed.tensors[f"{ours}.{end}"] = tensor
    return renamed


def to_hf(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights, keyed by their names in Hugging Face's RoBERTa. Weights of encodings keep their names."""
    back = {ours: f"roberta.{theirs}" for theirs, ours in BODY.items()}
    back |= {ours: theirs for theirs, ours in HEADS["roberta"].items()}  # the last entry counts, lm_head
    patterns = [(_pattern(ours), theirs) for ours, theirs in back.items()]
    named = {}
    for name, tensor in tensors.items():
        module, _, end = name.rpartition(".")
        matches = ((pattern.fullmatch(module), theirs) for pattern, theirs in patterns)
        theirs = next((theirs.format(*match.groups()) for match, theirs in matches if match), module)
        named["lm_head.decoder.weight" if name == "lm_head.weight" else f"{theirs}.{end}"] = tensor
    return named


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.escape(template).replace(r"\{\}", r"(\d+)"))


_STACK = "encoder.sentence_encoder."
#: Prefixes of fairseq's names, and ours. The first that matches counts.
_FAIRSEQ = {
    "encoder.lm_head.": "lm_head.",
    f"{_STACK}embed_tokens.": "embed_tokens.",
    f"{_STACK}embed_positions.": f"{POSITIONS}.",
    _STACK: "encoder.",
}


def from_fairseq(tensors: Mapping[str, Tensor]) -> Renamed:
    """Rename the weights of a RoBERTa from this plugin or from fairseq, including fairseq's old releases."""
    renamed = Renamed()
    for name, tensor in _modern(tensors).items():
        prefix = next((prefix for prefix in _FAIRSEQ if name.startswith(prefix)), None)
        if name.endswith(("version", "_float_tensor")):
            continue
        if prefix is None:
            renamed.unused.append(name)
        else:
            renamed.tensors[_FAIRSEQ[prefix] + name.removeprefix(prefix)] = tensor
    return renamed


def to_fairseq(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights, keyed by their names in a `posenc_roberta`."""
    return {
        ("encoder." if name.startswith("lm_head.") else _STACK) + name.removeprefix("encoder."): tensor
        for name, tensor in tensors.items()
    }


def _modern(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights, keyed by their names in the current fairseq.

    Old models call the encoder `decoder` and have one matrix for q, k, v.
    """
    renamed = {}
    for name, tensor in tensors.items():
        if name.startswith("decoder."):
            name = "encoder." + name.removeprefix("decoder.")
        name = name.replace(".emb_layer_norm.", ".layernorm_embedding.")
        joined = re.fullmatch(r"(.+\.)in_proj_(weight|bias)", name)
        if joined:
            parts = zip("qkv", tensor.chunk(3), strict=True)
            renamed.update({f"{joined[1]}{x}_proj.{joined[2]}": part.clone() for x, part in parts})
        else:
            renamed[name] = tensor
    return renamed
