"""Draw position-rank.png and gradients.png for docs/reports-and-figures.md, with random inputs and weights.

Source: Chen et al. 2021 (DIET). Theorem 1 and Figure 8: if positions are added to the input, the rank of a head's
logits is at most the width D of a head; a product of rank d_p that is added to the logits raises this bound by d_p.
Theorem 2: if position vectors P are added to the token embeddings X at the input, the gradients of the loss with
respect to X and P are equal. Positions that are added to the logits of each head have gradients of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # because this file is a script

import torch
from torch import Tensor

from fairseq_posenc.analysis import rank
from fairseq_posenc.analysis.style import MARKERS, panels, save_picture, styled, whole_ticks
from fairseq_posenc.attention import SelfAttention
from fairseq_posenc.encodings import StackShape, build

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Encodings of absolute positions, and where they act.
PLACES = {"learned": "added to the tokens", "diet-abs": "added to the logits of each head"}


def ranks(
    columns: int = 256, dim: int = 256, heads: int = 8, product: int | None = None, seed: int = 1
) -> list[rank.Ranks]:
    """Return the ranks for random inputs and weights, with positions added to the inputs or to the logits (Theorem 1).

    Args:
        dim: Width of the model; the width of a head is dim / heads.
        product: Rank d_p of the product that is added to a head's logits; None for the width of a head.
    """
    generator = torch.Generator().manual_seed(seed)
    head_dim = dim // heads
    width = head_dim if product is None else product
    shapes = ((columns, dim), (columns, dim), (heads, dim, head_dim), (heads, dim, head_dim), (heads, columns, width))
    x, p, w_q, w_k, left = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    right = torch.randn(heads, columns, width, generator=generator, dtype=torch.float64)
    w_q, w_k = w_q / dim**0.5, w_k / dim**0.5
    at_input = (x + p) @ w_q @ ((x + p) @ w_k).mT, p @ w_q @ (p @ w_k).mT
    per_head = x @ w_q @ (x @ w_k).mT + left @ right.mT, left @ right.mT
    results = []
    cases = (("positions at the input", at_input, 0), ("product per head", per_head, width))
    for title, (logits, position), added in cases:
        numerical, effective = rank.ranks(logits[None])
        of_position = rank.ranks(position)[0]
        results.append(rank.Ranks(f"random, {title}", numerical, effective, of_position, head_dim, columns, added))
    return results


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


def gradients(columns: int = 32, dim: int = 64, heads: int = 4, layers: int = 2, seed: int = 1) -> list[Gradients]:
    """Return the gradients in stacks of attention layers with random weights, whose loss is a squared error.

    Args:
        columns: Number n of tokens.
        dim: Width of the model.
    """
    with torch.random.fork_rng(devices=[]):
        return [_gradients_of(name, columns, StackShape(layers, heads, dim, columns), seed) for name in PLACES]


def _gradients_of(name: str, columns: int, shape: StackShape, seed: int) -> Gradients:
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


def draw_gradients(items: list[Gradients]) -> Figure:
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


def report(items: list[Gradients]) -> list[str]:
    """Return a line of text for each encoding."""
    return [f"{item.title}: {_text(item)}." for item in items]


def _text(item: Gradients) -> str:
    if item.difference is not None:
        return f"the values of a token's gradient and of its position's gradient differ by at most {item.difference:g}"
    ratio = item.positions / item.tokens
    return f"the norm of a position's gradient is {ratio.min():.3g} to {ratio.max():.3g} times that of its token's"


if __name__ == "__main__":
    folder, of_ranks, of_gradients = Path(__file__).parent, ranks(product=64), gradients()
    save_picture(rank.draw(of_ranks), folder / "position-rank.png")
    save_picture(draw_gradients(of_gradients), folder / "gradients.png")
    print("\n".join([*rank.report(of_ranks), *report(of_gradients)]))
