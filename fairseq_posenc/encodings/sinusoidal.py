"""Add sinusoids of absolute positions at the input."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.base import ABSOLUTE, Facts, PositionEncoding, StackShape
from ..core.caches import GrownTables
from ..core.options import Options, option
from ..core.refusal import InputError
from ..positions import Positions


@dataclass(frozen=True)
class SinusoidalOptions(Options):
    """Define the options of the sinusoids."""

    freq: str = option(
        "paper",
        "Frequencies: 10000^(-2i/d) with sines and cosines in turn (paper), or 10000^(-i/(d/2-1)) with all sines "
        "first, as in tensor2tensor and fairseq (t2t).",
        choices=("paper", "t2t"),
    )
    offset: int = option(
        0,
        "Number added to every position (fairseq's own encoding starts at padding_idx + 1 = 2).",
        between=(0, 1_000_000),
        example=2,
    )


class Sinusoidal(PositionEncoding):
    """Add sines and cosines of the position p to each token: sin(p 10000^(-2i/d)) and cos(p 10000^(-2i/d))."""

    Options = SinusoidalOptions
    facts = Facts(
        title="Sinusoidal absolute",
        family="input vectors",
        paper="Vaswani et al. 2017; Huang et al., M4M (arXiv)",
        equation="equations (1) and (2)",
        formula=r"x_i = t_i + s_i,\quad s_{i,2l} = \sin(i\,10000^{-2l/d}),\ s_{i,2l+1} = \cos(i\,10000^{-2l/d})",
    )
    options: SinusoidalOptions

    def __init__(self, options: SinusoidalOptions, stack: StackShape) -> None:
        super().__init__(options, stack)
        if options.freq == "t2t" and stack.dim < 4:
            raise InputError(f"freq=t2t needs a width of at least 4, but the width is {stack.dim}: use freq=paper")
        self._tables = GrownTables()

    capabilities = ABSOLUTE

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        (table,) = self._tables.get(positions.extent, self.stack.max_length, x.device, x.dtype, self._rows)
        return x + torch.nn.functional.embedding(positions.query_ids, table)

    def _rows(self, length: int) -> tuple[Tensor]:
        return (sinusoids(length, self.stack.dim, self.options),)

    def reference_embed(self, x: Tensor, positions: Positions) -> Tensor:
        ids = positions.query_ids.expand(x.shape[:2])
        rows = [[_literal_row(int(p), self.stack.dim, self.options) for p in sample] for sample in ids]
        return x + torch.tensor(rows, dtype=x.dtype)


def sinusoids(length: int, dim: int, options: SinusoidalOptions) -> Tensor:
    """Return the table [length, dim] in float64; with freq=t2t and an odd width the last column is 0, as in fairseq."""
    half = (dim + 1) // 2 if options.freq == "paper" else dim // 2
    steps = torch.arange(half, dtype=torch.float64)
    exponent = 2 * steps / dim if options.freq == "paper" else steps / (half - 1)
    places = torch.arange(length, dtype=torch.float64) + options.offset
    angles = places[:, None] * torch.exp(-math.log(10000.0) * exponent)
    if options.freq == "paper":
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :dim].contiguous()
    table = torch.cat([angles.sin(), angles.cos()], -1)
    return torch.nn.functional.pad(table, (0, dim % 2))


def _literal_row(p: int, dim: int, options: SinusoidalOptions) -> list[float]:
    """Return a row of the table, computed number by number."""
    p += options.offset
    if options.freq == "paper":
        return [(math.sin, math.cos)[c % 2](p * 10000 ** (-2 * (c // 2) / dim)) for c in range(dim)]
    half = dim // 2
    angles = [p * 10000 ** (-i / (half - 1)) for i in range(half)]
    return [math.sin(a) for a in angles] + [math.cos(a) for a in angles] + [0.0] * (dim % 2)
