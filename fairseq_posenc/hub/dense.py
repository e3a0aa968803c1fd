"""Convert the embedding and the output of fairseq's language models to plain matrices.

The matrices include all projections: those of the input, of the output, and of the frequency bands of adaptive inputs
and softmaxes.

Legend: d width, V vocabulary size.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

_EMBEDDING, _SOFTMAX = "decoder.embed_tokens.", "decoder.adaptive_softmax."


def decoder(weights: Mapping[str, Tensor], *, transposed: bool) -> dict[str, Tensor]:
    """Return the weights of a language model by their names in `LanguageModel`, with the output matrix even if tied.

    Args:
        weights: Weights by their names in fairseq.
        transposed: Whether the projections of the bands of the output are those of the adaptive input
            (--tie-adaptive-proj), which are stored transposed.
    """
    weights = {name: tensor.float() for name, tensor in weights.items() if tensor.is_floating_point()}
    tensors = {name: tensor for name, tensor in weights.items() if name.startswith(("decoder.layer", "decoder.pos."))}
    tensors["embed_tokens.weight"] = _embedding(weights)
    parts = _output(weights, transposed=transposed)
    tensors |= {f"lm_head.{name}": tensor for name, tensor in parts.items() if tensor is not None}
    if (table := weights.get("decoder.embed_positions.weight")) is not None:
        tensors["decoder.pos.learned.weight"] = table[2:]  # fairseq counts positions from pad + 1
    return tensors


def _embedding(weights: Mapping[str, Tensor]) -> Tensor:
    """Return the input vector of each word, [V, d], before fairseq multiplies it by sqrt(d)."""
    if f"{_EMBEDDING}weight" in weights:
        vectors = weights[f"{_EMBEDDING}weight"]
    else:
        bands = sum(name.startswith(f"{_EMBEDDING}embeddings.") for name in weights) // 2
        parts = [[weights[f"{_EMBEDDING}embeddings.{band}.{i}.weight"] for i in (0, 1)] for band in range(bands)]
        vectors = torch.cat([words @ projection.T for words, projection in parts])
    projection = weights.get("decoder.project_in_dim.weight")
    return vectors if projection is None else vectors @ projection.T


def _output(weights: Mapping[str, Tensor], *, transposed: bool) -> dict[str, Tensor | None]:
    """Return the output matrix [V, d], and biases and vectors of bands if the softmax is adaptive."""
    adaptive = {name.removeprefix(_SOFTMAX): value for name, value in weights.items() if name.startswith(_SOFTMAX)}
    if not adaptive:
        parts = {"weight": weights.get("decoder.output_projection.weight", weights.get(f"{_EMBEDDING}weight"))}
    elif "band_weight" in adaptive:
        parts = {name: adaptive[name] for name in ("weight", "bias", "band_weight", "band_bias")}
    else:
        parts = _dense(adaptive, transposed=transposed)
    projection = weights.get("decoder.project_out_dim.weight")
    if projection is not None:
        parts |= {name: value @ projection for name, value in parts.items() if value is not None and value.dim() == 2}
    return parts


def _dense(adaptive: Mapping[str, Tensor], *, transposed: bool) -> dict[str, Tensor | None]:
    """Return the weights of fairseq's AdaptiveSoftmax as an output matrix and vectors of its bands."""
    bands = sum(name.startswith("tail.") and name.endswith(".2.weight") for name in adaptive)
    tails = []
    for band in range(bands):
        projection = adaptive[f"tail.{band}.0.weight"]
        tails.append(adaptive[f"tail.{band}.2.weight"] @ (projection.T if transposed else projection))
    if "head.weight" in adaptive:
        words, of_bands = adaptive["head.weight"].split([len(adaptive["head.weight"]) - bands, bands])
    else:
        of_bands = adaptive["head.class_proj.weight"]
        words = adaptive.get("head.word_proj.weight")
        if words is None:
            words = adaptive["head.word_proj.1.weight"] @ adaptive["head.word_proj.0.weight"]
    matrix = torch.cat([words, *tails])
    zeros = {"bias": matrix.new_zeros(len(matrix)), "band_bias": matrix.new_zeros(bands)}
    return {"weight": matrix, "band_weight": of_bands.clone(), **zeros}
