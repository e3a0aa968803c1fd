"""Compute the gradients of token embeddings and of positions, for random inputs and weights.

Source: Chen et al. 2021 (DIET), Theorem 2. If position vectors P are added to the token embeddings X at the input, the
gradients of the loss with respect to X and P are equal. Positions that are added to the logits of each head have
gradients of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ..attention import SelfAttention
from ..encodings import StackShape, build
from .style import MARKERS, Row, panels, styled, whole_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Encodings of absolute positions, and where they act.
PLACES = {"learned": "added to the tokens", "diet-abs": "added to the logits of each head"}


class Gradients(NamedTuple):
    """Hold the gradients of the loss with respect to the token and to the parameters of each position.

    Args:
        title: Name of the encoding, and where it acts.
        tokens: Norm of the gradient of each token embedding, [n].
        positions: Norm of the gradient of each position's parameters, [n].
        difference: Largest difference between the values of the two gradients; None if their shapes differ.
    """

    title: str
    tokens: Tensor
    positions: Tensor
    difference: float | None


def random(columns: int = 32, dim: int = 64, heads: int = 4, layers: int = 2, seed: int = 1) -> list[Gradients]:
    """Return the gradients in stacks of attention layers with random weights, whose loss is a squared error.

    Args:
        columns: Number n of tokens.
        dim: Width of the model.
    """
    with torch.random.fork_rng(devices=[]):
        return [_of(name, columns, StackShape(layers, heads, dim, columns), seed) for name in PLACES]


def _of(name: str, columns: int, shape: StackShape, seed: int) -> Gradients:
    torch.manual_seed(seed)
    tokens, target = torch.randn(1, columns, shape.dim, requires_grad=True), torch.randn(1, columns, shape.dim)
    attention = [SelfAttention(shape.dim, shape.heads) for _ in range(shape.layers)]
    encoding = build(name, None, shape)
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter)
    for number, layer in enumerate(attention, start=1):
        layer.use(encoding, number)
    where = encoding.positions(torch.ones(1, columns, dtype=torch.long), pad=0)
    states = encoding.embed(tokens, where)
    for layer, tensors in zip(attention, encoding.per_layer(where), strict=True):
        states, _ = layer(states, where, tensors)
    (states - target).square().sum().backward()
    assert tokens.grad is not None
    own = [parameter.grad for parameter in encoding.parameters() if parameter.grad is not None]
    rows = torch.cat([each.movedim(-2, 0).flatten(1) for each in own], 1)  # [..., n, d] -> [n, all others]
    difference = float((rows - tokens.grad[0]).abs().max()) if rows.shape == tokens.grad[0].shape else None
    return Gradients(f"{name}, {PLACES[name]}", tokens.grad[0].norm(dim=1), rows.norm(dim=1), difference)


def draw(items: list[Gradients]) -> Figure:
    """Draw the norms of both gradients by position, in a panel for each encoding."""
    with styled():
        figure, axes = panels([item.title for item in items], columns=2)
        for panel, item in zip(axes, items, strict=True):
            panel.plot(range(len(item.tokens)), item.tokens.numpy(), MARKERS[0], fillstyle="none", label="token")
            panel.plot(range(len(item.positions)), item.positions.numpy(), MARKERS[4], markersize=3, label="position")
            whole_ticks(panel)
            panel.set_ylim(0, 1.1 * float(max(item.tokens.max(), item.positions.max())))
            panel.set_xlabel("position")
            panel.set_ylabel("norm of the gradient")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def rows(items: list[Gradients]) -> list[Row]:
    """Return a row for each position."""
    return [
        {
            "model": item.title,
            "position": number,
            "norm of the token's gradient": float(token),
            "norm of the position's gradient": float(position),
        }
        for item in items
        for number, (token, position) in enumerate(zip(item.tokens, item.positions, strict=True))
    ]


def report(items: list[Gradients]) -> list[str]:
    """Return a line of text for each encoding."""
    return [f"{item.title}: {_text(item)}." for item in items]


def _text(item: Gradients) -> str:
    if item.difference is not None:
        return f"the values of a token's gradient and of its position's gradient differ by at most {item.difference:g}"
    ratio = item.positions / item.tokens
    return f"the norm of a position's gradient is {ratio.min():.3g} to {ratio.max():.3g} times that of its token's"
