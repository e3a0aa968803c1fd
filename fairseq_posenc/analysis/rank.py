"""Compute the rank of attention logits, and of the part of the logits that depends on positions only.

Source: Chen et al. 2021 (DIET), Theorem 1, Figures 2 and 8. If positions are added to the input, the rank of a head's
logits is still at most the head width D. DIET-ABS adds a product of rank d_p to the logits, so their rank can be D +
d_p.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ..core.factors import FactoredBias
from .style import COLOURS, GREY, MARKERS, Row, legend_below, panels, styled, whole_ticks
from .trained import FigureError, Stack, first_columns, position_part

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENERGY = 0.99  # share of the squared singular values that the effective rank keeps


class Ranks(NamedTuple):
    """Hold the ranks of the attention logits of each head of a layer.

    Args:
        title: Name of the encoder or decoder.
        logits: Rank of each head's logits on each text, [texts, h].
        effective: Smallest number of singular values whose squares reach the share ENERGY of the sum of all squares,
            [texts, h].
        position: Rank of the part of each head's logits that depends on positions only, [h]; None if there is no such
            part.
        head_dim: Width D of a head.
        columns: Number n of tokens.
        product: Rank d_p of the product of position factors that is added to each head's logits; 0 without a product.
    """

    title: str
    logits: Tensor
    effective: Tensor
    position: Tensor | None
    head_dim: int
    columns: int
    product: int = 0


def ranks(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numerical and the effective rank of matrices [..., n, n].

    The singular values are computed in float64. The numerical rank is the number of singular values above
    n * eps * (the largest one), with the eps of float32, because the matrices were computed in float32.
    """
    singular = torch.linalg.svdvals(matrices.double())
    threshold = matrices.shape[-1] * torch.finfo(torch.float32).eps * singular[..., :1]
    energy = singular.square().cumsum(-1)
    effective = (energy < ENERGY * energy[..., -1:]).sum(-1) + 1
    return (singular > threshold).sum(-1), effective


def data(stack: Stack, split: str, texts: int = 8, layer: int = 1, columns: int = 128) -> Ranks:
    """Return the ranks of a layer's logits on the first `columns` tokens of each text, and of their position-only part.

    Raises:
        FigureError: All texts have fewer than `columns` tokens.
    """
    seen = first_columns(stack, split, texts, layer, columns)
    numerical, effective = ranks(torch.stack([item.logits for item in seen]))
    try:
        position = ranks(position_part(stack, layer, columns))[0]
    except FigureError:
        position = None
    products = (member for member in stack.members.values() if isinstance(member, FactoredBias))
    product = sum(member.query.shape[-1] for member in products)
    return Ranks(stack.title, numerical, effective, position, stack.encoding.stack.head_dim, columns, product)


def draw(items: list[Ranks]) -> Figure:
    """Draw the rank of each head's logits (left: mean and range over texts) and of their position-only part (right)."""
    with styled():
        figure, (left, right) = panels(["attention logits", "position part"], columns=2)
        for number, item in enumerate(items):
            shift = (number - (len(items) - 1) / 2) * 0.5 / len(items)  # side by side, because ranks are often equal
            places = [head + shift for head in range(1, item.logits.shape[1] + 1)]
            colour = COLOURS[number % len(COLOURS)]
            look: dict[str, Any] = {
                "marker": MARKERS[number % len(MARKERS)],
                "color": colour,
                "linestyle": "",
                "fillstyle": "none",
            }
            mean = item.logits.double().mean(0)
            left.plot(places, mean.numpy(), label=item.title, **look)
            spread = torch.stack([mean - item.logits.amin(0), item.logits.amax(0) - mean])
            if spread.any():
                left.errorbar(places, mean.numpy(), spread.numpy(), fmt="none", ecolor=colour, capsize=2)
                left.set_title("attention logits (bar: range over the texts)")
            if item.position is not None:
                right.plot(places, item.position.numpy(), **look)
        _finish(left, items, {item.product for item in items if item.product})
        _finish(right, items, set())
        legend_below(figure, left)
    return figure


def _finish(panel: Axes, items: list[Ranks], products: set[int]) -> None:
    """Draw the upper bounds of Theorem 1 as lines, and set the axes."""
    width, heads = items[0].head_dim, max(item.logits.shape[1] for item in items)
    panel.axhline(width, color="black", linewidth=0.8, linestyle=":", label=f"D = {width}, the width of a head")
    for product in sorted(products):
        text = f"D + $d_p$ = {width + product}, the bound with a product of rank $d_p$ = {product}"
        panel.axhline(width + product, color=GREY, linewidth=0.8, linestyle="--", label=text)
    whole_ticks(panel)
    panel.set_xlim(0.5, heads + 0.5)
    panel.set_ylim(0, 1.1 * float(max(item.logits.max() for item in items)))
    panel.set_xlabel("head")
    panel.set_ylabel(f"rank (of {items[0].columns})")


def rows(items: list[Ranks]) -> list[Row]:
    """Return a row for each head, with means over texts."""
    return [
        {
            "model": item.title,
            "head": head + 1,
            "rank of logits": float(item.logits[:, head].double().mean()),
            f"rank with {ENERGY:.0%} of the energy": float(item.effective[:, head].double().mean()),
            "rank of position part": "" if item.position is None else int(item.position[head]),
            "D": item.head_dim,
            "n": item.columns,
        }
        for item in items
        for head in range(item.logits.shape[1])
    ]


def report(items: list[Ranks]) -> list[str]:
    """Return a line of text for each model with the ranks, averaged over heads and texts."""
    return [
        f"{item.title}: with {item.columns} tokens and head width {item.head_dim}, the mean rank of the logits is "
        f"{_mean(item.logits)}. On average, the squares of the {_mean(item.effective)} largest singular values "
        f"make up {ENERGY:.0%} of the sum of all squares. The rank of the part that depends on positions only is "
        f"{_mean(item.position)}."
        for item in items
    ]


def _mean(values: Tensor | None) -> str:
    return (
        ("undefined (no part of the logits depends on positions only)")
        if values is None
        else f"{values.double().mean():.1f}"
    )
