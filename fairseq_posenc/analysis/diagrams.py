"""Draw which row of a table each relative distance reads, and in which part of a layer each encoding acts.

Sources: Figure 1 of Qu et al. 2021 (LFHC, GCDF) shows Shaw and LFHC with k = 2, layer by layer. Figure 3 of Huang et
al. 2020 (M1-M4) shows relative positions with k = 3. Figure 3 of Chen et al. 2021 (DIET) shows positions that are added
at the input or at each head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..core.base import HOOKS, StackShape
from ..encodings import build, names, spec_of
from ..encodings.lfhc import LFHC
from ..positions import Positions
from .style import Row, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What each hook changes, in the order of a layer.
PLACES = {
    "embed": "input: x + vector",
    "compress": "keys and values: fewer slots",
    "project_q": "queries: rotated or shifted",
    "project_k": "keys: rotated",
    "project_input": "input of a layer: gates",
    "scores": "logits: in place of q·k",
    "content_bias": "logits: term with q or k",
    "bias": "logits: term without q and k",
    "adapt": "logits: term of q·k and biases",
    "values": "output: term with the weights",
}


def ranges(clip: int = 2, layers: int = 3, columns: int = 13) -> dict[str, Tensor]:
    """Return which row of the table each distance j - i reads in each layer of `shaw` and of `lfhc`.

    Returns:
        A matrix [layers, distances] for each encoding, with distance 0 in the middle column. The rows of the table are
        counted from its middle row: they have the numbers -clip to clip.
    """
    stack = StackShape(layers=layers, heads=1, dim=2, max_length=columns + 1, causal=False)
    distances = torch.arange(columns) - columns // 2
    lfhc = build("lfhc", f"clip={clip}", stack).members["lfhc"]
    assert isinstance(lfhc, LFHC)
    coarse = [lfhc.row_in_layer(distances, layer) - clip for layer in range(1, layers + 1)]
    return {"shaw": distances.clamp(-clip, clip).expand(layers, -1), "lfhc": torch.stack(coarse)}


def clipping(clip: int = 3, tokens: int = 6) -> Tensor:
    """Return clip(j - i, -k, k) of all pairs of tokens, [tokens, tokens]."""
    where = Positions.of_tokens(torch.ones(1, tokens, dtype=torch.long), pad=0)
    return where.delta.clamp(-clip, clip)


def hooks() -> dict[str, list[str]]:
    """Return, for each place in the model, the names of the encodings that act there, in the order of the registry."""
    acting: dict[str, list[str]] = {hook: [] for hook in HOOKS}
    for name in names():
        for hook in _hooks(name):
            acting[hook].append(name)
    return {PLACES[hook]: acting[hook] for hook in PLACES if acting[hook]}


def _hooks(name: str) -> list[str]:
    """Return the hooks that an encoding has with default options in an encoder, or in a decoder if it needs one."""
    for causal in (False, True):
        stack = StackShape(layers=2, heads=2, dim=8, max_length=16, causal=causal, has_cls=not causal)
        try:
            with torch.device("meta"):
                return list(build(spec_of(name), None, stack).members[name].hooks)
        except ValueError:
            continue
    raise ValueError(
        f"{name} with its default options can be built neither in an encoder nor in a decoder. Change the defaults."
    )


def draw() -> Figure:
    """Draw the four diagrams as the panels of one figure."""
    with styled():
        figure, (top, middle, clipped, where) = panels(
            ["Shaw, k = 2: row of each distance", "LFHC, k = 2", "relative positions, k = 3", ""], columns=2
        )
        both = ranges()
        _cells(top, both["shaw"], "distance j - i", "layer", -(both["shaw"].shape[1] // 2), 1)
        _cells(middle, both["lfhc"], "distance j - i", "layer", -(both["lfhc"].shape[1] // 2), 1)
        _cells(clipped, clipping(), "key j", "query i", 0, 0)
        where.set_axis_off()
        lines = [f"{place}:\n   {_wrapped(acting)}" for place, acting in hooks().items()]
        where.text(0, 1, "\n".join(lines), va="top", fontsize=6.5, transform=where.transAxes)
    return figure


def _cells(axes: Axes, values: Tensor, x: str, y: str, first_x: int, first_y: int) -> None:
    """Draw a matrix of small integers as an image, with the number in each cell."""
    down, across = values.shape
    low, high = int(values.min()), int(values.max())
    axes.imshow(values.numpy(), vmin=2 * low, vmax=2 * high, aspect="auto")
    for row in range(down):
        for column in range(across):
            value = int(values[row, column])
            colour = "black" if value > 0 else "white"  # the cells of large values are light
            axes.text(column, row, str(value), ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(range(across), [str(first_x + number) for number in range(across)], fontsize=7)
    axes.set_yticks(range(down), [str(first_y + number) for number in range(down)], fontsize=7)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _wrapped(acting: list[str], width: int = 54) -> str:
    import textwrap

    return "\n   ".join(textwrap.wrap(", ".join(acting), width, break_on_hyphens=False))


def rows() -> list[Row]:
    """Return rows with the numbers in the first three diagrams and the names of encodings in the last diagram."""
    cells: list[Row] = [
        {"diagram": name, "row": layer, "column": number - len(values) // 2, "value": value}
        for name, matrix in ranges().items()
        for layer, values in enumerate(matrix.tolist(), start=1)
        for number, value in enumerate(values)
    ]
    cells += [
        {"diagram": "clipping", "row": i, "column": j, "value": value}
        for i, values in enumerate(clipping().tolist())
        for j, value in enumerate(values)
    ]
    acting = hooks().items()
    return cells + [
        {"diagram": "places", "row": place, "column": "", "value": name} for place, all_ in acting for name in all_
    ]
