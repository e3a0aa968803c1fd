"""Provide stacks with random weights for the tests of the analyses."""

from __future__ import annotations

import torch
from laws.cases import directions

from fairseq_posenc.analysis.trained import Stack
from fairseq_posenc.attention import SelfAttention
from fairseq_posenc.encodings import StackShape, build


def stack(
    name: str,
    options: str = "",
    *,
    layers: int = 2,
    heads: int = 2,
    dim: int = 8,
    length: int = 12,
    has_cls: bool = False,
) -> Stack:
    """Return an encoder, or a decoder if the encoding works in decoders only.

    All parameters are random, also those that start at zero.
    """
    torch.manual_seed(3)
    shape = StackShape(layers, heads, dim, length, causal=False not in directions(name), has_cls=has_cls)
    encoding = build(name, options, shape)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.normal_(0, 0.5)
    attention = tuple(SelfAttention(dim, heads) for _ in range(layers))
    for number, layer in enumerate(attention, start=1):
        layer.use(encoding, number)
    return Stack(name, encoding, attention)
